"""The headline: one line a program, and one sentence that says what an engineer should know first."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from compare.report.controls import BY_HAND, how
from compare.report.programs import GOOD

Report = Mapping[str, Any]

_NUMBERS = ("inherent", "inflated", "induced", "common", "framework_induced", "missing", "wire_bytes")

_PLACES = {
    "embed": "its embedding",
    "layer.attention.qkv": "its q, k and v projection",
    "layer.attention.core": "its attention call",
    "layer.attention.out": "its attention output",
    "layer.mlp.up": "the first half of its MLP",
    "layer.mlp.down": "the second half of its MLP",
    "layer.moe.route": "its choice of experts",
    "layer.moe.dispatch": "its dispatch of tokens to experts",
    "layer.moe.experts": "its experts",
    "layer.moe.combine": "its return of tokens from experts",
    "pipeline.shift": "its pipeline's shift",
    "pipeline.collect": "its collection of ids",
    "norm": "its norm",
    "head": "its head",
    "sample": "its choice of the next token",
}

_VERBS = {
    "all-gather": "gathers",
    "all-reduce": "sums",
    "reduce-scatter": "scatters",
    "all-to-all": "reshuffles",
    "collective-permute": "sends on",
    "ragged-all-to-all": "reshuffles",
    "collective-broadcast": "broadcasts",
}

NEARLY_ALL = 0.95
"""A control that removes this part of an excess explains it."""


def headline(phase: Mapping[str, Any], *, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """One entry for each program of a phase, each arm's default first."""
    return [
        _entry(arm, titles[arm], cell, asked=phase["inherent_total"])
        for arm, default in phase["arms"].items()
        for cell in (default, *default["controls"].values())
    ]


def _entry(arm: str, title: str, cell: Mapping[str, Any], *, asked: int) -> dict[str, Any]:
    totals = cell["totals"] or {}
    return {
        "arm": arm, "title": title, "cell": cell["cell"], "partitioner": cell["partitioner"],
        "status": cell["status"], "error": cell["error"],
        **{name: totals.get(name) for name in _NUMBERS},
        "ratio": totals["wire_bytes"] / asked if totals and asked else None,
        "qualifier": "" if not totals else _qualifier(totals),
    }  # fmt: skip


def _qualifier(totals: Mapping[str, Any]) -> str:
    """What unknown and upper-bound rows do to a total: both at once leave it open."""
    below, above = totals["unknown_rows"] > 0, totals["upper_bound_rows"] > 0
    return "about" if below and above else "at least" if below else "at most" if above else ""


def verdict_sentence(report: Report) -> str:
    """The finding in one sentence; which arm failed where nothing can be compared."""
    worst = max(_candidates(report["phases"]), default=None)
    if worst is None or worst[0] == 0:
        return _no_difference(report)
    arm = worst[1]
    titles = {name: entry["title"] for name, entry in report["arms"].items()}
    told = {name: _ratios(report, name) for name in titles if name != arm}
    others = "".join(f" ({titles[name]}: {text})" for name, text in told.items() if text)
    own = f"{titles[arm]} moves {_ratios(report, arm, noun=' what the plan needs')}"
    return f"{own}{others}; {_main_reason(report, arm)}.{_less(report)}{_failures(report)}"


