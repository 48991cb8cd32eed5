"""Write a simulated step as a timeline: its events are named by their instructions, as in a TPU's own profile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from compare.schedule.device_classes import Classes, merge_classes, number_rows
from compare.schedule.exchange import NetworkWork
from compare.schedule.schedule_program import Run
from compare.schedule.step import Compute, Container, Exchange, LocalCopy, Wait
from compare.schedule.step_simulator import SimulatedStep
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.modelled import BESIDE_LINE, Events, Label, make_timeline
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, PART, Timeline

MOST_EVENTS = 2_000_000
"""Beyond this, all compute between two points where something waits or starts becomes one event."""


def write_timeline(simulated: SimulatedStep, name: str) -> Timeline:
    """name: of the slice.  Classes to which the very same happens are shown once."""
    step = simulated.step
    marks, runs = _Marks.of(simulated), _Runs.of(simulated)
    shown = _merge_alike(step.classes, marks, runs)
    if (marks.kind.size + runs.num_operations) * shown.count > MOST_EVENTS:
        step.notes.add("what is computed between two communications is shown as one event, by its longest operation")
        runs = replace(runs, runs=list(map(_join_operations, runs.runs)))
    labels = [kind.label for kind in marks.kinds]
    operations = _Operations.of(runs, labels, step.scopes)
    parts = []
    for index in range(shown.count):
        members, class_index = shown.members(index), int(step.classes.of[shown.first[index]])
        parts.append((members, _join(marks.list_events(class_index, members), operations.list_events(class_index))))
    return make_timeline(parts, labels, end_ns=simulated.end_ns, name=f"modelled for {name}", notes=step.notes.lines)


def _merge_alike(classes: Classes, marks: "_Marks", runs: "_Runs") -> Classes:
    """Merge classes with identical events."""
    columns = np.concatenate([marks.times.reshape(-1, classes.count), runs.begun])
    if not columns.size:
        return merge_classes(np.zeros_like(classes.of))
    return merge_classes(number_rows(np.nan_to_num(columns.round(3), nan=-1.0).T)[classes.of])


@dataclass(frozen=True, slots=True)
class _Kind:
    """Of a mark."""

    label: Label
    network: NetworkWork | None = None
    memory_bytes: int = 0
    """Of an asynchronous local copy."""


_Mark = tuple[_Kind, Floats, Floats, Floats | None, Mask]
"""An event that is no operation: its start, end and wait, and the classes that have it."""


def _list_marks(simulated: SimulatedStep) -> Iterator[_Mark]:
    """What is asynchronous comes at its end, from start to end."""
    scopes = simulated.step.scopes
    for entry, at in zip(simulated.step.entries, simulated.times, strict=True):
        if isinstance(entry, Exchange):
            row, network = entry.rendezvous.row, entry.rendezvous.network
            if entry.is_start:
                yield _Kind(Label.of(entry.name, PART, row)), at.begun, at.begun, None, entry.active
            else:
                kind = _Kind(Label.of(entry.name, COMMUNICATION, row), network)
                yield kind, at.begun, at.end, at.ready - at.begun, entry.active
        elif isinstance(entry, Container):
            yield _Kind(Label(entry.name, CONTAINER)), simulated.times[entry.begun].begun, at.end, None, entry.active
        elif isinstance(entry, Wait):
            started, begun = simulated.step.entries[entry.begun], simulated.times[entry.begun].begun
            if isinstance(started, LocalCopy):
                waited = entry.active & (at.end > at.begun)
                if waited.any():
                    label = Label(entry.name, COMPUTE, scope=scopes.get(entry.name, ""))
                    yield _Kind(label), at.begun, at.end, None, waited
                label = Label(started.name, PART, BESIDE_LINE, scope=scopes.get(started.name, ""))
                yield _Kind(label, memory_bytes=started.num_bytes), begun, at.end, None, entry.active
            elif isinstance(started, Exchange):
                yield _Kind(Label.of(entry.name, PART, started.rendezvous.row)), at.begun, at.end, None, entry.active
                yield _fly(simulated, entry.begun, at.end, entry.active)
    for start, classes in simulated.step.unawaited:
        yield _fly(simulated, start, simulated.times[start].end, classes)


def _fly(simulated: SimulatedStep, start: int, end: Floats, classes: Mask) -> _Mark:
    """An asynchronous collective as a profile shows it: from start to done, even if all data arrived earlier."""
    entry, at = simulated.step.entries[start], simulated.times[start]
    assert isinstance(entry, Exchange)
    kind = _Kind(Label.of(entry.name, COMMUNICATION, entry.rendezvous.row, BESIDE_LINE), entry.rendezvous.network)
    return kind, at.begun, end, at.ready - at.begun, entry.active & classes


@dataclass(frozen=True, slots=True, eq=False)
class _Marks:
    """The marks of all classes; a class that does not have one has NaN as its start."""

    kinds: Sequence[_Kind]
    kind: Ints
    times: Floats
    """(marks, 3, classes): start, end and wait."""

    @classmethod
    def of(cls, simulated: SimulatedStep) -> "_Marks":
        kinds: dict[_Kind, int] = {}
        kind, times = list[int](), list[tuple[Floats, Floats, Floats]]()
        nothing = np.full(simulated.step.classes.count, np.nan)
        for each, start, end, wait, active in _list_marks(simulated):
            kind.append(kinds.setdefault(each, len(kinds)))
            times.append((np.where(active, start, nothing), end, nothing if wait is None else wait))
        return cls(list(kinds), np.array(kind, np.int64), np.array(times).reshape(-1, 3, nothing.size))

    def list_events(self, class_index: int, members: Sequence[int]) -> Events:
        """members: the devices whose mean work they show."""
        happens = ~np.isnan(self.times[:, 0, class_index])
        start, end, wait = self.times[happens, :, class_index].T
        work = np.zeros((len(self.kinds), 5))
        for place, kind in enumerate(self.kinds):
            work[place, 2] = kind.memory_bytes
            if kind.network is not None:
                networks = kind.network.ici_byte_hops, kind.network.dcn_bytes
                work[place, 3:] = [amounts[list(members)].mean() for amounts in networks]
        kinds = self.kind[happens]
        return Events(kinds, start, end - start, wait, work[kinds])


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Executions of runs of operations."""

    runs: Sequence[Run]
    """Each once."""
    which: Ints
    """(executions,)"""
    begun: Floats
    """(executions, classes); NaN for a class that does not execute it."""

    @classmethod
    def of(cls, simulated: SimulatedStep) -> "_Runs":
        runs: dict[int, tuple[int, Run]] = {}
        which, begun = list[int](), list[Floats]()
        for entry, at in zip(simulated.step.entries, simulated.times, strict=True):
            if isinstance(entry, Compute):
                which.append(runs.setdefault(id(entry.run), (len(runs), entry.run))[0])
                begun.append(np.where(entry.active, at.begun, np.nan))
        count = simulated.step.classes.count
        return cls([run for _, run in runs.values()], np.array(which, np.int64), np.array(begun).reshape(-1, count))

    @property
    def num_operations(self) -> int:
        """The most that one class can have."""
        return int(np.array([len(run.names) for run in self.runs], np.int64)[self.which].sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Operations:
    """The operations of all runs, one run after the other."""

    runs: _Runs
    label: Ints
    ns: Floats
    work: Floats
    """(operations, 5)"""
    sizes: Ints
    """Of each run, how many."""

    @classmethod
    def of(cls, runs: _Runs, labels: list[Label], scopes: Mapping[str, str]) -> "_Operations":
        """Adds to the labels."""
        names = [name for run in runs.runs for name in run.names]
        ns = np.concatenate([np.zeros(0), *(run.ns for run in runs.runs)])
        work = np.concatenate([np.zeros((0, 3)), *(run.work for run in runs.runs)])
        sizes = np.array([len(run.names) for run in runs.runs], np.int64)
        place = {name: len(labels) + index for index, name in enumerate(dict.fromkeys(names))}
        labels += [Label(name, COMPUTE, scope=scopes.get(name, "")) for name in place]
        label = np.array([place[name] for name in names], np.int64)
        return cls(runs, label, ns, np.pad(work, ((0, 0), (0, 2))), sizes)

    def list_events(self, class_index: int) -> Events:
        happens = ~np.isnan(self.runs.begun[:, class_index])
        which, start = self.runs.which[happens], self.runs.begun[happens, class_index]
        first = np.cumsum(self.sizes) - self.sizes
        count = self.sizes[which]
        before = np.cumsum(count) - count
        operation = np.repeat(first[which] - before, count) + np.arange(int(count.sum()))
        done = np.concatenate(([0.0], np.cumsum(self.ns)))
        offset, ns = done[operation] - np.repeat(done[first[which]], count), self.ns[operation]
        begun = np.repeat(start, count) + offset
        return Events(self.label[operation], begun, ns, np.full_like(ns, np.nan), self.work[operation])


def _join_operations(run: Run) -> Run:
    """As one, with the name of the longest."""
    name, work = run.names[int(run.ns.argmax())], run.work.sum(axis=0, keepdims=True)
    return replace(run, names=(name,), ns=np.array([run.total_ns]), work=work)


def _join(*parts: Events) -> Events:
    columns = zip(
        *((each.label, each.start_ns, each.duration_ns, each.wait_ns, each.work) for each in parts), strict=True
    )
    return Events(*(np.concatenate(column) for column in columns))
