"""Join profile operations to the collectives that they execute; each communication becomes one timeline event."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.profile.join.async_pairing import (
    DONE,
    INSIDE,
    WHOLE,
    CommunicationEvents,
    Communications,
    CoreEvents,
    MatchedCalls,
    match_calls,
    match_halves,
)
from compare.profile.join.carried_programs import ProfilePrograms
from compare.profile.join.operations import (
    UNKNOWN,
    Operation,
    ProfileFields,
    add_start_facts,
    identify_operation,
    start_names,
)
from compare.profile.xplane.device_events import DeviceEvents, words_by_code
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.columns import DETAIL_COLUMNS, EVENT_COLUMNS
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, COPY, PART

_ROLES = (COMPUTE, COMMUNICATION, CONTAINER, PART, COPY)
_SIGNS = ("module", "hlo_op", "text", "category", "tf_op")
_MOST = 0.5
_NAMED_OTHERWISE = {"program": "module", "source": "source", "source_stack": "source_stack", "path": "tf_op"}
"""Columns of a timeline -> those of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    events: pd.DataFrame
    """Columns of EVENT_COLUMNS and DETAIL_COLUMNS."""
    asides: pd.DataFrame
    """The same columns, for events beside the main line that are no communication."""
    unjoined_events: int
    foreign_events: int
    """Operations that are not in the program that is known for them."""
    notes: tuple[str, ...]

    @property
    def is_foreign(self) -> bool:
        """Whether most operations are not in their program."""
        return self.foreign_events > _MOST * (len(self.events) + len(self.asides))


def join(raw: DeviceEvents, programs: ProfilePrograms) -> Joined:
    """The events of a timeline.  `TimingError` where the axes fit no program of the profile."""
    return _Join(raw, programs).join()