def _candidates(phases: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """(framework-induced bytes, arm) of every compared program."""
    for entry in phases.values():
        for line in _compared(entry):
            if line["framework_induced"] is not None:
                yield line["framework_induced"], line["arm"]


def _compared(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The headline of the programs that were compared, one for each arm."""
    return [line for line in entry["headline"] if line["cell"] == entry["compared_cells"].get(line["arm"])]


def _ratios(report: Report, arm: str, *, cell: str | None = None, noun: str = "") -> str:
    """`1.9 × in prefill and 177 × in decode`, or `1.3 × in both`, of the compared programs or of one cell.

    `noun` stands behind the first number.
    """
    told: dict[str, str] = {}
    for phase, entry in report["phases"].items():
        lines = entry["headline"] if cell else _compared(entry)
        line = next((one for one in lines if one["arm"] == arm and cell in (None, one["cell"])), None)
        if line and line["wire_bytes"] is not None:
            told[phase] = _times(line) + (_stands_for(line, entry) if cell is None else "")
            noun = noun if line["ratio"] is not None else ""
    if len(told) > 1 and len(set(told.values())) == 1:
        return f"{next(iter(told.values()))}{noun} in both"
    return " and ".join(f"{times}{'' if at else noun} in {phase}" for at, (phase, times) in enumerate(told.items()))


def _stands_for(line: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """The cell's name, where it was compared in place of an arm's default program and moves something else."""
    default = next(one for one in entry["headline"] if one["arm"] == line["arm"])
    return f" ({line['cell']})" if default["wire_bytes"] != line["wire_bytes"] else ""


def _times(line: Mapping[str, Any]) -> str:
    qualifier = f"{line['qualifier']} " if line["qualifier"] else ""
    if not line["wire_bytes"] and line["ratio"] is None and not qualifier:
        return "nothing, which is all that the plan needs"
    if line["ratio"] is None:
        return f"{qualifier}{line['wire_bytes'] / 1e6:.3g} MB where the plan needs nothing"
    return f"{qualifier}{_three_digits(line['ratio'])} ×"


def _three_digits(ratio: float) -> str:
    """As the tables have it: `1.95`, `12.4`, `177`."""
    return f"{ratio:.{2 if ratio < 9.995 else 1 if ratio < 99.95 else 0}f}"


def _main_reason(report: Report, arm: str) -> str:
    """The one thing behind most of what an arm moves beyond the plan, over all phases.

    What one control removes, if that is most of it (one by hand removes all, and says least: it is asked last); else
    the largest place.
    """
    own = [group for entry in report["phases"].values() for group in entry["differences"] if group["arm"] == arm]
    beyond = sum(group["bytes"] for group in own)
    own = [group for group in own if group["excess_bytes"] > 0]
    removed = _removed(own)
    chosen = {cell: found for cell, found in removed.items() if not cell.endswith(BY_HAND)}
    cell, gone = max((chosen or removed).items(), key=lambda found: _sum(found[1]), default=(None, []))
    if _sum(gone) <= _sum(own) / 2:
        cell, gone = max(removed.items(), key=lambda found: _sum(found[1]), default=(None, []))
    groups = gone if _sum(gone) > _sum(own) / 2 else _same_place(own)
    reason = f"{100 * _sum(groups) / beyond:.0f} % of the excess is one thing: {_what(groups, report)}"
    if groups is gone and cell and (left := _ratios(report, arm, cell=cell)):
        reason += f"; {how(cell)} it moves {left}"
    return reason


def _removed(groups: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Control cell -> the groups that are all but gone there."""
    cells = dict.fromkeys(cell for group in groups for cell in group["controls"])
    return {
        cell: [g for g in groups if g["controls"].get(cell, g["bytes"]) <= (1 - NEARLY_ALL) * g["bytes"]]
        for cell in cells
    }


def _same_place(groups: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The groups of the scope and axes that carry most."""
    places: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for group in groups:
        places.setdefault((group["scope"], group["axes"]), []).append(group)
    return max(places.values(), key=_sum)


def _sum(groups: Sequence[Mapping[str, Any]]) -> int:
    return sum(group["excess_bytes"] for group in groups)


def _what(groups: Sequence[Mapping[str, Any]], report: Report) -> str:
    """`its attention call gathers 3 tensors over tp in every layer`."""
    largest = max(groups, key=lambda group: group["excess_bytes"])
    place = _PLACES.get(largest["scope"], "a part of no known scope")
    verb = _VERBS.get(largest["kind"], "moves")
    if not largest["scope"].startswith("layer."):
        return f"{place} {verb} data over {largest['axes']} ({largest['sentence']})"
    counts = []
    for entry in report["phases"].values():
        like = [g for g in groups if g["scope"] == largest["scope"] and g["kind"] == largest["kind"]
                and any(g is one for one in entry["differences"])]  # fmt: skip
        counts += [sum(g["executions"] for g in like)] if like else []
    things = {_count(executions, report["case"]) for executions in counts}
    return f"{place} {verb} {things.pop() if len(things) == 1 else 'tensors'} over {largest['axes']} in every layer"


def _count(executions: int, case: Mapping[str, Any]) -> str:
    """How many tensors a layer moves at a time: executions ÷ (layers of a stage · ticks), where that is whole."""
    stages = case["mesh"]["axes"]["pp"]
    times = case["model"]["layers"] // stages * (case["microbatches"] + stages - 1)
    if executions % times:
        return "tensors"
    return "a tensor" if executions == times else f"{executions // times} tensors"


def _no_difference(report: Report) -> str:
    """Nothing that one framework adds and the other does not; or no comparison, and why."""
    titles = {arm: entry["title"] for arm, entry in report["arms"].items()}
    told = {arm: text for arm in titles if (text := _ratios(report, arm, noun=" what the plan needs"))}
    if not told:
        return _nothing_to_judge(report)
    moved = "; ".join(f"{titles[arm]} moves {text}" for arm, text in told.items())
    failed = _less(report) + _failures(report)
    if any(True for _ in _candidates(report["phases"])):
        return f"No framework adds bytes that the other does not: {moved}.{failed}"
    if len(titles) > 1:
        return f"The frameworks could not be compared: {moved}.{failed or _uncounted(report)}"
    return f"{moved}.{failed}"


def _less(report: Report) -> str:
    """Whose ratio looks better than it is, since a part of the plan is unserved; nothing where none's is."""
    told: dict[str, list[str]] = {}
    for phase, entry in report["phases"].items():
        for line in _compared(entry):
            default = entry["arms"].get(line["arm"], {})
            cells = [default, *default.get("controls", {}).values()]
            if any((cell.get("totals") or {}).get("unserved") for cell in cells if cell["cell"] == line["cell"]):
                told.setdefault(line["title"], []).append(phase)
    return "".join(f" {who} does not move all that the plan asks in {' and '.join(at)}." for who, at in told.items())


def _failures(report: Report) -> str:
    """The programs that are missing, in a sentence of their own; nothing where all are there."""
    lines = [(phase, line) for phase, entry in report["phases"].items() for line in entry["headline"]]
    bad = [
        f"{line['title']} {line['cell']} in {phase} ({line['status']})"
        for phase, line in lines
        if line["status"] not in GOOD
    ]
    return f" Missing: {', '.join(bad)}." if bad else ""


def _uncounted(report: Report) -> str:
    rows = sum(1 for entry in report["phases"].values() for line in entry["headline"] if line["qualifier"])
    return f" In {rows} programs rows cannot be counted." if rows else " No partitioner is common to them."


def _nothing_to_judge(report: Report) -> str:
    failed = "; ".join(f"{arm['title']}: {arm['error'] or arm['status']}" for arm in report["arms"].values())
    return f"No program could be judged. {failed}"
