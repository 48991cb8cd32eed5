"""The lines of a diff in words, for the terminal and the page alike."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compare.diff.result import (
    CellDiff,
    DifferenceEntry,
    DiffValues,
    EquivalentEntry,
    EquivalentRow,
    ProgramSide,
    RunsDiff,
    Value,
)
from compare.render.collectives_table import INFERRED, LEGEND, local_source
from compare.render.units import axes_text, bytes_text, count_text, list_text, times_text
from compare.report.grouping import group_by

Comparison = DiffValues | CellDiff

SIGNS: Mapping[str, str] = {"only in a": "−", "only in b": "+", "changed": "~"}

_COLUMNS: Mapping[str, str] = {
    "kind": "",
    "axes": "over ",
    "network": "on ",
    "scope": "in ",
    "dtype": "",
    "payload_bytes": "payload ",
    "executions": "",
    "executions_are": "counted ",
}
"""Column -> the words before its two values."""

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
    """The framework's path of the operation; `≈` before it, or a scope, taken from the nearest instruction."""
    how: str
    """How often and how much; for a change the old and the new values."""
    source: str
    entry: DifferenceEntry


def difference_lines(diff: Comparison) -> list[Line]:
    return [_line(entry) for entry in diff["differences"] or ()]


def _line(entry: DifferenceEntry) -> Line:
    runs = None if entry["executions"] is None else entry["executions"] * entry["times"]
    amount = f"{times_text(runs, entry['executions_are'])} {bytes_text(entry['payload_bytes'])}"
    changes = ", ".join(_change(name, *values) for name, values in entry["changes"].items())
    return Line(
        sign=SIGNS[entry["what"]],
        amount=signed_bytes_text(entry["delta_bytes"]),
        what=f"{entry['kind']} over {entry['axes']}",
        scope=INFERRED * ("scope" in entry["inferred"]) + entry["scope"],
        op_name=_op_name(entry),
        how=changes or amount,
        source=local_source(entry["source_line"] or ""),
        entry=entry,
    )


def _op_name(entry: DifferenceEntry) -> str:
    """The path of the first; how many others there are."""
    others = len(entry["other_op_names"])
    first = INFERRED * ("op_name" in entry["inferred"]) + entry["op_name"]
    return first + f" (+{others})" * bool(others) if entry["op_name"] else ""


def legend_text(diff: Comparison) -> str:
    """What the marks before scopes and paths mean; empty where there are none."""
    marked = any(INFERRED in (line.scope[:1], line.op_name[:1]) for line in difference_lines(diff))
    return LEGEND if marked else ""


def signed_bytes_text(count: int | None) -> str:
    """`+90.2 MB`; a question mark where it is unknown."""
    if count is None:
        return "? B"
    return f"+{bytes_text(count)}" if count > 0 else bytes_text(count)


def _change(name: str, before: Value, after: Value) -> str:
    if isinstance(before, list) and isinstance(after, list):
        sizes = [{len(group) for group in groups} for groups in (before, after)]
        if sizes[0] == sizes[1]:
            return "other pairs" if sizes[0] == {2} else "other groups"
        return "groups of " + " → ".join(list_text(sorted(map(str, side))) for side in sizes)
    return f"{_COLUMNS[name]}{_value_text(name, before)} → {_value_text(name, after)}"


def _value_text(name: str, value: Value) -> str:
    if isinstance(value, str | list):
        return str(value)
    return times_text(value) if name == "executions" else bytes_text(value)


def equivalent_words(diff: Comparison) -> list[str]:
    """What is the same in another form: one sentence for each form, with its cost in bytes."""
    groups = group_by(diff["equivalents"] or (), lambda entry: (entry["how"], _kinds(entry["a"]), _kinds(entry["b"])))
    sentences = []
    for (how, a, b), entries in groups.items():
        times = f", {len(entries)} ×" if len(entries) > 1 else ""
        cost = _cost(entries)
        sentences.append(f"{a} = {b}{times} ({how}){f'; {cost}' if cost else ''}")
    return sentences