class _Join:
    """The events of a profile with their operations.  An event of a combination of _SIGNS has the operation of that."""

    def __init__(self, raw: DeviceEvents, programs: ProfilePrograms):
        self._raw, self._events, self._programs = raw, raw.events, programs
        first_events, self._of_event = _distinct(raw.events)
        modules = _words(raw.events, "module", first_events)
        self._operations = add_start_facts(list(_identify_operations(raw.events, first_events, programs)), modules)
        programs.check()
        self._names = _name_collectives(modules, self._operations)
        self._starts: Floats = raw.events["start_ns"].to_numpy(np.float64)
        self._ends: Floats = self._starts + raw.events["duration_ns"].to_numpy(np.float64)
        self._comms = np.flatnonzero(self._flags("kind"))
        self._parts = self._list_parts()

    def _flags(self, name: str) -> Mask:
        """Of each event, whether its operation has this."""
        return np.array([bool(getattr(each, name)) for each in self._operations], np.bool_)[self._of_event]

    @property
    def _anonymous(self) -> Mask:
        """Calls of unknown content: communication only if another core shows a communication for them."""
        # `call-start` on the main line and an all-reduce on `SparseCore 0: Sparse Core Ops` are one communication; the
        # same call without any is work, and no communication.
        unknown = [operation.wraps and operation.kind == UNKNOWN for operation in self._operations]
        return np.array(unknown, np.bool_)[self._of_event]

    def join(self) -> Joined:
        communications = match_halves(self._parts)
        links = self._link_calls(communications)
        self._of_event[self._comms[links.calls]] = self._of_event[self._comms[links.works]]
        chosen = communications.chosen & ~self._anonymous[self._comms]
        chosen[links.works] = False
        communications = replace(communications, chosen=chosen)
        role = self._find_roles(communications)
        ends = self._ends.copy()
        ends[self._comms] = communications.ends
        enclosing = self._find_enclosing(role) if self._raw.one_at_a_time else np.empty(0, np.int64)
        role[enclosing] = _ROLES.index(CONTAINER)
        aside = ~self._events["main"].to_numpy() & (self._anonymous | ~self._flags("kind"))
        is_comm = role == _ROLES.index(COMMUNICATION)
        events = self._frame(role, ends)
        return Joined(
            events=events[~aside].reset_index(drop=True),
            asides=events[aside].reset_index(drop=True),
            unjoined_events=int((is_comm & ~self._flags("joined")).sum()),
            foreign_events=int(self._flags("foreign").sum()),
            notes=(
                *self._programs.notes,
                *_left_aside(self._events, aside),
                *_cut(communications),
                *self._note_foreign(),
                *self._note_shown_bytes(is_comm),
                *[f"{enclosing.size} operations enclose communication on the same line: taken for loops"][
                    : enclosing.size
                ],
            ),
        )

    def _list_parts(self) -> CommunicationEvents:
        events, of_comm = self._events.iloc[self._comms], self._of_event[self._comms]
        spanning = _on(events, self._raw.spanning_lines)
        half = np.array([operation.half for operation in self._operations], np.int8)[of_comm]
        half = np.where(_on(events, self._raw.other_cores), INSIDE, np.where(spanning & (half == INSIDE), WHOLE, half))
        words = np.array([self._names, start_names(self._operations, self._names)], dtype=object)
        group = pd.factorize(words.ravel())[0].astype(np.int64).reshape(words.shape)[spanning.astype(int), of_comm]
        for name in ("device", "run"):
            numbers = pd.factorize(events[name].to_numpy())[0]
            group = pd.factorize(group * (numbers.max(initial=0) + 1) + numbers)[0]
        starts, ends = self._starts[self._comms], self._ends[self._comms]
        return CommunicationEvents(group=group, half=half.astype(np.int8), own_line=spanning, starts=starts, ends=ends)

    def _link_calls(self, communications: Communications) -> MatchedCalls:
        """Calls of other cores, matched with those cores' events; indices into `_comms`."""
        device = self._events["device"].to_numpy(np.int64)[self._comms]

        def seen(selected: Mask) -> CoreEvents:
            index = np.flatnonzero(selected & communications.chosen)
            return CoreEvents(
                event=index,
                device=device[index],
                kind=[self._operations[code].kind for code in self._of_event[self._comms[index]]],
                starts=self._parts.starts[index],
                ends=communications.ends[index],
            )

        return match_calls(seen(self._flags("wraps")[self._comms]), seen(self._parts.half == INSIDE))

    def _find_roles(self, communications: Communications) -> NDArray[np.int8]:
        """The role of each event, as an index into _ROLES."""
        compute, communication, container, part, copy = range(len(_ROLES))
        waiting = compute if self._raw.copies_compute else copy
        alone = [
            container if operation.encloses else part if operation.waits else waiting if operation.copies else compute
            for operation in self._operations
        ]
        role = np.array(alone, np.int8)[self._of_event]
        role[self._comms] = np.where(communications.chosen, communication, part)
        return role

    def _find_enclosing(self, role: NDArray[np.int8]) -> Ints:
        """Main-line events that contain a communication on the same line: whatever their name, loops around it."""
        main, devices = self._events["main"].to_numpy(), self._events["device"].to_numpy()
        inner = self._comms[(self._parts.ends > self._parts.starts) & np.isin(self._parts.half, (WHOLE, DONE))]
        outer, inner = np.flatnonzero(main & (role == _ROLES.index(COMPUTE))), inner[main[inner]]
        enclosing = [np.empty(0, np.int64)]
        for device in np.unique(devices[inner]):
            inner_here = inner[devices[inner] == device]
            inner_here = inner_here[np.argsort(self._starts[inner_here], kind="stable")]
            outer_here = outer[devices[outer] == device]
            next_one = np.searchsorted(self._starts[inner_here], self._starts[outer_here], side="right")
            # `region.4` from 0 to 100 around an all-reduce from 10 to 30 on one line, which shows one operation at a
            # time.
            next_end = np.append(self._ends[inner_here], np.inf)[next_one]
            enclosing.append(outer_here[next_end < self._ends[outer_here]])
        return np.concatenate(enclosing)

    def _frame(self, role: NDArray[np.int8], ends: Floats) -> pd.DataFrame:
        events = self._events
        payload, shown = self._payload_bytes, self._flags("kind")
        columns = {
            **{name: events[name].array for name in ("device", "line", "name", "hlo_op", "start_ns", "wait_ns")},
            **{
                name: words_by_code(self._of_event, [str(getattr(each, name)) for each in self._operations])
                for name in ("scope", "kind", "axes", "moves")
            },
            "role": words_by_code(role.astype(np.int64), _ROLES),
            "collective": words_by_code(self._of_event, self._names),
            # By the program or the line of HLO; else the bytes that the trace itself shows.
            "payload_bytes": np.where(np.isnan(payload) & shown, events["shown_bytes"].to_numpy(np.float64), payload),
            "duration_ns": ends - self._starts,
            **{name: events[name].array for name in ("category", "flops", "accessed_bytes", "core_energy_j")},
            **{name: events[column].array for name, column in _NAMED_OTHERWISE.items()},
            "group_size": np.array([each.group_size for each in self._operations], np.float64)[self._of_event],
        }
        return pd.DataFrame({name: columns[name] for name in (*EVENT_COLUMNS, *DETAIL_COLUMNS)})

    @property
    def _payload_bytes(self) -> Floats:
        """NaN where neither the program nor a line of HLO tells it."""
        return np.array([each.payload_bytes for each in self._operations], np.float64)[self._of_event]

    def _note_shown_bytes(self, is_comm: Mask) -> Iterator[str]:
        shown = is_comm & np.isnan(self._payload_bytes) & self._events["shown_bytes"].notna().to_numpy()
        if count := int(shown.sum()):
            yield f"the payload of {count} communications is the trace's own, by shape_with_layout or bytes_accessed"

    def _note_foreign(self) -> Iterator[str]:
        """A note on operations that are not in their program."""
        foreign = int(self._flags("foreign").sum())
        if foreign:
            share = foreign / len(self._events)
            most = "most operations, " if share > _MOST else ""
            ask = "; is it another program's?" if share > _MOST else ""
            count = f"{foreign} of {len(self._events)}"
            yield f"{most}{count}, are not in the program that is known for them{ask}"


