"""Measured windows: how long one took, what it cost, and the work in it; a CSV with one line for each.

```csv
name,kind,time_s,energy_j,chips,calls,matrix_flops,vector_ops,memory_bytes
matmul 4096 a,matmul,1.02,310.5,1,1150,1.58e14,0,1.16e11
```

Of `name`, `time_s` and at least one column of work none may be left out; `chips` is 1 then, `devices` those of the
chips, all others 0.  A window without work is idle.  What was not measured is empty or −1, as Zeus and CharLLM-PPT
write a failure.
"""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from compare.render.units import count_text
from compare.timeline.columns import WORK_COLUMNS
from compare.timeline.errors import TimingError, name_file
from meshes.process.one_line import quote

NETWORK_STEPS = ("collectives", "hops", "link_bytes", "dcn_transfers")
"""On the way of one device: launches, steps to a neighbouring chip, bytes on its busiest link, transfers between
slices."""
ESTIMATED = "estimated_s"
"""The compiler's estimated cycles ÷ clock, of one device; empty or 0 where it gives none."""
WORK = (*WORK_COLUMNS, ESTIMATED, *NETWORK_STEPS)
COLUMNS = ("name", "kind", "time_s", "energy_j", "chips", "devices", "calls", *WORK)
"""`energy_j` and WORK_COLUMNS are of all chips, everything is of the whole window."""

_POSITIVE = ("time_s", "chips", "devices")
MOST_WINDOWS = 5000
MOST_BYTES = 1 << 24
FAILURE = -1.0
LEAST_S, MOST = 1e-12, 1e24
"""The shortest window, and the most of anything in one: sums and squares stay numbers."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows that can be used, and notes on those that cannot."""

    table: pd.DataFrame
    """COLUMNS; `energy_j` is NaN where it was not measured."""
    notes: tuple[str, ...] = ()

    @property
    def have_energy(self) -> bool:
        return bool((self.table["energy_j"] > 0).any())


def read_windows(path: Path, *, devices_per_chip: int = 1) -> Windows:
    """A file's windows.  `OSError` where it can't be opened; `TimingError`, one line, where it holds anything else.

    devices_per_chip: for windows that do not say how many devices there are.
    """
    if not path.is_file():
        raise TimingError(f"{path} is no file; a CSV of windows was expected")
    if path.stat().st_size > MOST_BYTES:
        raise TimingError(f"{path} is larger than {MOST_BYTES:,} bytes, which is the most that is read")
    try:
        lines = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except UnicodeDecodeError:
        raise TimingError(f"{path} is no text; a CSV of windows was expected") from None
    except csv.Error as error:
        raise TimingError(f"{path} is no CSV: {error}") from None
    with name_file(path):
        return parse_windows(lines, devices_per_chip=devices_per_chip)


def parse_windows(lines: Sequence[Sequence[str]], *, devices_per_chip: int = 1) -> Windows:
    """The same of lines of words, the first of them the names of the columns."""
    lines = [line for line in lines if any(word.strip() for word in line)]
    if not lines:
        raise TimingError(f"empty; the first line names columns, like {','.join(COLUMNS[:7])}")
    names = [word.strip() for word in lines[0]]
    _check_names(names)
    if len(lines) == 1:
        raise TimingError("no windows, only the names of columns")
    if len(lines) - 1 > MOST_WINDOWS:
        raise TimingError(f"{len(lines) - 1:,} windows; at most {MOST_WINDOWS:,} are read")
    notes: list[str] = []
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if len(line) != len(names):
            raise TimingError(f"line {number} has {len(line)} words for {len(names)} columns")
        row = _parse_row(dict(zip(names, line, strict=True)), number)
        if row["time_s"] is None:
            notes.append(f"window {quote(row['name'])} has no time: left out")
        else:
            rows.append(row)
    if not rows:
        raise TimingError("no window has a time: every time_s is empty or -1")
    table = make_table(rows, devices_per_chip=devices_per_chip)
    missing = int(table["energy_j"].isna().sum())
    if 0 < missing < len(table):
        notes.append(f"{missing} of {len(table)} windows have no energy: they count for times only")
    nothing = int((table["energy_j"] == 0).sum())
    if nothing:
        notes.append(f"{count_text(nothing, 'window')} of 0 J, which no chip takes: they count for times only")
    return Windows(table, tuple(notes))


def make_table(rows: Sequence[Mapping[str, object]], *, devices_per_chip: int = 1) -> pd.DataFrame:
    """Rows with some of COLUMNS as a table with all of them."""
    default = {"kind": "", "energy_j": math.nan, "chips": 1.0, "calls": 0.0, **dict.fromkeys(WORK, 0.0)}
    table = pd.DataFrame([{**default, **row} for row in rows], columns=list(COLUMNS))
    numbers = [name for name in COLUMNS if name not in ("name", "kind")]
    table = table.astype(dict.fromkeys(numbers, np.float64))
    return table.assign(devices=table["devices"].fillna(table["chips"] * devices_per_chip))


def write_windows(table: pd.DataFrame, path: Path) -> None:
    """A table as the CSV that `read_windows` reads."""
    table.to_csv(path, index=False, float_format="%.15g")


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in COLUMNS:
            raise TimingError(f"{quote(name)} is no column; columns are {', '.join(COLUMNS)}")
        if names.count(name) > 1:
            raise TimingError(f"column {name} is there twice")
    for name in ("name", "time_s"):
        if name not in names:
            raise TimingError(f"column {name} is missing; columns are {', '.join(COLUMNS)}")
    if not set(names) & set(WORK):
        raise TimingError(f"no column of work; give one of {', '.join(WORK)}")


def _parse_row(words: Mapping[str, str], number: int) -> dict[str, object]:
    row: dict[str, object] = {}
    for name, word in words.items():
        if name in ("name", "kind"):
            row[name] = word.strip()
            continue
        value = _number(word.strip(), f"line {number}, {name}")
        measured = name in ("time_s", "energy_j")
        if value == FAILURE and measured:
            value = math.nan
        if name == "time_s" and math.isnan(value):
            row[name] = None
            continue
        if value < 0 or (value == 0 and name in _POSITIVE):
            positive = "positive" if name in _POSITIVE else "no less than 0"
            raise TimingError(f"line {number}: {name} is {value:g}; it must be {positive}")
        if value > MOST or (name == "time_s" and value < LEAST_S):
            raise TimingError(
                f"line {number}: {name} is {value:g}; from {LEAST_S:g} s on, and at most {MOST:g}, is read"
            )
        if math.isnan(value) and name in _POSITIVE:
            continue
        row[name] = 0.0 if math.isnan(value) and not measured else value
    if not row["name"]:
        raise TimingError(f"line {number}: the window has no name")
    return row


def _number(word: str, place: str) -> float:
    """NaN for an empty word."""
    try:
        value = float(word) if word else math.nan
    except ValueError:
        raise TimingError(f"{place}: {quote(word)} is no number") from None
    if word and not math.isfinite(value):
        raise TimingError(f"{place}: {quote(word)} is no finite number")
    return value
