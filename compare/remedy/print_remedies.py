"""Remedies in words: what to change, in order, what was measured, and what remains."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from compare.remedy.remedies import HAND
from compare.remedy.result import (
    ArmResult,
    ChosenRemedy,
    MeasurementJson,
    MergedRemedy,
    PhaseResult,
    RemainingGroup,
    RemedyBeyond,
    RemedyJson,
    SearchResult,
    SlowerRemedy,
)
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import axes_text, bytes_text, count_text, list_text, time_text
from meshes.process.one_line import plain

_INDENT = "   "
_NOT_RECORDED = "not recorded"
SMALL_PART = 1000
"""Groups smaller than 1/SMALL_PART of the remainder are not explained."""


def print_remedies(result: SearchResult, *, out: Console | None = None) -> None:
    """Print for each arm the ordered list, the bytes before and after, what else would help, and what remains."""
    out = out or console()
    width = text_width(out)
    for arm in result["arms"].values():
        out.print(wrap_prose(headline(result, arm), width=width, style="bold"))
        for number, entry in enumerate(steps(arm), 1):
            out.print(wrap_prose(f"{number}. {step_line(entry)}", width=width, indent=" ", hang=_INDENT + " "))
            for line in entry["code"].splitlines():
                out.print(Text(f"      {plain(line)}", style="cyan", no_wrap=True, overflow="ignore"), soft_wrap=True)
            if others := others_line(entry):
                out.print(wrap_prose(others, width=width, indent=_INDENT * 2))
        if order := by_time(arm):
            out.print(wrap_prose(order, width=width, indent=_INDENT, hang=_INDENT * 2))
        for phase, measured in arm["phases"].items():
            for line in phase_lines(phase, measured):
                out.print(wrap_prose(line, width=width, indent=_INDENT, hang=_INDENT * 2))
        out.print()
    out.print(wrap_prose(count_compiles(result), width=width, style="dim"))


def headline(result: SearchResult, arm: ArmResult) -> str:
    """`TorchXLA, llama-3.1-8b on pp2tp4: 3 changes take …`."""
    case, changes = result["case"], steps(arm)
    name = f"{arm['title']}, {case['model']['name']} on {case['mesh']['name']}"
    if all(phase["error"] for phase in arm["phases"].values()):
        return f"{name}: no program could be measured"
    if not changes and not any(phase["error"] or phase["before"]["unneeded_bytes"] for phase in arm["phases"].values()):
        return f"{name}: no avoidable bytes; no change is needed"
    if not changes:
        return f"{name}: no code change was found that removes avoidable bytes"
    return f"{name}: {count_text(len(changes), 'change')}, largest effect first, each compiled and counted"


def by_time(arm: ArmResult) -> str:
    """The same changes in the order of the time that they save, where that is another; else empty."""
    changes = steps(arm)
    ordered = sorted(changes, key=lambda row: -_saved(row))
    if ordered == changes or not any(map(_saved, changes)):
        return ""
    names = [f"{row['name']} ({signed_time(-_saved(row))})" for row in ordered]
    return f"by modelled time: {', '.join(names)}"


def _saved(row: MergedRemedy) -> float:
    return sum(saved or 0.0 for saved in row["saves"].values())


def steps(arm: ArmResult) -> list[MergedRemedy]:
    """The remedies of all phases, each once, the most bytes first, then the most time; `removes`: phase -> bytes."""
    merged: dict[str, MergedRemedy] = {}
    for phase, measured in arm["phases"].items():
        faster = measured.get("faster", [])
        chosen: list[ChosenRemedy] = [*measured.get("remedies", ()), *faster]
        for entry in chosen:
            row = merged.setdefault(entry["name"], _merged(entry))
            row["removes"][phase], row["saves"][phase] = entry["removes_bytes"], entry.get("saves_ns")
            for other in entry["as_good"]:
                row["others"].setdefault(other["name"], {})[phase] = other["step_ns"]
        for entry in faster:
            merged[entry["name"]]["slower"] = entry["slower_in"]
    return sorted(merged.values(), key=lambda row: (-sum(row["removes"].values()), -_saved(row)))


def _merged(entry: RemedyJson) -> MergedRemedy:
    return {
        "name": entry["name"],
        "scope": entry["scope"],
        "kind": entry["kind"],
        "sentence": entry["sentence"],
        "code": entry["code"],
        "removes": {},
        "saves": {},
        "slower": [],
        "others": {},
    }


def step_line(entry: MergedRemedy) -> str:
    """`write attention as einsum …: −2.26 GB a step in prefill, −75.5 MB in decode, verified`."""
    (first, amount), *more = entry["removes"].items()
    parts = [f"{bytes_text(-amount)} a step in {first}", *(f"{bytes_text(-less)} in {phase}" for phase, less in more)]
    if not any(entry["removes"].values()):
        parts = [f"no bytes in {' and '.join(entry['removes'])}"]
    times = [f"{signed_time(-saved)} in {phase}" for phase, saved in entry["saves"].items() if saved is not None]
    modelled = f"; modelled step {', '.join(times)}" if times else ""
    longer = f"; longer in {' and '.join(entry['slower'])}, so not there" if entry["slower"] else ""
    return f"{entry['sentence']}: {', '.join(parts)}{modelled}{longer}, verified ({entry['name']})"


def signed_time(ns: float) -> str:
    """`−9.40 ms`, `+1.20 ms`."""
    return f"{'+' if ns > 0 else '−' if ns < 0 else '±'}{time_text(abs(ns))}"


def others_line(entry: MergedRemedy) -> str:
    """Alternatives that remove as much, with their modelled steps; empty if there are none."""
    alternatives = [
        f"{name} (modelled step {', '.join(f'{time_text(ns)} in {phase}' for phase, ns in steps.items())})"
        for name, steps in entry["others"].items()
    ]
    return f"equally good alternatives: {'; '.join(alternatives)}" if alternatives else ""


def phase_lines(phase: str, result: PhaseResult) -> Iterator[str]:
    """The bytes before and after the changes, what else was tried, and what remains."""
    if result["error"]:
        yield f"{phase}: {result['error']}"
        return
    before, after = result["before"], result["after"]
    yield f"{phase}: {_change(before, after)}" if before["unneeded_bytes"] else f"{phase}: no avoidable bytes"
    if result.get("faster"):
        ends = time_text(after["step_ns"]), time_text(result["fastest"]["step_ns"])
        names = " and ".join(entry["name"] for entry in result["faster"])
        yield f"{phase}, for time alone: with {names} the modelled step goes from {ends[0]} to {ends[1]}"
    for slower in result.get("slower", ()):
        yield f"{phase}, not recommended: {_slower(slower)}"
    if not before["unneeded_bytes"]:
        return
    for entry in result["beyond"]:
        yield f"{phase}, beyond that: {_beyond(entry)}"
    for words, entries in _alike(result["remains"]).items():
        yield f"{phase}, remains: {list_text([_amount(entry) for entry in entries])} {words}"
    if result["missing_remains"]:
        unserved = bytes_text(result["missing_remains"])
        yield f"{phase}, remains: {unserved} of the plan unserved: no collective carries it"
    if result["not_tried"]:
        yield f"{phase}: {count_text(len(result['not_tried']), 'set')} of changes not compiled; raise --max-compiles"


def _alike(remains: Sequence[RemainingGroup]) -> dict[str, list[RemainingGroup]]:
    """The remaining groups by their explanation; groups below a thousandth of all together, unexplained."""
    total, by_words = sum(entry["bytes"] for entry in remains), dict[str, list[RemainingGroup]]()
    for entry in remains:
        words = f"({entry['verdict']}, {entry['cause']}): {explain_remainder(entry)}"
        by_words.setdefault(words if entry["bytes"] * SMALL_PART >= total else "(small)", []).append(entry)
    return by_words


def _amount(entry: RemainingGroup) -> str:
    return f"{bytes_text(entry['bytes'])} in {entry['scope']} {axes_text(entry['axes'])}"


def _change(before: MeasurementJson, after: MeasurementJson) -> str:
    amounts = {
        "induced": (before["induced_bytes"], after["induced_bytes"]),
        "inflated": (before["inflated_bytes"], after["inflated_bytes"]),
        "missing": (before["missing_bytes"], after["missing_bytes"]),
    }
    parts = [f"{word} {bytes_text(old)} → {bytes_text(new)}" for word, (old, new) in amounts.items() if old or new]
    if before["step_ns"] and after["step_ns"]:
        parts.append(f"modelled step {time_text(before['step_ns'])} → {time_text(after['step_ns'])}")
    return ", ".join(parts)


def _beyond(entry: RemedyBeyond) -> str:
    begin = f"{entry['sentence']} ({entry['code']})" if entry["kind"] != HAND else entry["sentence"]
    if entry["error"]:
        return f"{begin}: {entry['error']}"
    if not entry["helps"] and entry["removes_bytes"] > 0:
        less, step = bytes_text(-entry["removes_bytes"]), time_text(entry["after"]["step_ns"])
        saved = entry.get("saves_ns") or 0.0
        longer = f"the modelled step is {time_text(-saved)} longer" if saved < 0 else "it adds bytes elsewhere"
        return f"{begin}: {less} a step, but {longer}; modelled step {step}"
    if not entry["helps"]:
        return f"{begin}: removes nothing more"
    left, step = bytes_text(entry["after"]["unneeded_bytes"]), time_text(entry["after"]["step_ns"])
    instead = " instead of the changes above" if entry["in_place_of"] else ""
    return f"{begin}{instead}: {bytes_text(-entry['removes_bytes'])} a step, which leaves {left}; modelled step {step}"


def _slower(entry: SlowerRemedy) -> str:
    """A change that makes the step longer, whatever bytes it removes."""
    removes = entry["removes_bytes"]
    bytes_words = f"removes {bytes_text(removes)}, but costs" if removes > 0 else "removes no bytes, and costs"
    return f"{entry['name']} {bytes_words} {time_text(-entry['saves_ns'])} of the modelled step"


def explain_remainder(entry: RemainingGroup) -> str:
    """The explanation of remaining bytes: the cause's sentence, and the evidence for who causes them."""
    return f"{entry['sentence']}; {_shown(entry)}"


def _shown(entry: RemainingGroup) -> str:
    names = [item["name"] for item in entry["gone_with"]]
    if names and all(item["kind"] == HAND for item in entry["gone_with"]):
        words = "removed only by explicit collectives, so the SPMD form causes it"
    elif names:
        words = f"removed by {' or '.join(names)}"
    elif entry["gone_by_hand_in"]:
        arms = list_text(entry["gone_by_hand_in"])
        words = f"{arms} has it too, removed there by explicit collectives: the SPMD form causes it"
    else:
        words = f"{list_text(entry['tried'])} do not remove it" if entry["tried"] else "no candidate removes it"
        # Of what serves the plan, and is too much, a pass put the needed part there, too.
        put = [item for item in entry["origins"] if item != _NOT_RECORDED and entry["verdict"] == "induced"]
        words += f"; created by {list_text(put)}" if put else ""
    return f"{words}; reduced by {list_text(entry['less_with'])}" if entry["less_with"] else words


def count_compiles(result: SearchResult) -> str:
    """`10 programs compiled or taken from the cache, of at most 40`."""
    most = result["most_compiles"]
    return f"{count_text(result['compiles'], 'program')} compiled or taken from the cache (limit {most})"
