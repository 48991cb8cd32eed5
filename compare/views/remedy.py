"""Remedies in words: what to change, in order, what was measured, and what remains."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from compare.judge.remedies import HAND
from compare.views.terminal import console, plain, text_width, wrapped
from compare.views.units import axes_text, bytes_text, counted, listing, time_text

Found = Mapping[str, Any]
Entry = Mapping[str, Any]

_INDENT = "   "
_NOT_RECORDED = "not recorded"
LONGER = 1.02
"""A modelled step that has grown by more than this has grown."""


def print_remedies(found: Found, *, out: Console | None = None) -> None:
    """For each arm the ordered list, what it was checked against, what else would help, and what remains."""
    out = out or console()
    width = text_width(out)
    for arm in found["arms"].values():
        out.print(wrapped(headline(found, arm), width=width, style="bold"))
        for number, entry in enumerate(steps(arm), 1):
            out.print(wrapped(f"{number}. {step_line(entry)}", width=width, indent=" ", hang=_INDENT + " "))
            out.print(
                Text(f"      {plain(entry['code'])}", style="cyan", no_wrap=True, overflow="ignore"), soft_wrap=True
            )
            if others := others_line(entry):
                out.print(wrapped(others, width=width, indent=_INDENT * 2))
        for phase, one in arm["phases"].items():
            for line in phase_lines(phase, one):
                out.print(wrapped(line, width=width, indent=_INDENT, hang=_INDENT * 2))
        out.print()
    out.print(wrapped(spent(found), width=width, style="dim"))


def headline(found: Found, arm: Entry) -> str:
    """`TorchXLA, llama-3.1-8b on pp2tp4: 3 changes take …`."""
    case, own = found["case"], steps(arm)
    name = f"{arm['title']}, {case['model']['name']} on {case['mesh']['name']}"
    if all(one["error"] for one in arm["phases"].values()):
        return f"{name}: nothing could be measured"
    if all(not one["error"] and not one["before"]["unneeded_bytes"] for one in arm["phases"].values()):
        return f"{name}: no byte beyond the plan; nothing to do"
    if not own:
        return f"{name}: no change of the code was found that removes bytes beyond the plan"
    return f"{name}: {counted(len(own), 'change')}, in order, each compiled and measured"


def steps(arm: Entry) -> list[dict[str, Any]]:
    """The remedies of all phases, each once, the most bytes first; `removes`: phase -> bytes."""
    merged: dict[str, dict[str, Any]] = {}
    for phase, one in arm["phases"].items():
        for entry in one.get("remedies", ()):
            row = merged.setdefault(entry["name"], {**entry, "removes": {}, "others": {}})
            row["removes"][phase] = entry["removes_bytes"]
            for other in entry["as_good"]:
                row["others"].setdefault(other["name"], {})[phase] = other["step_ns"]
    return sorted(merged.values(), key=lambda row: -sum(row["removes"].values()))


def step_line(entry: Entry) -> str:
    """`write attention as einsum …: −2.26 GB a step in prefill, −75.5 MB in decode, verified`."""
    (first, amount), *more = entry["removes"].items()
    parts = [f"{bytes_text(-amount)} a step in {first}", *(f"{bytes_text(-less)} in {phase}" for phase, less in more)]
    return f"{entry['sentence']}: {', '.join(parts)}, verified ({entry['name']})"


def others_line(entry: Entry) -> str:
    """What removes as much in its place, with its modelled steps; nothing where there is none."""
    told = [f"{name} ({', '.join(f'{time_text(ns)} in {phase}' for phase, ns in steps.items())})"
            for name, steps in entry["others"].items()]  # fmt: skip
    return f"as many bytes, but another modelled step: {'; '.join(told)}" if told else ""


def phase_lines(phase: str, one: Entry) -> Iterator[str]:
    """What the changes were checked against, what else was tried, and what remains."""
    if one["error"]:
        yield f"{phase}: {one['error']}"
        return
    before, after = one["before"], one["after"]
    if not before["unneeded_bytes"]:
        yield f"{phase}: no byte beyond the plan"
        return
    yield f"{phase}: {_change(before, after)}"
    for entry in one["beyond"]:
        yield f"{phase}, beyond that: {_beyond(entry)}"
    for entry in one["remains"]:
        if _counts(entry, before):
            yield f"{phase}, remains: {_remains(entry)}"
    small = [entry for entry in one["remains"] if not _counts(entry, before)]
    if small:
        total = bytes_text(sum(entry["bytes"] for entry in small))
        yield f"{phase}, remains: {total} in {listing(list(dict.fromkeys(map(_place, small))))}"
    if one["missing_remains"]:
        yield f"{phase}, remains: {bytes_text(one['missing_remains'])} of the plan that nothing serves"
    if one["not_tried"]:
        yield f"{phase}: {counted(len(one['not_tried']), 'set')} not compiled; --max-compiles allows more"


def _counts(entry: Entry, before: Entry) -> bool:
    """Whether a group is worth a line of its own: a thousandth of what there was."""
    return bool(entry["bytes"] * 1000 >= before["unneeded_bytes"])


def _change(before: Entry, after: Entry) -> str:
    parts = [
        f"{word} {bytes_text(before[name])} → {bytes_text(after[name])}"
        for word, name in (("induced", "induced_bytes"), ("inflated", "inflated_bytes"), ("missing", "missing_bytes"))
        if before[name] or after[name]
    ]
    if before["step_ns"] and after["step_ns"]:
        longer = ", longer all the same" if after["step_ns"] > LONGER * before["step_ns"] else ""
        parts.append(f"modelled step {time_text(before['step_ns'])} → {time_text(after['step_ns'])}{longer}")
    return ", ".join(parts)


def _beyond(entry: Entry) -> str:
    begin = f"{entry['sentence']} ({entry['code']})" if entry["kind"] != HAND else entry["sentence"]
    if entry["error"]:
        return f"{begin}: {entry['error']}"
    if not entry["helps"]:
        return f"{begin}: removes nothing more"
    left, step = bytes_text(entry["after"]["unneeded_bytes"]), time_text(entry["after"]["step_ns"])
    instead = " in place of the above" if entry["in_place_of"] else ""
    return f"{begin}{instead}: {bytes_text(-entry['removes_bytes'])} a step, which leaves {left}; modelled step {step}"


def _remains(entry: Entry) -> str:
    return f"{bytes_text(entry['bytes'])} {entry['verdict']} in {_place(entry)} ({entry['cause']}): {why(entry)}"


def _place(entry: Entry) -> str:
    return f"{entry['scope']} {axes_text(entry['axes'])}"


def why(entry: Entry) -> str:
    """What is known of bytes that remain: the cause's sentence, and what shows whose they are."""
    return f"{entry['sentence']}; {_shown(entry)}"


def _shown(entry: Entry) -> str:
    hand = [one for one in entry["gone_with"] if one["kind"] == HAND]
    if hand:
        return (
            "gone with collectives by hand only, so it is the SPMD form's"
            if len(hand) == len(entry["gone_with"])
            else f"gone with {_names(entry['gone_with'])}"
        )
    if entry["gone_with"]:
        return f"gone with {_names(entry['gone_with'])}"
    if entry["gone_by_hand_in"]:
        return (
            f"{listing(entry['gone_by_hand_in'])} has it too, and not with collectives by hand: it is the SPMD form's"
        )
    put = [origin for origin in entry["origins"] if origin != _NOT_RECORDED]
    tried = f"{listing(entry['tried'])} do not remove it" if entry["tried"] else "nothing that was tried removes it"
    return f"{tried}; put there by {listing(put)}" if put else tried


def _names(gone: Sequence[Entry]) -> str:
    return " or ".join(one["names"][-1] if len(one["names"]) == 1 else " and ".join(one["names"]) for one in gone)


def spent(found: Found) -> str:
    """`10 programs compiled or taken from the cache, of at most 40`."""
    most = found["most_compiles"]
    return f"{counted(found['compiles'], 'program')} compiled, or taken from the cache, of at most {most}"
