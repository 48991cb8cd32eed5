"""Windows that Zeus measured: its log file, or `Measurement`s as JSON.

ml-energy/zeus, `zeus/monitor/energy.py`: the log's header is `start_time,window_name,elapsed_time,gpu0_energy,…`, in
seconds and joules; a `Measurement` has `time`, `gpu_energy` {index: J}, and `cpu_energy`, `dram_energy` or null.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from compare.timeline.errors import TimingError
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

_HEADER = ("start_time", "window_name", "elapsed_time")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_GPU = re.compile(r"gpu(\d{1,9})_energy")
MOST_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One window: how long, and the joules of each device meanwhile."""

    name: str
    seconds: float
    energy_j: Mapping[int, float]
    """By device."""
    host_j: Mapping[str, float] = field(default_factory=dict)
    """`cpu0`, `dram0` … -> joules, where they were measured."""


@dataclass(frozen=True, slots=True)
class ZeusWindows:
    windows: tuple[Window, ...]
    notes: tuple[str, ...]


def is_log(path: Path) -> bool:
    """Whether a file begins as Zeus' log does."""
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf").startswith(",".join(_HEADER).encode())


def read_log(path: Path) -> ZeusWindows:
    """The windows of a log file.  `OSError` where it can't be opened, `TimingError` where it holds no window."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TimingError(f"{path}: larger than {MOST_BYTES:,} bytes, which is the most that is read of a log")
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    columns = lines[0].split(",") if lines else []
    matches = [_GPU.fullmatch(word.strip()) for word in columns[len(_HEADER) :]]
    if tuple(columns[: len(_HEADER)]) != _HEADER or not all(matches):
        raise TimingError(f"{path}: no log of Zeus; its first line is {','.join(_HEADER)},gpu0_energy,…")
    devices = [int(match[1]) for match in matches if match]
    windows, lost = [], 0
    for line in lines[1:]:
        if not line.strip():
            continue
        # A window's name may hold commas: Zeus quotes nothing.
        start, _, rest = line.partition(",")
        words = rest.rsplit(",", len(devices) + 1)
        numbers = [_number(word) for word in (start, *words[1:])]
        if len(words) != len(devices) + 2 or None in numbers or numbers[1] <= 0:  # type: ignore[operator]
            lost += 1
            continue
        _, elapsed, *joules = (float(number or 0) for number in numbers)
        windows.append(Window(name=words[0], seconds=elapsed, energy_j=dict(zip(devices, joules, strict=True))))
    notes = [f"{path.name}: {lost} of {len(lines) - 1} lines are no windows: left out"] if lost else []
    return _checked(windows, path, notes)


def read_measurements(path: Path) -> ZeusWindows:
    """The windows of a JSON file: a `Measurement`, a list of them, or a map from names to them.

    `OSError` where it can't be opened, `TimingError`, one line, where it holds anything else.
    """
    try:
        value = read_json(path)
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
    if not is_measurements(value):
        raise TimingError(f"{path}: no Measurement of Zeus; it has time and gpu_energy")
    named = {path.stem: value} if "time" in value else value
    entries = (
        named.items() if isinstance(named, Mapping) else ((f"{path.stem} {at}", row) for at, row in enumerate(named))
    )
    return _checked([_window(str(name), row, path) for name, row in entries], path, [])


def is_measurements(value: object) -> bool:
    """Whether JSON holds one or more `Measurement`s."""
    if isinstance(value, Mapping) and "gpu_energy" in value:
        return "time" in value
    rows = list(value.values()) if isinstance(value, Mapping) else value
    return (
        isinstance(rows, list) and bool(rows) and all(isinstance(row, Mapping) and "gpu_energy" in row for row in rows)
    )


def _window(name: str, row: Mapping[str, object], path: Path) -> Window:
    seconds = row.get("time")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        raise TimingError(f"{path}: time of {name} is {quote(seconds)}, not seconds")
    host = {
        f"{part}{index}": joules
        for part in ("cpu", "dram")
        for index, joules in _joules(row.get(f"{part}_energy") or {}, f"{part}_energy of {name}", path).items()
    }
    energy = _joules(row["gpu_energy"], f"gpu_energy of {name}", path)
    return Window(name=str(row.get("window_name", name)), seconds=float(seconds), energy_j=energy, host_j=host)


def _joules(value: object, what: str, path: Path) -> dict[int, float]:
    rows = value.items() if isinstance(value, Mapping) else [(None, value)]
    joules = {}
    for index, amount in rows:
        if not _NUMBER.fullmatch(str(index)) or not isinstance(amount, int | float) or isinstance(amount, bool):
            raise TimingError(f"{path}: {what} is {quote(value)}; joules by the number of the device were expected")
        joules[int(str(index))] = float(amount)
    return joules


def _checked(windows: list[Window], path: Path, notes: list[str]) -> ZeusWindows:
    """Windows in which every device has joules; Zeus writes 0 where a counter did not move meanwhile."""
    good = [window for window in windows if window.energy_j and min(window.energy_j.values()) > 0]
    if lost := len(windows) - len(good):
        notes.append(
            f"{path.name}: {lost} of {len(windows)} windows show no joules of a device (Zeus: the window is shorter "
            "than its counter's update period): left out"
        )
    if not good:
        raise TimingError(f"{path}: no window with joules" + "".join(f"; {note}" for note in notes))
    return ZeusWindows(tuple(good), tuple(notes))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
