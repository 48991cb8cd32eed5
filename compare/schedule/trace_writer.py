"""Write a played step as a timeline.

Operations on the TensorCore are on the line `XLA Ops`, asynchronous ones on `Async XLA Ops`, named by their
instructions, as in a TPU's own profile.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from compare.hlo.collective import Collective
from compare.schedule.device_classes import Classes, merge_classes, number_rows
from compare.schedule.exchange import NetworkWork
from compare.schedule.play import PlayedStep
from compare.schedule.schedule_program import Run
from compare.schedule.step import Compute, Container, Exchange, LocalCopy, Wait
from compare.timeline.arrays import Column, Floats, Ints, Mask
from compare.timeline.timeline import (
    COMMUNICATION,
    COMPUTE,
    CONTAINER,
    EVENT_COLUMNS,
    PART,
    STEP_COLUMNS,
    WORK_COLUMNS,
    Timeline,
    add_overlap,
)

CORE_LINE, BESIDE_LINE = "XLA Ops", "Async XLA Ops"
MOST_EVENTS = 2_000_000
"""Beyond this, all compute between two points where something waits or starts becomes one event."""
_ROLES = (COMPUTE, COMMUNICATION, CONTAINER, PART)
_LINES = (CORE_LINE, BESIDE_LINE)


def write_timeline(played: PlayedStep, name: str) -> Timeline:
    """name: of the slice.  Classes to which the very same happens are shown once."""
    step = played.step
    trace = _Trace.of(played)
    shown = trace.merge_alike(step.classes)
    whole_runs = trace.num_events * shown.count > MOST_EVENTS
    if whole_runs:
        step.notes.add("what is computed between two communications is shown as one event, by its longest operation")
    given = _list_events(trace, step.classes, shown, scopes=step.scopes, whole_runs=whole_runs)
    devices = shown.first.astype(np.int32)
    zero = np.zeros(devices.size)
    steps = pd.DataFrame({"device": devices, "step": 0, "start_ns": zero, "duration_ns": zero + played.end_ns})
    steps = steps.astype(STEP_COLUMNS)
    return Timeline(
        source="modelled",
        label=f"modelled for {name}",
        events=add_overlap(given, steps),
        steps=steps,
        stands_for={int(first): shown.members(index) for index, first in enumerate(shown.first.tolist())},
        notes=step.notes.lines,
    )


@dataclass(frozen=True, slots=True)
class _Label:
    """The description of an event."""

    name: str
    role: str
    line: str = CORE_LINE
    row: Collective | None = None
    network: NetworkWork | None = None
    memory_bytes: int = 0
    """Of an asynchronous local copy."""


_Mark = tuple[_Label, Floats, Floats, Floats | None, Mask]
"""A single event: its start, end and wait, and the classes that have it."""


def _list_marks(played: PlayedStep) -> Iterator[_Mark]:
    """All events but operations.  Of what is asynchronous they come at its end, from start to end."""
    entries, times = played.step.entries, played.times
    for entry, at in zip(entries, times, strict=True):
        if isinstance(entry, Exchange):
            row, network = entry.meeting.row, entry.meeting.network
            if entry.is_start:
                yield _Label(entry.name, PART, row=row), at.begun, at.begun, None, entry.active
            else:
                label = _Label(entry.name, COMMUNICATION, row=row, network=network)
                yield label, at.begun, at.end, at.ready - at.begun, entry.active
        elif isinstance(entry, Container):
            yield _Label(entry.name, CONTAINER), times[entry.begun].begun, at.end, None, entry.active
        elif isinstance(entry, Wait):
            yield from _list_ends(played, entry, at.begun, at.end)
    for start in played.step.endless:
        yield _fly(played, start, times[start].end)


def _list_ends(played: PlayedStep, wait: Wait, begun: Floats, end: Floats) -> Iterator[_Mark]:
    started = played.step.entries[wait.begun]
    if isinstance(started, LocalCopy):
        waited = wait.active & (end > begun)
        if waited.any():
            yield _Label(wait.name, COMPUTE), begun, end, None, waited
        label = _Label(started.name, PART, BESIDE_LINE, memory_bytes=started.num_bytes)
        yield label, played.times[wait.begun].begun, end, None, wait.active
    elif isinstance(started, Exchange):
        yield _Label(wait.name, PART, row=started.meeting.row), begun, end, None, wait.active
        yield _fly(played, wait.begun, end)


def _fly(played: PlayedStep, start: int, end: Floats) -> _Mark:
    """An asynchronous collective as a profile shows it: from start to done, even if all data arrived earlier."""
    entry, at = played.step.entries[start], played.times[start]
    assert isinstance(entry, Exchange)
    label = _Label(entry.name, COMMUNICATION, BESIDE_LINE, entry.meeting.row, entry.meeting.network)
    return label, at.begun, end, at.ready - at.begun, entry.active


@dataclass(frozen=True, slots=True, eq=False)
class _Trace:
    """Events of all classes; a class that does not have one has NaN as its start."""

    labels: dict[_Label, int]
    marks: Ints
    """The label of each single event."""
    times: Floats
    """(single events, 3, classes): start, end and wait."""
    runs: Sequence[Run]
    """Each once."""
    ran: Ints
    """Indices of runs, in order of execution."""
    begun: Floats
    """(executions of runs, classes)."""

    @classmethod
    def of(cls, played: PlayedStep) -> "_Trace":
        labels: dict[_Label, int] = {}
        marks, times = list[int](), list[tuple[Floats, Floats, Floats]]()
        for label, start, end, wait, active in _list_marks(played):
            marks.append(labels.setdefault(label, len(labels)))
            nothing = np.full(start.size, np.nan)
            times.append((np.where(active, start, nothing), end, nothing if wait is None else wait))
        computed = [
            (entry, at.begun)
            for entry, at in zip(played.step.entries, played.times, strict=True)
            if isinstance(entry, Compute)
        ]
        runs = {id(entry.run): entry.run for entry, _ in computed}
        place = {key: index for index, key in enumerate(runs)}
        count = played.step.classes.count
        return cls(
            labels, np.array(marks, np.int64), np.array(times).reshape(-1, 3, count), list(runs.values()),
            np.array([place[id(entry.run)] for entry, _ in computed], np.int64),
            np.array([np.where(entry.active, begun, np.nan) for entry, begun in computed]).reshape(-1, count),
        )  # fmt: skip

    @property
    def num_events(self) -> int:
        """The most events that one class can have."""
        return self.marks.size + sum(len(self.runs[index].names) for index in self.ran.tolist())

    def merge_alike(self, classes: Classes) -> Classes:
        """Merge classes with identical events."""
        count = classes.count
        columns = np.concatenate([self.times.reshape(-1, count), self.begun])
        same = number_rows(np.nan_to_num(columns.round(3), nan=-1.0).T) if columns.size else np.zeros(count, np.int64)
        return merge_classes(same[classes.of])


def _list_events(
    trace: _Trace, classes: Classes, shown: Classes, *, scopes: Mapping[str, str], whole_runs: bool
) -> pd.DataFrame:
    """The events of the first device of every shown class: EVENT_COLUMNS and WORK_COLUMNS.

    scopes: of instructions that compute or copy.  whole_runs: each run of operations becomes one event.
    """
    operations = _operations(trace.runs, whole_runs=whole_runs)
    names = operations.names
    labels = list(trace.labels)
    words = pd.Index(dict.fromkeys([*(label.name for label in labels), *names]), dtype=object)
    run_codes = words.get_indexer(pd.Index(names, dtype=object)).astype(np.int64)
    parts = []
    for shown_index, device in enumerate(shown.first.tolist()):
        class_index = int(classes.of[device])
        marks = _marks_of(trace, labels, words, class_index, devices=shown.members(shown_index))
        ops = _ops_of(trace, run_codes, operations, class_index)
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
    trace: _Trace, labels: list[_Label], words: "pd.Index[str]", index: int, *, devices: Sequence[int]
) -> _Columns:
    """The single events of one class; devices: those whose mean work they show."""
    happens = ~np.isnan(trace.times[:, 0, index])
    label = trace.marks[happens]
    start, end, wait = trace.times[happens, :, index].T
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


def _ops_of(trace: _Trace, codes: Ints, operations: _Operations, index: int) -> _Columns:
    """The operations of the runs of one class."""
    durations, sizes = operations.ns, operations.sizes
    happens = ~np.isnan(trace.begun[:, index])
    which, start = trace.ran[happens], trace.begun[happens, index]
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


def _frame(columns: _Columns, labels: list[_Label], words: "pd.Index[str]", scopes: Mapping[str, str]) -> pd.DataFrame:
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
