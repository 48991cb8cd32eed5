"""From operations to a timeline's events: each joined to the collective that it executes, and each of those once."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from compare.timing.arrays import Floats, Ints, Mask
from compare.timing.join.async_pairing import DONE, INSIDE, WHOLE, CommunicationEvents, Communications, match_halves
from compare.timing.join.offload_calls import CoreEvents, MatchedCalls, match_calls
from compare.timing.join.operations import (
    UNKNOWN,
    Operation,
    ProfileFields,
    add_start_facts,
    identify_operation,
    start_names,
)
from compare.timing.join.programs import ProfilePrograms
from compare.timing.timeline import COMMUNICATION, COMPUTE, CONTAINER, EVENT_COLUMNS, PART
from compare.timing.xplane.device_events import DeviceEvents, words_by_code

_ROLES = (COMPUTE, COMMUNICATION, CONTAINER, PART)
_SIGNS = ("module", "hlo_op", "text", "category", "tf_op")
_MOST = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    events: pd.DataFrame
    """Columns of GIVEN."""
    unjoined_events: int
    notes: tuple[str, ...]


def join(raw: DeviceEvents, programs: ProfilePrograms) -> Joined:
    """The events of a timeline.  `TimingError` where the axes fit no program of the profile."""
    places, of_event = _distinct(raw.events)
    told = add_start_facts(list(_told(raw.events, places, programs)), _words(raw.events, "module", places))
    programs.check()
    names = _collectives(raw.events, places, told)
    comms = np.flatnonzero(_flags(told, "kind")[of_event])
    parts = _parts(raw, told, names, of_event, comms)
    found = match_halves(parts)
    links = _links(raw, told, of_event[comms], parts, found, comms)
    of_event[comms[links.calls]] = of_event[comms[links.works]]
    stands = found.stands & ~_anonymous(told)[of_event[comms]]
    stands[links.works] = False
    found = replace(found, stands=stands)
    role, ends = _roles(raw, told, of_event, comms, found)
    enclosing = _enclosing(raw, role, parts, comms) if raw.one_at_a_time else np.empty(0, np.int64)
    role[enclosing] = _ROLES.index(CONTAINER)
    aside = ~raw.events["main"].to_numpy() & (_anonymous(told) | ~_flags(told, "kind"))[of_event]
    unjoined = (role == _ROLES.index(COMMUNICATION)) & ~_flags(told, "joined")[of_event]
    events = _events(raw.events, told, names, of_event, role, ends)
    return Joined(
        events=events[~aside].reset_index(drop=True),
        unjoined_events=int(unjoined.sum()),
        notes=(
            *programs.notes, *_left_aside(raw.events, aside), *_cut(found), *_foreign(raw.events, told, of_event),
            *[f"{enclosing.size} operations enclose communication on the same line: taken for loops"][: enclosing.size],
        ),
    )  # fmt: skip


def _anonymous(operations: Sequence[Operation]) -> Mask:
    """Calls of which nothing is known: communication only if another core shows what they ask for."""
    return np.array([one.wraps and one.kind == UNKNOWN for one in operations], np.bool_)


def _links(
    raw: DeviceEvents,
    operations: Sequence[Operation],
    of_talk: Ints,
    parts: CommunicationEvents,
    communications: Communications,
    comms: Ints,
) -> MatchedCalls:
    """Calls of other cores, and what these show of them, by their places among the communications."""
    device = raw.events["device"].to_numpy(np.int64)[comms]

    def seen(chosen: Mask) -> CoreEvents:
        place = np.flatnonzero(chosen & communications.stands)
        kinds = [operations[code].kind for code in of_talk[place]]
        return CoreEvents(
            place=place, device=device[place], kind=kinds, starts=parts.starts[place], ends=communications.ends[place]
        )  # fmt: skip

    return match_calls(seen(_flags(operations, "wraps")[of_talk]), seen(parts.half == INSIDE))


def _distinct(events: pd.DataFrame) -> tuple[Ints, Ints]:
    """Where each combination of signs first stands, and which one each event has."""
    codes = np.zeros(len(events), np.int64)
    for name in _SIGNS:
        column = events[name].array
        codes, _ = pd.factorize(codes * max(len(column.categories), 1) + column.codes)
    return np.unique(codes, return_index=True)[1], codes


def _words(events: pd.DataFrame, name: str, places: Ints) -> list[str]:
    column = events[name].array
    return [str(column.categories[code]) for code in column.codes[places]]


def _told(events: pd.DataFrame, places: Ints, programs: ProfilePrograms) -> Iterator[Operation]:
    every = list(zip(*(_words(events, name, places) for name in _SIGNS), strict=True))
    lines: dict[tuple[str, str], set[str]] = {}
    for module, name, text, *_ in every:
        lines.setdefault((module, name), set()).add(text)
    for module, name, text, *signs in every:
        # What one event has the line of HLO for, another of the same name may be without.
        known = lines[module, name] - {""}
        told = ProfileFields(name, text or (known.pop() if len(known) == 1 else ""), *signs)
        yield identify_operation(told, programs.find(module), programs.mesh)


def _collectives(events: pd.DataFrame, places: Ints, operations: Sequence[Operation]) -> list[str]:
    """The collective of each combination; one that several programs have is named with its program."""
    modules = _words(events, "module", places)
    homes: dict[str, set[str]] = {}
    for module, one in zip(modules, operations, strict=True):
        homes.setdefault(one.collective, set()).add(module)
    return [
        f"{module}/{one.collective}" if one.collective and len(homes[one.collective]) > 1 else one.collective
        for module, one in zip(modules, operations, strict=True)
    ]


def _flags(operations: Sequence[Operation], name: str) -> Mask:
    return np.array([bool(getattr(one, name)) for one in operations], np.bool_)


def _parts(
    raw: DeviceEvents, operations: Sequence[Operation], names: Sequence[str], of_event: Ints, comms: Ints
) -> CommunicationEvents:
    events = raw.events.iloc[comms]
    spanning = _on(events, raw.spanning_lines)
    half = np.array([one.half for one in operations], np.int8)[of_event[comms]]
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
    """The role of each event, by its place in _ROLES, and when it ends."""
    compute, communication, container, part = range(len(_ROLES))
    alone = [container if one.encloses else part if one.waits else compute for one in operations]
    role = np.array(alone, np.int8)[of_event]
    role[comms] = np.where(communications.stands, communication, part)
    ends = raw.events["start_ns"].to_numpy(np.float64) + raw.events["duration_ns"].to_numpy(np.float64)
    ends[comms] = communications.ends
    return role, ends


def _enclosing(raw: DeviceEvents, role: NDArray[np.int8], parts: CommunicationEvents, comms: Ints) -> Ints:
    """Events in which the same line shows communication: whatever they are called, they are loops around it."""
    main = raw.events["main"].to_numpy()
    inner = comms[(parts.ends > parts.starts) & np.isin(parts.half, (WHOLE, DONE))]
    outer, inner = np.flatnonzero(main & (role == _ROLES.index(COMPUTE))), inner[main[inner]]
    found: list[Ints] = []
    starts = raw.events["start_ns"].to_numpy(np.float64)
    ends = starts + raw.events["duration_ns"].to_numpy(np.float64)
    devices = raw.events["device"].to_numpy()
    for device in np.unique(devices[inner]):
        own = inner[devices[inner] == device]
        own = own[np.argsort(starts[own], kind="stable")]
        around = outer[devices[outer] == device]
        next_one = np.searchsorted(starts[own], starts[around], side="right")
        next_end = np.append(ends[own], np.inf)[next_one]
        found.append(around[next_end < ends[around]])
    return np.concatenate(found) if found else np.empty(0, np.int64)


def _events(
    events: pd.DataFrame, operations: Sequence[Operation], names: Sequence[str], of_event: Ints, role: NDArray[np.int8],
    ends: Floats,
) -> pd.DataFrame:  # fmt: skip
    words = {
        name: words_by_code(of_event, [str(getattr(one, name)) for one in operations])
        for name in ("scope", "kind", "axes")
    }
    columns = {
        **{name: events[name].array for name in ("device", "line", "name", "hlo_op", "start_ns", "wait_ns")},
        **words,
        "role": words_by_code(role.astype(np.int64), _ROLES),
        "collective": words_by_code(of_event, names),
        "payload_bytes": np.array([one.payload_bytes for one in operations], np.float64)[of_event],
        "duration_ns": ends - events["start_ns"].to_numpy(np.float64),
    }
    return pd.DataFrame({name: columns[name] for name in EVENT_COLUMNS})


def _left_aside(events: pd.DataFrame, aside: Mask) -> Iterator[str]:
    """Local copies and slices, and what other cores do for themselves."""
    for line, count in events["line"][aside].value_counts().items():
        if count:
            yield f"{count} events on {line!r} are neither communication nor the device's own compute: left out"


def _cut(communications: Communications) -> Iterator[str]:
    for missing, seen in (("end", communications.unfinished), ("start", communications.unbegun)):
        if count := int((seen & communications.stands).sum()):
            yield f"{count} asynchronous communications have no {missing} in the profile: what is seen of them counts"


def _foreign(events: pd.DataFrame, operations: Sequence[Operation], of_event: Ints) -> Iterator[str]:
    """Operations that their program does not have."""
    foreign = int(_flags(operations, "foreign")[of_event].sum())
    if foreign:
        share = foreign / len(events)
        most = "most operations, " if share > _MOST else ""
        ask = "; is it another program's?" if share > _MOST else ""
        yield f"{most}{foreign} of {len(events)}, are not in the program that is known for them{ask}"