def _distinct(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """(first event of each distinct combination of _SIGNS, combination of each event)."""
    codes = np.zeros(len(events), np.int64)
    for name in _SIGNS:
        column = events[name].array
        codes, _ = pd.factorize(codes * max(len(column.categories), 1) + column.codes)
    return np.unique(codes, return_index=True)[1], codes


def _words(events: pd.DataFrame, name: str, rows: Ints) -> list[str]:
    column = events[name].array
    return [str(column.categories[code]) for code in column.codes[rows]]


def _identify_operations(events: pd.DataFrame, first_events: Ints, programs: ProfilePrograms) -> Iterator[Operation]:
    signatures = list(zip(*(_words(events, name, first_events) for name in _SIGNS), strict=True))
    lines: dict[tuple[str, str], set[str]] = {}
    for module, name, text, *_ in signatures:
        lines.setdefault((module, name), set()).add(text)
    for module, name, text, *signs in signatures:
        # One event may have the HLO line that another of the same name lacks.
        known = lines[module, name] - {""}
        fields = ProfileFields(name, text or (known.pop() if len(known) == 1 else ""), *signs)
        yield identify_operation(fields, programs.find(module), programs.mesh)


def _name_collectives(modules: Sequence[str], operations: Sequence[Operation]) -> list[str]:
    """The collective of each combination, prefixed with its program if several programs have one of that name."""
    homes: dict[str, set[str]] = {}
    for module, operation in zip(modules, operations, strict=True):
        homes.setdefault(operation.collective, set()).add(module)
    return [
        f"{module}/{operation.collective}"
        if operation.collective and len(homes[operation.collective]) > 1
        else operation.collective
        for module, operation in zip(modules, operations, strict=True)
    ]


def _on(events: pd.DataFrame, lines: Set[str]) -> Mask:
    column = events["line"].array
    known = np.array([*(line in lines for line in column.categories), False], np.bool_)
    return known[np.asarray(column.codes, np.int64)]


def _left_aside(events: pd.DataFrame, aside: Mask) -> Iterator[str]:
    """Notes on omitted events: local copies and slices, and work of other cores."""
    for line, count in events["line"][aside].value_counts().items():
        if count:
            yield f"{count} events on {line!r} are neither communication nor the device's own compute: left out"


def _cut(communications: Communications) -> Iterator[str]:
    for missing, seen in (("end", communications.unfinished), ("start", communications.unbegun)):
        if count := int((seen & communications.chosen).sum()):
            yield f"{count} asynchronous communications have no {missing} in the profile: what is seen of them counts"
