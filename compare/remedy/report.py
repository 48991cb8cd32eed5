"""The result of a search for remedies: what to change, what that removes, what remains and why."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console

from compare.remedy.measure import (
    ArmProgram,
    Measurer,
    find_witnesses,
    improves,
    list_measured_beyond,
    list_timed,
    search,
)
from compare.remedy.remedies import CODE, HAND, Group, Remedy
from compare.remedy.result import (
    Alternative,
    ArmResult,
    ChosenRemedy,
    FailedSet,
    FasterRemedy,
    MeasuredSet,
    MeasurementJson,
    NamedKind,
    PhaseResult,
    RemainingGroup,
    RemedyBeyond,
    RemedyJson,
    SearchResult,
    SlowerRemedy,
)
from compare.remedy.search import Measurement, Names, is_slower
from compare.run import progress
from compare.run.arms import Arm
from compare.run.cache import Cache
from compare.verdict.causes import describe_cause
from meshes.case import Case
from meshes.process.log import is_quiet

GONE = 0.05
"""A group counts as removed if at most this fraction of it is left."""


def find_remedies(case: Case, *, arms: Sequence[Arm], cache: Cache, most: int, timeout_s: float) -> SearchResult:
    """Run the search, with progress on stderr.  Raises `MeshError` before it compiles anything.

    most: programs to compile.
    """
    programs = [ArmProgram(arm, case.at(phases=(phase,))) for arm in arms for phase in case.phases]
    with progress.show_events(Console(stderr=True, quiet=is_quiet())) as notify:
        making = Measurer(case, cache=cache, notify=notify, most=most, timeout_s=timeout_s)
        search(programs, making)
        beside = find_witnesses(programs, making)
    return search_report(case, programs, making, beside=beside)


def search_report(
    case: Case, programs: Sequence[ArmProgram], making: Measurer, *, beside: Sequence[ArmProgram] = ()
) -> SearchResult:
    """The result of a search; numbers are bytes of one step, mean over devices, and ns of the modelled step.

    beside: witnesses, extra programs compiled only to attribute the remaining bytes.
    """
    arms: dict[str, ArmResult] = {}
    for program in programs:
        entry = arms.setdefault(program.arm.name, {"title": program.arm.title, "phases": {}})
        entry["phases"][program.case.phase] = _program(program, [*programs, *beside])
    for name, arm in arms.items():
        for phase in arm["phases"].values():
            for faster in phase.get("faster", ()):
                faster["slower_in"] = _slower_in(faster["name"], [each for each in programs if each.arm.name == name])
    return {"case": case.to_dict(), "compiles": making.compiles, "most_compiles": making.most, "arms": arms}


def _program(program: ArmProgram, programs: Sequence[ArmProgram]) -> PhaseResult:
    if program.base.error:
        return {"error": program.base.error}
    best = program.known[program.best]
    chosen = [program.remedies[name] for name in program.best]
    entries = [_chosen(program, remedy) for remedy in chosen]
    return {
        "error": "",
        "before": measurement_to_json(program.base),
        "after": measurement_to_json(best),
        "remedies": sorted(entries, key=lambda entry: (-entry["removes_bytes"], -(entry.get("saves_ns") or 0.0))),
        "fastest": measurement_to_json(program.known[program.fastest]),
        "faster": _faster(program),
        "slower": list(_slower(program)),
        "beyond": [_beyond(program, *item) for item in list_measured_beyond(program)],
        "remains": [
            _remaining(program, key, amount, programs)
            for key, amount in sorted(best.groups.items(), key=lambda item: -item[1])
        ],
        "missing_remains": best.missing,
        "tried": [_tried(program, names) for names in program.known if names],
        "not_tried": [sorted(names) for names in sorted(program.refused, key=sorted)],
    }


def measurement_to_json(measurement: Measurement) -> MeasurementJson:
    """The measurement of one program."""
    return {
        "unneeded_bytes": measurement.unneeded_bytes,
        "induced_bytes": measurement.of("induced"),
        "inflated_bytes": measurement.of("inflated"),
        "missing_bytes": measurement.missing,
        "unknown_rows": measurement.unknown_rows,
        "step_ns": measurement.step_ns,
    }


def _chosen(program: ArmProgram, remedy: Remedy) -> ChosenRemedy:
    """One of the smallest set, and the bytes that return without it; if not compiled, those it removes alone."""
    best = program.known[program.best]
    without, alone = program.best - {remedy.name}, frozenset((remedy.name,))
    if without in program.known and not program.known[without].error:
        before, after, against = program.known[without], best, sorted(without)
    else:
        before, after, against = program.base, program.known[alone], []
    return {
        **_in_words(remedy),
        "removes_bytes": before.unneeded_bytes - after.unneeded_bytes,
        "saves_ns": _saved_ns(before, after),
        "measured_against": against,
        "as_good": _as_good(program, remedy),
    }


def _saved_ns(before: Measurement, after: Measurement) -> float | None:
    return None if before.step_ns is None or after.step_ns is None else before.step_ns - after.step_ns


def _in_words(remedy: Remedy) -> RemedyJson:
    return {
        "name": remedy.name,
        "scope": remedy.scope,
        "kind": remedy.kind,
        "sentence": remedy.sentence,
        "code": remedy.code,
    }


def _faster(program: ArmProgram) -> list[FasterRemedy]:
    """The changes of the fastest set that are tried for their time, each on top of the smallest set, the most time
    first."""
    best, timed = program.known[program.best], list_timed(program)
    entries: list[FasterRemedy] = [
        {
            **_in_words(remedy),
            "removes_bytes": best.unneeded_bytes - program.known[names].unneeded_bytes,
            "saves_ns": _saved_ns(best, program.known[names]),
            "measured_against": sorted(program.best & names),
            "as_good": [],
            "slower_in": [],
        }
        for remedy, names in ((program.remedies[name], timed[name]) for name in timed if name in program.fastest)
    ]
    return sorted(entries, key=lambda entry: -(entry.get("saves_ns") or 0.0))


def _slower(program: ArmProgram) -> Iterator[SlowerRemedy]:
    """The changes of code that make the modelled step longer, each alone or on top of the smallest set."""
    timed = list_timed(program)
    for name, remedy in program.remedies.items():
        names, base = (timed[name], program.best) if name in timed else (frozenset((name,)), frozenset[str]())
        measurement, before = program.known.get(names), program.known[base]
        if remedy.kind == CODE and measurement and is_slower(measurement, before):
            yield {
                **_in_words(remedy),
                "removes_bytes": before.unneeded_bytes - measurement.unneeded_bytes,
                "saves_ns": _saved_ns(before, measurement) or 0.0,
            }


def _slower_in(name: str, members: Sequence[ArmProgram]) -> list[str]:
    """The phases in which a change makes the modelled step longer."""
    return [
        program.case.phase
        for program in members
        if not program.base.error and any(entry["name"] == name for entry in _slower(program))
    ]


def _as_good(program: ArmProgram, remedy: Remedy) -> list[Alternative]:
    """Other remedies of the same site that leave no more bytes."""
    best, alternatives = program.known[program.best], list[Alternative]()
    for other in program.remedies.values():
        names = program.best - {remedy.name} | {other.name}
        measurement = program.known.get(names)
        stands_in = other is not remedy and other.site == remedy.site and measurement and not measurement.error
        if measurement and stands_in and measurement.unneeded_bytes <= best.unneeded_bytes:
            alternatives.append({"name": other.name, "code": other.code, "step_ns": measurement.step_ns})
    return alternatives


def _beyond(program: ArmProgram, remedy: Remedy, names: Names, measurement: Measurement) -> RemedyBeyond:
    """A change of the plan, or explicit collectives, added to the smallest set or instead of it."""
    entry: RemedyBeyond = {
        "name": remedy.name,
        "scope": remedy.scope,
        "kind": remedy.kind,
        "sentence": remedy.sentence,
        "code": remedy.code,
        "with": sorted(names - {remedy.name}),
        "in_place_of": sorted(program.best - names),
        "error": measurement.error,
        "helps": False,
    }
    if measurement.error:
        return entry
    entry["after"] = measurement_to_json(measurement)
    entry["helps"] = improves(program, names)
    entry["removes_bytes"] = program.known[program.best].unneeded_bytes - measurement.unneeded_bytes
    entry["saves_ns"] = _saved_ns(program.known[program.best], measurement)
    return entry


def _tried(program: ArmProgram, names: Names) -> FailedSet | MeasuredSet:
    measurement = program.known[names]
    if measurement.error:
        return {"names": sorted(names), "error": measurement.error}
    return {
        "names": sorted(names),
        "error": "",
        **measurement_to_json(measurement),
        "added_bytes": measurement.bytes_beyond(program.base),
    }


def _remaining(program: ArmProgram, key: Group, amount: int, programs: Sequence[ArmProgram]) -> RemainingGroup:
    """One group of bytes that the smallest set leaves, and the evidence about its cause."""
    scope, axes, kind, verdict, cause = key
    left = {
        remedy.name: _left(key, measurement.groups)
        for remedy, _, measurement in list_measured_beyond(program)
        if not measurement.error
    }
    gone: list[NamedKind] = [
        {"name": name, "kind": program.remedies[name].kind} for name in left if left[name] <= GONE * amount
    ]
    return {
        "scope": scope,
        "axes": axes,
        "kind": kind,
        "verdict": verdict,
        "cause": cause,
        "bytes": amount,
        "sentence": describe_cause(cause, induced=verdict == "induced", axes=program.case.mesh.split_axes).sentence,
        "gone_with": gone,
        "less_with": [name for name in left if GONE * amount < left[name] <= (1 - GONE) * amount],
        "gone_by_hand_in": [] if any(entry["kind"] == HAND for entry in gone) else _elsewhere(program, key, programs),
        "tried": [
            name
            for name, remedy in program.remedies.items()
            if remedy.kind == CODE and remedy.scope == scope and frozenset((name,)) in program.known
        ],
        "origins": program.origins.get(key, {}),
    }


def _elsewhere(program: ArmProgram, key: Group, programs: Sequence[ArmProgram]) -> list[str]:
    """Other arms whose program of the phase has these bytes, but not with explicit collectives."""
    titles = []
    for other in programs:
        if other is program or other.case.phase != program.case.phase or other.base.error:
            continue
        amount = _left(key, other.base.groups)
        by_hand = [
            measurement
            for remedy, _, measurement in list_measured_beyond(other)
            if remedy.kind == HAND and not measurement.error
        ]
        if amount and any(_left(key, measurement.groups) <= GONE * amount for measurement in by_hand):
            titles.append(other.arm.title)
    return titles


def _left(key: Group, groups: Mapping[Group, int]) -> int:
    """Bytes of the same scope, axes and verdict, whatever their kind and cause."""
    scope, axes, _, verdict, _ = key
    return sum(amount for group, amount in groups.items() if (group[0], group[1], group[3]) == (scope, axes, verdict))
