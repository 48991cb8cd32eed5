"""The device events of a profile, before they are joined to a program, in one form for every platform."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timeline.series import Series

RAW = {
    "device": "int32",
    "line": "category",
    "name": "category",
    "hlo_op": "category",
    "module": "category",
    "text": "category",
    "category": "category",
    "tf_op": "category",
    "source": "category",
    "source_stack": "category",
    "main": "bool",
    "start_ns": "float64",
    "duration_ns": "float64",
    "wait_ns": "float64",
    "run": "int64",
    "flops": "float64",
    "accessed_bytes": "float64",
    "shown_bytes": "float64",
    "core_energy_j": "float64",
}
"""Columns of operation events, those of _OPTIONAL and _OPTIONAL_WORDS optional.

device: logical id, -1 unknown.  line, name: as in the profile.  hlo_op: the instruction's name.  module: the profile's
name of its program, like `jit_f(0)`, "" unknown.  text: its HLO line, category: its `hlo_category`, tf_op: its
`op_name`, source: `file:line`, source_stack: the frames that led there, a line each; "" where the profile has none.
main: on the device's main line, whose events are compute unless they are communication.  start_ns: from
`Space.zero_ns`.  wait_ns: NaN where not shown.  run: number of the program's execution, -1 unknown.  flops,
accessed_bytes: `model_flops`, `bytes_accessed`, NaN where not shown.  shown_bytes: of a collective in a trace that may
be without its HLO, the bytes that it shows; else NaN.  core_energy_j: `vdd_energy_j` of an operation of a TensorCore;
else NaN.
"""


_OPTIONAL_WORDS = ("source", "source_stack")
_OPTIONAL = ("flops", "accessed_bytes", "shown_bytes", "core_energy_j")

EXECUTIONS = {"device": "int32", "module": "category", "run": "int64", "start_ns": "float64", "duration_ns": "float64"}
"""Columns of program executions, as marked by a device."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEvents:
    """The operations of one host's devices."""

    events: pd.DataFrame
    """Columns of RAW."""
    steps: pd.DataFrame | None = None
    """Columns of `columns.STEP_COLUMNS`, where the devices mark steps; else `None`."""
    executions: pd.DataFrame | None = None
    """Columns of EXECUTIONS, where the devices mark them."""
    spanning_lines: frozenset[str] = frozenset()
    """Lines on which an event spans an asynchronous operation from start to done."""
    other_cores: frozenset[str] = frozenset()
    """Lines of further cores that work for the device."""
    copies_compute: bool = False
    """Whether waits for local copies count as compute: in what the schedule model wrote."""
    one_at_a_time: bool = False
    """Whether events nested in another event of the main line are all that the device does meanwhile."""
    meters: tuple[Series, ...] = ()
    """Power, temperature and throttling, where they were recorded."""
    notes: tuple[str, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Description (`line Framework Ops`) -> number of omitted events."""


def frame(columns: Mapping[str, object], *, length: int) -> pd.DataFrame:
    """Events from columns; a scalar applies to all rows."""
    data: dict[str, object] = {}
    for name, dtype in RAW.items():
        if name in (*_OPTIONAL, *_OPTIONAL_WORDS):
            value = columns.get(name, np.nan if name in _OPTIONAL else "")
        else:
            value = columns[name]
        if dtype != "category":
            data[name] = np.full(length, value, dtype) if np.isscalar(value) else np.asarray(value, dtype)
        elif isinstance(value, str):
            data[name] = pd.Categorical.from_codes([0] * length, categories=pd.Index([value], dtype=object))
        else:
            data[name] = value
    return pd.DataFrame(data, index=pd.RangeIndex(length))


def no_events() -> pd.DataFrame:
    return frame({name: "" if dtype == "category" else [] for name, dtype in RAW.items()}, length=0)


def concat_frames(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate frames of the same columns; categoricals stay categorical, unlike in `pd.concat`."""
    if len(frames) == 1:
        return frames[0].reset_index(drop=True)
    data: dict[str, object] = {}
    for name in frames[0].columns:
        parts = [part[name] for part in frames]
        words = isinstance(parts[0].dtype, pd.CategoricalDtype)
        data[name] = concat_words([part.array for part in parts]) if words else np.concatenate(parts)
    return pd.DataFrame(data)


def map_words(words: pd.Categorical, meaning: Callable[[str], str]) -> pd.Categorical:
    """Replace each word; `meaning` is called once per distinct word."""
    return words_by_code(words.codes, [meaning(word) for word in words.categories])


def words_by_code(codes: NDArray[np.int8 | np.int16 | np.int32 | np.int64], words: Sequence[str]) -> pd.Categorical:
    """A categorical from codes into `words`, which may repeat; -1 is the last word."""
    codes = np.asarray(codes) % max(len(words), 1)
    used = np.flatnonzero(np.bincount(codes, minlength=len(words)))
    new_codes = np.zeros(max(len(words), 1), np.int64)
    known: dict[str, int] = {}
    new_codes[used] = [known.setdefault(words[code], len(known)) for code in used.tolist()]
    return pd.Categorical.from_codes(new_codes[codes], categories=pd.Index(list(known), dtype=object))


def fill_words(words: pd.Categorical, others: Callable[[], pd.Categorical]) -> pd.Categorical:
    """The words; where one is empty, the other's, which are read only then."""
    if "" not in words.categories:
        return words
    both = concat_words([words, others()])
    first, second = np.split(np.asarray(both.codes), 2)
    known = list(both.categories)
    empty = known.index("") if "" in known else -1
    return words_by_code(np.where(first == empty, second, first), known)


def concat_words(parts: Sequence[pd.Categorical]) -> pd.Categorical:
    """Concatenate categoricals; "" for missing values."""
    before = np.cumsum([0, *(len(part.categories) for part in parts)])
    codes = [
        np.where(part.codes < 0, before[-1], np.asarray(part.codes, np.int64) + offset)
        for part, offset in zip(parts, before, strict=False)
    ]
    all_codes = np.concatenate([np.empty(0, np.int64), *codes])
    return words_by_code(all_codes, [*(word for part in parts for word in part.categories), ""])
