"""Record the simulation by class while it runs, then write it as the events of a timeline.

Operations on the TensorCore are on the line `XLA Ops`, asynchronous ones on `Async XLA Ops`, named by their
instructions, as in a TPU's own profile.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.schedule.device_classes import Classes
from compare.schedule.exchange import NetworkWork
from compare.schedule.schedule_program import Run
from compare.timeline.arrays import Column, Floats, Ints, Mask
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, EVENT_COLUMNS, PART, WORK_COLUMNS

CORE_LINE, BESIDE_LINE = "XLA Ops", "Async XLA Ops"
_ROLES = (COMPUTE, COMMUNICATION, CONTAINER, PART)
_LINES = (CORE_LINE, BESIDE_LINE)


@dataclass(frozen=True, slots=True)
class Label:
    """The description of an event."""

    name: str
    role: str
    line: str = CORE_LINE
    row: Collective | None = None
    network: NetworkWork | None = None
    memory_bytes: int = 0
    """Of an asynchronous local copy."""


@dataclass
class Record:
    """Events of all classes, in order of recording; a class that does not run an event has NaN as its start."""

    labels: dict[Label, int] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    """The label of each single event."""
    times: list[tuple[Floats, Floats, Floats]] = field(default_factory=list)
    """Start, end and wait of each single event, per class."""
    runs: dict[int, Run] = field(default_factory=dict)
    ran: list[tuple[int, Floats]] = field(default_factory=list)
    """(run, its start per class)."""

    def mark(self, label: Label, start: Floats, end: Floats, wait: Floats | None, active: Mask) -> None:
        self.marks.append(self.labels.setdefault(label, len(self.labels)))
        begun = np.where(active, start, np.nan)
        self.times.append((begun, end, np.full(start.size, np.nan) if wait is None else wait))

    def run(self, run: Run, start: Floats, active: Mask) -> None:
        self.runs[id(run)] = run
        self.ran.append((id(run), np.where(active, start, np.nan)))

    @property
    def num_events(self) -> int:
        """The most events that one class can have."""
        return len(self.marks) + sum(len(self.runs[key].names) for key, _ in self.ran)


def merge_alike(record: Record, classes: Classes) -> Classes:
    """Merge classes with identical events."""
    columns = [np.stack(part) for part in zip(*record.times, strict=True)]
    columns += [np.stack([start for _, start in record.ran])] if record.ran else []
    if not columns or classes.count == 1:
        return classes
    _, same = np.unique(np.nan_to_num(np.concatenate(columns).round(3), nan=-1.0).T, axis=0, return_inverse=True)
    same = same.reshape(-1)
    first = np.array([int(np.flatnonzero(same == group)[0]) for group in range(int(same.max()) + 1)], np.int64)
    order = np.argsort(classes.first[first])
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return Classes(rank[same][classes.of], classes.first[first[order]])


def list_events(
    record: Record, classes: Classes, shown: Classes, *, scopes: Mapping[str, str], whole_runs: bool
) -> pd.DataFrame:
    """The events of the first device of every shown class: EVENT_COLUMNS and WORK_COLUMNS.

    scopes: of instructions that compute or copy.  whole_runs: each run of operations becomes one event.
    """
    runs = {key: class_index for class_index, key in enumerate(record.runs)}
    operations = _operations(list(record.runs.values()), whole_runs=whole_runs)
    names = operations.names
    labels = list(record.labels)
    words = pd.Index(dict.fromkeys([*(label.name for label in labels), *names]), dtype=object)
    run_codes = words.get_indexer(pd.Index(names, dtype=object)).astype(np.int64)
    parts = []
    for shown_index, device in enumerate(shown.first.tolist()):
        class_index = int(classes.of[device])
        marks = _marks_of(record, labels, words, class_index, devices=shown.members(shown_index))
        ops = _ops_of(record, runs, run_codes, operations, class_index)
        parts.append(_columns(device, marks, ops))
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return _frame(columns, labels, words, scopes)


@dataclass(frozen=True, slots=True)
class _Operations:
    """The operations of all runs, one run after the other."""

    names: list[str]
    ns: Floats
    work: Floats
    """(operations, 3): matrix_flops, vector_ops, memory_bytes."""
    sizes: Ints
    """Of each run, how many."""


def _operations(runs: Sequence[Run], *, whole_runs: bool) -> _Operations:
    """All operations of all runs, concatenated; a run as one event has the name of its longest operation."""
    if whole_runs:
        names = [run.names[int(run.ns.argmax())] for run in runs]
        work = np.array([run.work.sum(axis=0) for run in runs]).reshape(-1, 3)
        return _Operations(names, np.array([run.total_ns for run in runs]), work, np.ones(len(runs), np.int64))
    flat = [name for run in runs for name in run.names]
    ns = np.concatenate([run.ns for run in runs]) if runs else np.zeros(0)
    work = np.concatenate([run.work for run in runs]) if runs else np.zeros((0, 3))
    return _Operations(flat, ns, work, np.array([len(run.names) for run in runs], np.int64))


_Columns = dict[str, Column]


def _marks_of(
    record: Record, labels: list[Label], words: "pd.Index[str]", index: int, *, devices: Sequence[int]
) -> _Columns:
    """The single events of one class; devices: those whose mean work they show."""
    start, end, wait = (np.array([times[field][index] for times in record.times]) for field in range(3))
    label = np.array(record.marks, np.int64)
    recorded = ~np.isnan(start)
    start, end, wait, label = start[recorded], end[recorded], wait[recorded], label[recorded]
    name = words.get_indexer(pd.Index([label.name for label in labels], dtype=object)).astype(np.int64)
    members = list(devices)
    nothing = np.zeros(label.size)
    hops, dcn = (
        np.array([0.0 if of is None else getattr(of, key)[members].mean() for of in (item.network for item in labels)])
        for key in ("ici_byte_hops", "dcn_bytes")
    )
    copied = np.array([float(item.memory_bytes) for item in labels])
    return {
        "label": label, "name": name[label] if label.size else label, "start_ns": start, "duration_ns": end - start,
        "wait_ns": wait, "matrix_flops": nothing, "vector_ops": nothing,
        "memory_bytes": copied[label] if label.size else nothing,
        "ici_byte_hops": hops[label] if label.size else nothing, "dcn_bytes": dcn[label] if label.size else nothing,
    }  # fmt: skip


def _ops_of(record: Record, runs: Mapping[int, int], codes: Ints, operations: _Operations, index: int) -> _Columns:
    """The operations of the runs of one class."""
    durations, sizes = operations.ns, operations.sizes
    which = np.array([runs[key] for key, _ in record.ran], np.int64)
    start = np.array([begun[index] for _, begun in record.ran])
    which, start = which[~np.isnan(start)], start[~np.isnan(start)]
    first = np.concatenate(([0], np.cumsum(sizes)))[:-1] if sizes.size else np.zeros(0, np.int64)
    count = sizes[which] if which.size else which
    before = np.cumsum(count) - count
    operation = np.repeat(first[which] - before, count) + np.arange(int(count.sum()))
    done = np.concatenate(([0.0], np.cumsum(durations)))
    offset = done[operation] - np.repeat(done[first[which]], count)
    return {
        "label": np.full(operation.size, -1, np.int64),
        "name": codes[operation],
        "start_ns": np.repeat(start, count) + offset,
        "duration_ns": durations[operation],
        "wait_ns": np.full(operation.size, np.nan),
        **{name: operations.work[operation, at] for at, name in enumerate(WORK_COLUMNS) if at < 3},
        **{name: np.zeros(operation.size) for name in ("ici_byte_hops", "dcn_bytes")},
    }


def _columns(device: int, *parts: _Columns) -> _Columns:
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    return {**columns, "device": np.full(columns["label"].size, device, np.int32)}


def _frame(columns: _Columns, labels: list[Label], words: "pd.Index[str]", scopes: Mapping[str, str]) -> pd.DataFrame:
    label = columns["label"].astype(np.int64)
    names = pd.Categorical.from_codes(columns["name"].astype(np.int64), categories=words)
    rows = [label.row for label in labels]
    data: dict[str, object] = {
        "device": columns["device"],
        "line": _words([label.line for label in labels], label, _LINES, CORE_LINE),
        "name": names,
        "hlo_op": names,
        "role": _words([label.role for label in labels], label, _ROLES, COMPUTE),
        "payload_bytes": _numbers([np.nan if row is None else row.payload_bytes for row in rows], label),
        **{key: columns[key] for key in ("start_ns", "duration_ns", "wait_ns")},
    }
    words_of_rows = {}
    for column, key in (("collective", "name"), ("scope", "scope"), ("kind", "kind"), ("axes", "axes")):
        values = ["" if row is None else str(getattr(row, key)) for row in rows]
        words_of_rows[column] = _words(values, label, tuple(dict.fromkeys([*values, ""])), "")
    data |= words_of_rows
    data["scope"] = _fill_scopes(words_of_rows["scope"], names, scopes)
    events = pd.DataFrame({key: data[key] for key in EVENT_COLUMNS}).astype(
        {key: kind for key, kind in EVENT_COLUMNS.items() if kind != "category"}
    )
    return events.assign(**{key: columns[key].astype(np.float64) for key in WORK_COLUMNS})


def _fill_scopes(given: pd.Categorical, names: "pd.Categorical[str]", scopes: Mapping[str, str]) -> pd.Categorical:
    """The scopes of events; of those without, that of their instruction."""
    known = pd.Index(dict.fromkeys([*given.categories, *scopes.values()]), dtype=object)
    of_name = known.get_indexer(pd.Index([scopes.get(name, "") for name in names.categories], dtype=object))
    codes = known.get_indexer(given.categories)[np.asarray(given.codes)]
    without = codes == known.get_loc("")
    return pd.Categorical.from_codes(np.where(without, of_name[np.asarray(names.codes)], codes), categories=known)


def _words(values: list[str], label: Ints, known: tuple[str, ...], otherwise: str) -> pd.Categorical:
    """The word of each event, by its label; operations of runs (label -1) get `otherwise`."""
    codes = np.array([known.index(value) for value in [*values, otherwise]], np.int64)
    return pd.Categorical.from_codes(codes[label], categories=pd.Index(known, dtype=object))


def _numbers(values: list[float], label: Ints) -> Floats:
    return np.array([*values, np.nan], np.float64)[label]
