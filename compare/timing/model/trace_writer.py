"""What happened, as the clocks saw it: kept by class while the model runs, turned into the events of a timeline after.

Operations on the TensorCore stand on the line `XLA Ops`, what runs beside it on `Async XLA Ops`, named by their
instructions, as a TPU's own profile has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.timing.arrays import Column, Floats, Ints, Mask
from compare.timing.model.device_classes import Classes
from compare.timing.model.schedule_program import Run
from compare.timing.timeline import COMMUNICATION, COMPUTE, CONTAINER, EVENT_COLUMNS, PART

CORE_LINE, BESIDE_LINE = "XLA Ops", "Async XLA Ops"
_ROLES = (COMPUTE, COMMUNICATION, CONTAINER, PART)
_LINES = (CORE_LINE, BESIDE_LINE)


@dataclass(frozen=True, slots=True)
class Label:
    """What an event says of itself."""

    name: str
    role: str
    line: str = CORE_LINE
    row: Collective | None = None


@dataclass
class Record:
    """Events by class, in the order in which they were recorded; what a class does not run has no start (NaN)."""

    labels: dict[Label, int] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    """The label of each single event."""
    times: list[tuple[Floats, Floats, Floats]] = field(default_factory=list)
    """Its start, end and waiting."""
    runs: dict[int, Run] = field(default_factory=dict)
    ran: list[tuple[int, Floats]] = field(default_factory=list)
    """Which run began when."""

    def mark(self, label: Label, start: Floats, end: Floats, wait: Floats | None, there: Mask) -> None:
        self.marks.append(self.labels.setdefault(label, len(self.labels)))
        begun = np.where(there, start, np.nan)
        self.times.append((begun, end, np.full(start.size, np.nan) if wait is None else wait))

    def run(self, run: Run, start: Floats, there: Mask) -> None:
        self.runs[id(run)] = run
        self.ran.append((id(run), np.where(there, start, np.nan)))

    @property
    def num_events(self) -> int:
        """Of one class, the most that it can have."""
        return len(self.marks) + sum(len(self.runs[key].names) for key, _ in self.ran)


def merge_alike(record: Record, classes: Classes) -> Classes:
    """Classes to which the very same happened are one."""
    columns = [np.stack(part) for part in zip(*record.times, strict=True)]
    columns += [np.stack([start for _, start in record.ran])] if record.ran else []
    if not columns or classes.number == 1:
        return classes
    _, same = np.unique(np.nan_to_num(np.concatenate(columns).round(3), nan=-1.0).T, axis=0, return_inverse=True)
    same = same.reshape(-1)
    first = np.array([int(np.flatnonzero(same == one)[0]) for one in range(int(same.max()) + 1)], np.int64)
    order = np.argsort(classes.first[first])
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Classes(rank[same][classes.of], classes.first[first[order]])


def list_events(record: Record, classes: Classes, kept: Classes, *, whole_runs: bool) -> pd.DataFrame:
    """The events of the first device of every kept class.  whole_runs: a run of operations is drawn as one event."""
    runs = {key: number for number, key in enumerate(record.runs)}
    names, durations, sizes = _operations(list(record.runs.values()), whole=whole_runs)
    labels = list(record.labels)
    words = pd.Index(dict.fromkeys([*(label.name for label in labels), *names]), dtype=object)
    run_codes = words.get_indexer(pd.Index(names, dtype=object)).astype(np.int64)
    parts = []
    for device in kept.first.tolist():
        number = int(classes.of[device])
        marks = _marks_of(record, labels, words, number)
        ops = _ops_of(record, runs, run_codes, durations, sizes, number)
        parts.append(_columns(device, marks, ops))
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return _frame(columns, labels, words)


def _operations(runs: Sequence[Run], *, whole: bool) -> tuple[list[str], Floats, Ints]:
    """All operations of all runs end to end; a run as a whole bears the name of its longest operation."""
    if whole:
        names = [run.names[int(run.ns.argmax())] for run in runs]
        return names, np.array([run.total_ns for run in runs]), np.ones(len(runs), np.int64)
    flat = [name for run in runs for name in run.names]
    ns = np.concatenate([run.ns for run in runs]) if runs else np.zeros(0)
    return flat, ns, np.array([len(run.names) for run in runs], np.int64)


_Columns = dict[str, Column]


def _marks_of(record: Record, labels: list[Label], words: "pd.Index[str]", number: int) -> _Columns:
    """The single events of one class."""
    start, end, wait = (np.array([one[at][number] for one in record.times]) for at in range(3))
    label = np.array(record.marks, np.int64)
    there = ~np.isnan(start)
    start, end, wait, label = start[there], end[there], wait[there], label[there]
    name = words.get_indexer(pd.Index([one.name for one in labels], dtype=object)).astype(np.int64)
    return {"label": label, "name": name[label] if label.size else label, "start_ns": start,
            "duration_ns": end - start, "wait_ns": wait}  # fmt: skip


def _ops_of(
    record: Record, runs: Mapping[int, int], codes: Ints, durations: Floats, sizes: Ints, number: int
) -> _Columns:
    """The operations of the runs of one class."""
    which = np.array([runs[key] for key, _ in record.ran], np.int64)
    start = np.array([begun[number] for _, begun in record.ran])
    which, start = which[~np.isnan(start)], start[~np.isnan(start)]
    first = np.concatenate(([0], np.cumsum(sizes)))[:-1] if sizes.size else np.zeros(0, np.int64)
    count = sizes[which] if which.size else which
    before = np.cumsum(count) - count
    place = np.repeat(first[which] - before, count) + np.arange(int(count.sum()))
    done = np.concatenate(([0.0], np.cumsum(durations)))
    offset = done[place] - np.repeat(done[first[which]], count)
    return {
        "label": np.full(place.size, -1, np.int64),
        "name": codes[place],
        "start_ns": np.repeat(start, count) + offset,
        "duration_ns": durations[place],
        "wait_ns": np.full(place.size, np.nan),
    }


def _columns(device: int, *parts: _Columns) -> _Columns:
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return {**columns, "device": np.full(columns["label"].size, device, np.int32)}


def _frame(columns: _Columns, labels: list[Label], words: "pd.Index[str]") -> pd.DataFrame:
    label = columns["label"].astype(np.int64)
    names = pd.Categorical.from_codes(columns["name"].astype(np.int64), categories=words)
    rows = [one.row for one in labels]
    made: dict[str, object] = {
        "device": columns["device"],
        "line": _words([one.line for one in labels], label, _LINES, CORE_LINE),
        "name": names,
        "hlo_op": names,
        "role": _words([one.role for one in labels], label, _ROLES, COMPUTE),
        "payload_bytes": _numbers([np.nan if row is None else row.payload_bytes for row in rows], label),
        **{key: columns[key] for key in ("start_ns", "duration_ns", "wait_ns")},
    }
    for column, key in (("collective", "name"), ("scope", "scope"), ("kind", "kind"), ("axes", "axes")):
        values = ["" if row is None else str(getattr(row, key)) for row in rows]
        made[column] = _words(values, label, tuple(dict.fromkeys([*values, ""])), "")
    return pd.DataFrame({key: made[key] for key in EVENT_COLUMNS}).astype(
        {key: kind for key, kind in EVENT_COLUMNS.items() if kind != "category"}
    )


def _words(values: list[str], label: Ints, known: tuple[str, ...], otherwise: str) -> pd.Categorical:
    """A word of each event by its label; operations of runs, which have none, bear the last."""
    codes = np.array([known.index(value) for value in [*values, otherwise]], np.int64)
    return pd.Categorical.from_codes(codes[label], categories=pd.Index(known, dtype=object))


def _numbers(values: list[float], label: Ints) -> Floats:
    return np.array([*values, np.nan], np.float64)[label]
