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
from compare.profile.join.operations import (
    UNKNOWN,
    Operation,
    ProfileFields,
    add_start_facts,
    identify_operation,
    start_names,
)
from compare.profile.join.programs import ProfilePrograms
from compare.profile.xplane.device_events import DeviceEvents, words_by_code
from compare.timeline.arrays import Floats, Ints, Mask
from compare.timeline.timeline import COMMUNICATION, COMPUTE, CONTAINER, COPY, DETAIL_COLUMNS, EVENT_COLUMNS, PART

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
    first_events, of_event = _distinct(raw.events)
    operations = add_start_facts(
        list(_identify_operations(raw.events, first_events, programs)), _words(raw.events, "module", first_events)
    )
    programs.check()
    names = _collectives(raw.events, first_events, operations)
    comms = np.flatnonzero(_flags(operations, "kind")[of_event])
    parts = _parts(raw, operations, names, of_event, comms)
    communications = match_halves(parts)
    links = _links(raw, operations, of_event[comms], parts, communications, comms)
    of_event[comms[links.calls]] = of_event[comms[links.works]]
    chosen = communications.chosen & ~_anonymous(operations)[of_event[comms]]
    chosen[links.works] = False
    communications = replace(communications, chosen=chosen)
    role, ends = _roles(raw, operations, of_event, comms, communications)
    enclosing = _enclosing(raw, role, parts, comms) if raw.one_at_a_time else np.empty(0, np.int64)
    role[enclosing] = _ROLES.index(CONTAINER)
    aside = ~raw.events["main"].to_numpy() & (_anonymous(operations) | ~_flags(operations, "kind"))[of_event]
    unjoined = (role == _ROLES.index(COMMUNICATION)) & ~_flags(operations, "joined")[of_event]
    events = _events(raw.events, operations, names, of_event, role, ends)
    return Joined(
        events=events[~aside].reset_index(drop=True),
        asides=events[aside].reset_index(drop=True),
        unjoined_events=int(unjoined.sum()),
        foreign_events=int(_flags(operations, "foreign")[of_event].sum()),
        notes=(
            *programs.notes,
            *_left_aside(raw.events, aside),
            *_cut(communications),
            *_foreign(raw.events, operations, of_event),
            *_shown_bytes(raw.events, operations, of_event, role),
            *[f"{enclosing.size} operations enclose communication on the same line: taken for loops"][: enclosing.size],
        ),
    )


def _anonymous(operations: Sequence[Operation]) -> Mask:
    """Calls of unknown content: communication only if another core shows a communication for them."""
    # `call-start` on the main line and an all-reduce on `SparseCore 0: Sparse Core Ops` are one communication; the same
    # call without any is work, and no communication.
    return np.array([operation.wraps and operation.kind == UNKNOWN for operation in operations], np.bool_)


def _links(
    raw: DeviceEvents,
    operations: Sequence[Operation],
    of_comm: Ints,
    parts: CommunicationEvents,
    communications: Communications,
    comms: Ints,
) -> MatchedCalls:
    """Calls of other cores, matched with those cores' events; indices into `comms`."""
    device = raw.events["device"].to_numpy(np.int64)[comms]

    def seen(selected: Mask) -> CoreEvents:
        index = np.flatnonzero(selected & communications.chosen)
        kinds = [operations[code].kind for code in of_comm[index]]
        return CoreEvents(
            event=index, device=device[index], kind=kinds, starts=parts.starts[index], ends=communications.ends[index]
        )

    return match_calls(seen(_flags(operations, "wraps")[of_comm]), seen(parts.half == INSIDE))


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


def _collectives(events: pd.DataFrame, first_events: Ints, operations: Sequence[Operation]) -> list[str]:
    """The collective of each combination, prefixed with its program if several programs have one of that name."""
    modules = _words(events, "module", first_events)
    homes: dict[str, set[str]] = {}
    for module, operation in zip(modules, operations, strict=True):
        homes.setdefault(operation.collective, set()).add(module)
    return [
        f"{module}/{operation.collective}"
        if operation.collective and len(homes[operation.collective]) > 1
        else operation.collective
        for module, operation in zip(modules, operations, strict=True)
    ]


def _flags(operations: Sequence[Operation], name: str) -> Mask:
    return np.array([bool(getattr(operation, name)) for operation in operations], np.bool_)


def _parts(
    raw: DeviceEvents, operations: Sequence[Operation], names: Sequence[str], of_event: Ints, comms: Ints
) -> CommunicationEvents:
    events = raw.events.iloc[comms]
    spanning = _on(events, raw.spanning_lines)
    half = np.array([operation.half for operation in operations], np.int8)[of_event[comms]]
    half = np.where(_on(events, raw.other_cores), INSIDE, np.where(spanning & (half == INSIDE), WHOLE, half))
    words = np.array([names, start_names(operations, names)], dtype=object)
    group = pd.factorize(words.ravel())[0].astype(np.int64).reshape(words.shape)[spanning.astype(int), of_event[comms]]
    for name in ("device", "run"):
        numbers = pd.factorize(events[name].to_numpy())[0]
        group = pd.factorize(group * (numbers.max(initial=0) + 1) + numbers)[0]
    starts = events["start_ns"].to_numpy(np.float64)
    ends = starts + events["duration_ns"].to_numpy(np.float64)
    return CommunicationEvents(group=group, half=half.astype(np.int8), own_line=spanning, starts=starts, ends=ends)


def _on(events: pd.DataFrame, lines: Set[str]) -> Mask:
    column = events["line"].array
    known = np.array([*(line in lines for line in column.categories), False], np.bool_)
    return known[np.asarray(column.codes, np.int64)]


