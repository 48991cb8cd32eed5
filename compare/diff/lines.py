"""The lines of a diff in words, for the terminal and the page alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compare.render.collectives_table import INFERRED, LEGEND
from compare.render.units import axes_text, bytes_text, count_text, list_text, times_text

Report = Mapping[str, Any]

SIGNS: Mapping[str, str] = {"only in a": "−", "only in b": "+", "changed": "~"}

_COLUMNS: Mapping[str, str] = {
    "kind": "", "axes": "over ", "network": "on ", "scope": "in ", "dtype": "", "payload_bytes": "payload ",
    "executions": "", "executions_are": "counted ",
}  # fmt: skip
"""A column of a row, as it stands before its two values."""

WORDS: Mapping[str, str] = {"only in a": "only in the first", "only in b": "only in the second", "changed": "changed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One difference."""

    sign: str
    amount: str
    """Bytes a step, with a sign."""
    what: str
    scope: str
    op_name: str
    """The framework's path of the operation; `~` before it, or a scope, that is only the nearest instruction's."""
    how: str
    """How often and how much; of a change what was, and what is."""
    source: str
    entry: Report


def difference_lines(report: Report) -> list[Line]:
    return [_line(one) for one in report["differences"] or ()]


def _line(report: Report) -> Line:
    runs = None if report["executions"] is None else report["executions"] * report["times"]
    amount = f"{times_text(runs, report['executions_are'])} {bytes_text(report['payload_bytes'])}"
    changes = ", ".join(_change(name, *values) for name, values in report["changes"].items())
    return Line(
        sign=SIGNS[report["what"]],
        amount=signed_bytes_text(report["delta_bytes"]),
        what=f"{report['kind']} @ {report['axes']}",
        scope=_marked(report, "scope"),
        op_name=_op_name(report),
        how=changes or amount,
        source=report["source_line"] or "",
        entry=report,
    )


def _marked(report: Report, name: str) -> str:
    return f"{INFERRED * (name in report['inferred'])}{report[name]}"


def _op_name(report: Report) -> str:
    """The path of the first; how many others there are."""
    others = len(report["other_op_names"])
    return _marked(report, "op_name") + f" (+{others})" * bool(others) if report["op_name"] else ""


def legend_text(report: Report) -> str:
    """What the marks before scopes and paths mean; empty where there are none."""
    marked = any(INFERRED in (line.scope[:1], line.op_name[:1]) for line in difference_lines(report))
    return LEGEND if marked else ""


def signed_bytes_text(count: int | None) -> str:
    """`+90.2 MB`; a question mark where it is unknown."""
    if count is None:
        return "? B"
    return f"+{bytes_text(count)}" if count > 0 else bytes_text(count)


def _change(name: str, before: Any, after: Any) -> str:
    if name == "groups":
        sizes = [{len(group) for group in groups} for groups in (before, after)]
        if sizes[0] == sizes[1]:
            return "other pairs" if sizes[0] == {2} else "other groups"
        return "groups of " + " → ".join(list_text(sorted(map(str, one))) for one in sizes)
    told = [_value(name, value) for value in (before, after)]
    return f"{_COLUMNS[name]}{told[0]} → {told[1]}"


def _value(name: str, value: Any) -> str:
    if name == "payload_bytes":
        return bytes_text(value)
    return times_text(value) if name == "executions" else str(value)


def equivalent_words(report: Report) -> list[str]:
    """What is the same in another form: one sentence for each way, and each amount that it costs."""
    groups: dict[tuple[str, str, str], list[Report]] = {}
    for one in report["equivalents"] or ():
        sides = [_kinds(one[side]) for side in ("a", "b")]
        groups.setdefault((one["how"], *sides), []).append(one)
    told = []
    for (how, a, b), own in groups.items():
        times = f", {len(own)} ×" if len(own) > 1 else ""
        cost = _cost(own)
        told.append(f"{a} = {b}{times} ({how}){f'; {cost}' if cost else ''}")
    return told


def _cost(equivalents: Sequence[Report]) -> str:
    """Bytes that the other form sends more or less: `+33.6 MB a step`, `−8.4 MB a step over dcn`; empty if none."""
    amounts = [sum(equivalent[name] for equivalent in equivalents) for name in ("delta_bytes", "delta_dcn_bytes")]
    words = [
        f"{signed_bytes_text(amount)} a step{on}"
        for amount, on in zip(amounts, ("", " over dcn"), strict=True)
        if amount
    ]
    return " and ".join(words)


def _kinds(rows: Sequence[Report]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        word = f"{row['kind']} {axes_text(row['axes'])}"
        counts[word] = counts.get(word, 0) + 1
    return list_text([f"{number} {word}" for word, number in counts.items()])


def total_words(report: Report, side: str) -> str:
    """`121 collectives, 3.40 GB a step`."""
    own = report[side]
    words = "at least " if own["unknown_rows"] else "at most " if own["upper_bound_rows"] else ""
    how = f" ({own['compiled']})" if own["compiled"] else ""
    return f"{count_text(own['collectives'], 'collective')}, {words}{bytes_text(own['step_wire_bytes'])} a step{how}"


def verdict(report: Report) -> str:
    """What a diff says, in one sentence."""
    number = len(report["differences"] or ())
    alike = report["alike"]["collectives"] if report["alike"] else 0
    other = len(report["equivalents"] or ())
    same = [f"{count_text(alike, 'collective')} match{'es' * (alike == 1)}"] * bool(alike or not (number or other))
    same += [f"{other} equivalent in another form"] * bool(other)
    moved = report["alike"]["in_another_order"] if report["alike"] else 0
    same += [f"{moved} in another order"] * bool(moved)
    lost = report["alike"]["of_other_neighbours"] if report["alike"] else []
    scopes = list_text(list(dict.fromkeys(f"{a} → {b}" for a, b in lost)))
    same += [f"{len(lost)} without a scope of their own, next to other neighbours ({scopes})"] * bool(lost)
    words = count_text(number, "difference")
    if not number:
        cost = _cost(report["equivalents"] or ())
        words = f"No difference but {cost}" if cost else "No difference"
    return f"{words}{';' if number else ':'} {', '.join(same)}." if same else f"{words}."


TOTALS = ("wire_bytes", "inherent", "inflated", "induced", "framework_induced", "missing", "unknown_rows")
"""Of a run's program, the totals that are told where they differ."""


def totals_words(program: Report) -> list[str]:
    """What of a program's totals is another number."""
    told = []
    for name in TOTALS:
        before, after = program["totals"].get(name, (None, None))
        if before != after:
            values = [bytes_text(one) if name != "unknown_rows" else str(one) for one in (before, after)]
            told.append(f"{name.replace('_', '-').replace('wire-bytes', 'moved')} {values[0]} → {values[1]}")
    return told


def case_words(report: Report) -> list[str]:
    """What of the case is another, where the two runs are of different cases."""
    return [f"{name}: {_short(before)} → {_short(after)}" for name, (before, after) in report["case_changes"].items()]


def _short(value: Any) -> str:
    return str(value.get("name", value)) if isinstance(value, Mapping) else str(value)


def version_words(report: Report) -> list[str]:
    """Packages whose version is another; those that are the same in one entry at the end."""
    told = [f"{name} {a or 'none'} → {b or 'none'}" for name, (a, b) in report["versions"].items() if a != b]
    same = [f"{name} {a}" for name, (a, b) in report["versions"].items() if a == b]
    return [*told, *([f"unchanged: {', '.join(same)}"] if same else [])]
