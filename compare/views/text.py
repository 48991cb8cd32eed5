"""The report and the plan in a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.views.findings import Finding, asides, control_text, each_arm, findings, heading
from compare.views.programs import num_devices, programs, titles
from compare.views.terminal import STYLES, console, plain, text_width, wrapped
from compare.views.units import axes_text, bytes_text, listing, ratio_text

Report = Mapping[str, Any]
Phase = Mapping[str, Any]

_COLUMNS = (
    ("inherent", "inherent"), ("inflated", "inflated"), ("induced", "induced"), ("common", "common"),
    ("framework_induced", "framework-\ninduced"), ("missing", "missing"),
)  # fmt: skip

_INDENT = "   "


def print_report(report: Report, *, out: Console | None = None) -> None:
    """The sentence, the headline, and for each phase its differences, the largest first."""
    out = out or console()
    width = text_width(out)
    out.print(wrapped(report["sentence"], width=width, style="bold"))
    for phase, found in report["phases"].items():
        out.print()
        out.print(_phase_line(report, phase, found, width=width))
        out.print(_headline(found))
        out.print(*_notes(report, phase, width), *_differences(report, phase, width=width), sep="\n")
    out.print()


def print_note(lines: Sequence[str], *, out: Console | None = None) -> None:
    """What is to be said of the run itself."""
    out = out or console()
    for line in lines:
        out.print(wrapped(line, width=text_width(out), style="yellow"))


def print_page(path: Path) -> None:
    """The last line of a run: where the page is, whole, so that it can be copied."""
    print(path)


def print_plan(plan: Report, *, out: Console | None = None) -> None:
    """The contract of a case: what each phase moves, and after which formula."""
    out = out or console()
    case = plan["case"]
    out.print(wrapped(f"What the plan of {_case(case)} needs", width=text_width(out), style="bold"))
    for phase, found in plan["phases"].items():
        out.print()
        out.print(Text(f"{phase}: {bytes_text(found['total'])} a step, mean over devices", style="bold"))
        if not found["inherent"]:
            out.print(wrapped("Nothing: this mesh splits nothing that has to be put together again.", indent=_INDENT))
        for line in _contract(found["inherent"], width=text_width(out)):
            out.print(line)


def _case(case: Mapping[str, Any]) -> str:
    words = f"{case['model']['name']} on {case['mesh']['name']} ({case['topology']})"
    return f"{words}, batch {case['batch']}, {case['seq']} tokens, {case['microbatches']} microbatches, {case['dtype']}"


def _phase_line(report: Report, phase: str, found: Phase, *, width: int) -> Text:
    needs = bytes_text(found["inherent_total"])
    devices = num_devices(report)
    return wrapped(
        f"{phase}: the plan needs {needs} a step; what the compiled programs move (mean over {devices} devices):",
        width=width, style="bold",
    )  # fmt: skip


def _headline(found: Phase) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column("program")  # may wrap: numbers never do
    for name, words in _COLUMNS:
        table.add_column(Text(words, style=STYLES.get(name, "")), justify="right", no_wrap=True, vertical="bottom")
    table.add_column("emitted /\ninherent", justify="right", no_wrap=True)
    for line in found["headline"]:
        label = Text.assemble((plain(line["title"]), "bold"), " ", plain(line["cell"]))
        numbers = [Text(bytes_text(line[column]), style=_style(column, line[column])) for column, _ in _COLUMNS]
        table.add_row(label, *numbers, Text(ratio_text(line["ratio"], line["qualifier"]), style="bold"))
    return table


def _style(column: str, amount: int | None) -> str:
    return STYLES.get(column, "") if amount else "dim"


def _notes(report: Report, phase: str, width: int) -> Iterator[Text]:
    """What a reader must know of the table above."""
    yield from _failures(report["phases"][phase], width)
    yield from _uncounted(report, phase, width)
    yield from _less(report, phase, width)


def _failures(found: Phase, width: int) -> Iterator[Text]:
    """A line for each program that there is none of, and why."""
    for line in found["headline"]:
        if line["status"] != "ok":
            why = line["error"] or "no reason was given"
            words = f"{line['title']} {line['cell']}: {line['status']}: {why}"
            yield wrapped(words, width=width, style="red")


def _uncounted(report: Report, phase: str, width: int) -> Iterator[Text]:
    """Programs whose sums leave something out, or count it at its most."""
    for program in programs(report):
        if program.phase == phase and program.judged:
            totals = program.entry["totals"]
            told = [f"{totals['unknown_rows']} stand in loops that could not be counted, and are in no sum"] * bool(
                totals["unknown_rows"]
            )
            told += [f"{totals['upper_bound_rows']} are counted at the most that they can move"] * bool(
                totals["upper_bound_rows"]
            )
            if told:
                words = f"{program.title} {program.cell}: of {len(program.rows)} collectives {', '.join(told)}"
                yield wrapped(words, width=width, style="yellow")


def _less(report: Report, phase: str, width: int) -> Iterator[Text]:
    """Where a program moves less than the plan: contract rows that nothing serves, or not wholly."""
    for program in programs(report):
        if program.phase != phase or not program.judged:
            continue
        short = [row for row in program.entry["served"] if row["unserved_bytes"]]
        if short:
            told = "; ".join(
                f"{row['kind']} {axes_text(row['axes'])} in {row['scope']}, "
                f"{bytes_text(row['unserved_bytes'])} of {bytes_text(row['step_wire_bytes'])}"
                for row in short
            )
            yield wrapped(f"{program.title} {program.cell} does not move, of what the plan needs: {told}", width=width)


def _differences(report: Report, phase: str, *, width: int) -> Iterator[Text]:
    """The findings of the compared programs, then what is left aside."""
    found = findings(report["phases"][phase])
    names = titles(report)
    if found.told:
        yield Text(f"\n{heading(report, phase)} (bytes a step)", style="bold")
    for number, one in enumerate(found.told, start=1):
        yield from _finding(number, one, report["phases"][phase], names=names, width=width)
    if found.small:
        total = bytes_text(sum(one.excess_bytes for one in found.small))
        amount = len(found.small)
        yield wrapped(f"and {amount} smaller difference{'s' * (amount > 1)}: {total} together", width=width)
    if found.alike:
        yield wrapped(_alike(found.alike, names), width=width)
    for line in asides(report, phase):
        yield wrapped(line, width=width)


def _finding(number: int, one: Finding, phase: Phase, *, names: Mapping[str, str], width: int) -> Iterator[Text]:
    entry = one.first
    place = f"{names.get(entry['arm'], entry['arm'])}: {entry['kind']} {axes_text(entry['axes'])} in {entry['scope']}"
    yield Text.assemble(
        f"{number:>2} ", (f"{bytes_text(one.excess_bytes):>8} ", f"bold {STYLES[entry['verdict']]}"),
        f"{plain(place)}, {entry['executions']:,} ×", no_wrap=True, overflow="ellipsis",
    )  # fmt: skip
    indent = " " * 12
    yield wrapped(f"{entry['verdict']}, {entry['cause']}: {entry['sentence']}", width=width, indent=indent)
    where = entry["source_line"] or "no line of source is recorded"
    control = control_text(entry, phase)
    told = [where, *([each_arm(one, titles=names)] if entry["others"] else []), *([control] if control else [])]
    yield wrapped("; ".join(told), width=width, indent=indent, style="dim")


def _alike(found: Sequence[Finding], names: Mapping[str, str]) -> str:
    causes: dict[str, int] = {}
    for one in found:
        causes[one.first["cause"]] = causes.get(one.first["cause"], 0) + one.first["bytes"]
    told = ", ".join(f"{cause} {bytes_text(total)}" for cause, total in sorted(causes.items(), key=lambda c: -c[1]))
    arms = listing([names.get(arm, arm) for arm in dict.fromkeys(arm for one in found for arm in one.by_arm)])
    return f"Alike in {arms}: {bytes_text(sum(causes.values()))} beyond the plan ({told})"


def _contract(rows: Sequence[Mapping[str, Any]], *, width: int) -> Iterator[Text]:
    heading = ("scope", "collective", "times", "payload", "wire", "a step")
    yield Text(_columns(heading), style="dim")
    for row in rows:
        collective = f"{row['kind']} {axes_text(row['axes'])}"
        amounts = [bytes_text(row[name]) for name in ("payload_bytes", "wire_bytes", "step_wire_bytes")]
        yield Text(_columns((row["scope"], collective, f"{row['executions']:,}", *amounts)))
        yield wrapped(f"{row['formula']}; {row['source']}", width=width, indent=_INDENT + "  ", style="dim")


def _columns(words: Sequence[str]) -> str:
    scope, collective, *numbers = words
    return f"{_INDENT}{scope:<21}{collective:<29}" + "".join(f"{word:>11}" for word in numbers)