def _roles(
    raw: DeviceEvents, operations: Sequence[Operation], of_event: Ints, comms: Ints, communications: Communications
) -> tuple[NDArray[np.int8], Floats]:
    """The role of each event, as an index into _ROLES, and its end in ns."""
    compute, communication, container, part, copy = range(len(_ROLES))
    waiting = compute if raw.copies_compute else copy
    alone = [
        container if operation.encloses else part if operation.waits else waiting if operation.copies else compute
        for operation in operations
    ]
    role = np.array(alone, np.int8)[of_event]
    role[comms] = np.where(communications.chosen, communication, part)
    ends = raw.events["start_ns"].to_numpy(np.float64) + raw.events["duration_ns"].to_numpy(np.float64)
    ends[comms] = communications.ends
    return role, ends


def _enclosing(raw: DeviceEvents, role: NDArray[np.int8], parts: CommunicationEvents, comms: Ints) -> Ints:
    """Main-line events that contain a communication on the same line: whatever their name, they are loops around it."""
    main = raw.events["main"].to_numpy()
    inner = comms[(parts.ends > parts.starts) & np.isin(parts.half, (WHOLE, DONE))]
    outer, inner = np.flatnonzero(main & (role == _ROLES.index(COMPUTE))), inner[main[inner]]
    enclosing: list[Ints] = []
    starts = raw.events["start_ns"].to_numpy(np.float64)
    ends = starts + raw.events["duration_ns"].to_numpy(np.float64)
    devices = raw.events["device"].to_numpy()
    for device in np.unique(devices[inner]):
        inner_here = inner[devices[inner] == device]
        inner_here = inner_here[np.argsort(starts[inner_here], kind="stable")]
        outer_here = outer[devices[outer] == device]
        next_one = np.searchsorted(starts[inner_here], starts[outer_here], side="right")
        # `region.4` from 0 to 100 around an all-reduce from 10 to 30 on one line, which shows one operation at a time.
        next_end = np.append(ends[inner_here], np.inf)[next_one]
        enclosing.append(outer_here[next_end < ends[outer_here]])
    return np.concatenate(enclosing) if enclosing else np.empty(0, np.int64)


def _events(
    events: pd.DataFrame,
    operations: Sequence[Operation],
    names: Sequence[str],
    of_event: Ints,
    role: NDArray[np.int8],
    ends: Floats,
) -> pd.DataFrame:
    words = {
        name: words_by_code(of_event, [str(getattr(operation, name)) for operation in operations])
        for name in ("scope", "kind", "axes", "moves")
    }
    columns = {
        **{name: events[name].array for name in ("device", "line", "name", "hlo_op", "start_ns", "wait_ns")},
        **words,
        "role": words_by_code(role.astype(np.int64), _ROLES),
        "collective": words_by_code(of_event, names),
        "payload_bytes": _payload_bytes(events, operations, of_event),
        "duration_ns": ends - events["start_ns"].to_numpy(np.float64),
        **{name: events[name].array for name in ("category", "flops", "accessed_bytes", "core_energy_j")},
        **{name: events[column].array for name, column in _NAMED_OTHERWISE.items()},
        "group_size": np.array([operation.group_size for operation in operations], np.float64)[of_event],
    }
    return pd.DataFrame({name: columns[name] for name in (*EVENT_COLUMNS, *DETAIL_COLUMNS)})


def _payload_bytes(events: pd.DataFrame, operations: Sequence[Operation], of_event: Ints) -> Floats:
    """By the program or the line of HLO; else the bytes that the trace itself shows."""
    payload = np.array([operation.payload_bytes for operation in operations], np.float64)[of_event]
    shown = np.isnan(payload) & _flags(operations, "kind")[of_event]
    payload[shown] = events["shown_bytes"].to_numpy(np.float64)[shown]
    return payload


def _shown_bytes(
    events: pd.DataFrame, operations: Sequence[Operation], of_event: Ints, role: NDArray[np.int8]
) -> Iterator[str]:
    """A note on payloads that are the trace's own."""
    payload = np.array([operation.payload_bytes for operation in operations], np.float64)[of_event]
    shown = (role == _ROLES.index(COMMUNICATION)) & np.isnan(payload) & events["shown_bytes"].notna().to_numpy()
    if count := int(shown.sum()):
        yield f"the payload of {count} communications is the trace's own, by shape_with_layout or bytes_accessed"


def _left_aside(events: pd.DataFrame, aside: Mask) -> Iterator[str]:
    """Notes on omitted events: local copies and slices, and work of other cores."""
    for line, count in events["line"][aside].value_counts().items():
        if count:
            yield f"{count} events on {line!r} are neither communication nor the device's own compute: left out"


def _cut(communications: Communications) -> Iterator[str]:
    for missing, seen in (("end", communications.unfinished), ("start", communications.unbegun)):
        if count := int((seen & communications.chosen).sum()):
            yield f"{count} asynchronous communications have no {missing} in the profile: what is seen of them counts"


def _foreign(events: pd.DataFrame, operations: Sequence[Operation], of_event: Ints) -> Iterator[str]:
    """A note on operations that are not in their program."""
    foreign = int(_flags(operations, "foreign")[of_event].sum())
    if foreign:
        share = foreign / len(events)
        most = "most operations, " if share > _MOST else ""
        ask = "; is it another program's?" if share > _MOST else ""
        yield f"{most}{foreign} of {len(events)}, are not in the program that is known for them{ask}"