def _cost(equivalents: Sequence[EquivalentEntry]) -> str:
    """Bytes that the other form sends more or less: `+33.6 MB a step`, `−8.4 MB a step over dcn`; empty if none."""
    amounts = (
        sum(equivalent["delta_bytes"] for equivalent in equivalents),
        sum(equivalent["delta_dcn_bytes"] for equivalent in equivalents),
    )
    words = [
        f"{signed_bytes_text(amount)} a step{on}"
        for amount, on in zip(amounts, ("", " over dcn"), strict=True)
        if amount
    ]
    return " and ".join(words)


def _kinds(rows: Sequence[EquivalentRow]) -> str:
    counts = Counter(f"{row['kind']} {axes_text(row['axes'])}" for row in rows)
    return list_text([f"{number} {word}" for word, number in counts.items()])


def total_words(side: ProgramSide) -> str:
    """`121 collectives, 3.40 GB a step`."""
    words = "at least " if side["unknown_rows"] else "at most " if side["upper_bound_rows"] else ""
    how = f" ({side['compiled']})" if side["compiled"] else ""
    return f"{count_text(side['collectives'], 'collective')}, {words}{bytes_text(side['step_wire_bytes'])} a step{how}"


def verdict(diff: Comparison) -> str:
    """The result of a diff in one sentence."""
    number = len(diff["differences"] or ())
    alike = diff["alike"]["collectives"] if diff["alike"] else 0
    other = len(diff["equivalents"] or ())
    same = [f"{count_text(alike, 'collective')} match{'es' * (alike == 1)}"] * bool(alike or not (number or other))
    same += [f"{other} equivalent in another form"] * bool(other)
    moved = diff["alike"]["in_another_order"] if diff["alike"] else 0
    same += [f"{moved} in another order"] * bool(moved)
    lost = diff["alike"]["of_other_neighbours"] if diff["alike"] else []
    scopes = list_text(list(dict.fromkeys(f"{a} → {b}" for a, b in lost)))
    same += [f"{len(lost)} whose scope, read from the nearest instruction, is another in b ({scopes})"] * bool(lost)
    words = count_text(number, "difference")
    if not number:
        cost = _cost(diff["equivalents"] or ())
        words = f"No difference but {cost}" if cost else "No difference"
    return f"{words}{';' if number else ':'} {', '.join(same)}." if same else f"{words}."


TOTALS = ("wire_bytes", "inherent", "inflated", "induced", "framework_induced", "missing", "unknown_rows")
"""The totals of a run's program that are shown if they differ."""


def totals_words(program: CellDiff) -> list[str]:
    """The totals of a program that differ."""
    changes = []
    for name in TOTALS:
        before, after = program["totals"].get(name, (None, None))
        if before != after:
            values = [bytes_text(total) if name != "unknown_rows" else str(total) for total in (before, after)]
            changes.append(f"{name.replace('_', '-').replace('wire-bytes', 'moved')} {values[0]} → {values[1]}")
    return changes


def case_words(diff: RunsDiff) -> list[str]:
    """The fields in which the cases of the two runs differ."""
    return [f"{name}: {_short(before)} → {_short(after)}" for name, (before, after) in diff["case_changes"].items()]


def _short(value: object) -> str:
    return str(value.get("name", value)) if isinstance(value, Mapping) else str(value)


def version_words(diff: RunsDiff) -> list[str]:
    """Packages whose versions differ; the unchanged ones in one entry at the end."""
    changes = [f"{name} {a or 'none'} → {b or 'none'}" for name, (a, b) in diff["versions"].items() if a != b]
    same = [f"{name} {a}" for name, (a, b) in diff["versions"].items() if a == b]
    return [*changes, *([f"unchanged: {', '.join(same)}"] if same else [])]
