"""The report and the plan in a terminal."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from compare.render.programs import compared, num_devices, programs, titles
from compare.render.report.attribution import HEADING, pair_lines, showed_lines, whose_lines
from compare.render.report.findings import (
    NOT_COMPARED,
    Finding,
    asides,
    control_text,
    each_arm,
    findings,
    heading,
    left_out,
    sources,
)
from compare.render.report.ici_dcn import between_slices, network_words
from compare.render.report.missing_notes import is_short, marked, shortfalls
from compare.render.report.origins import origin_lines
from compare.render.terminal import STYLES, console, text_width, wrapped
from compare.render.time.sentence import time_sentence
from compare.render.time.text import times
from compare.render.units import axes_text, bytes_text, counted, listing, ratio_text
from compare.report.programs import GOOD
from meshes.process.one_line import plain

Report = Mapping[str, Any]
Phase = Mapping[str, Any]

_COLUMNS = (
    ("inherent", "inherent"), ("inflated", "inflated"), ("induced", "induced"), ("common", "common"),
    ("framework_induced", "framework-\ninduced"), ("missing", "missing"),
)  # fmt: skip

_INDENT = "   "
_NOTHING = "Nothing: this mesh splits nothing that has to be put together again."


def print_report(report: Report, *, out: Console | None = None) -> None:
    """The sentence, the headline, and for each phase its differences, the largest first."""
    out = out or console()
    width = text_width(out)
    out.print(wrapped(report["sentence"], width=width, style="bold"))
    if told := time_sentence(report):
        out.print(wrapped(told, width=width, style="bold"))
    for phase, found in report["phases"].items():
        out.print()
        out.print(_phase_line(report, phase, found, width=width))
        table = _headline(found)
        if Measurement.get(out, out.options.update(max_width=10 * width), table).minimum > width:
            out.print(*_narrow(found, width), sep="\n")
        else:
            out.print(table)
        parts = (_notes(report, phase, width), times(report, phase, out), _differences(report, phase, width=width))
        out.print(*chain(*parts), sep="\n")
    out.print(*_showed(report, width=width), sep="\n")
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
            out.print(wrapped(_NOTHING, width=text_width(out), indent=_INDENT))
        for line in _contract(found["inherent"], width=text_width(out)):
            out.print(line)
        for note in found["notes"]:
            out.print(wrapped(note, width=text_width(out), indent=_INDENT))


def _case(case: Mapping[str, Any]) -> str:
    words = f"{case['model']['name']} on {case['mesh']['name']} ({case['topology']})"
    parts = counted(case["microbatches"], "microbatch")
    return f"{words}, batch {case['batch']}, {case['seq']} tokens, {parts}, {case['dtype']}"


def _phase_line(report: Report, phase: str, found: Phase, *, width: int) -> Text:
    needs = bytes_text(found["inherent_total"])
    devices = counted(num_devices(report), "device")
    return wrapped(
        f"{phase}: the plan needs {needs} a step; what the compiled programs move (mean over {devices}):",
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
        table.add_row(label, *numbers, Text(_ratio(found, line), style="bold"))
    return table


def _narrow(found: Phase, width: int) -> Iterator[Text]:
    """The same where a terminal has no room for a table."""
    for line in found["headline"]:
        numbers = ", ".join(f"{words} {bytes_text(line[column])}".replace("-\n", "-") for column, words in _COLUMNS)
        yield wrapped(f"{line['title']} {line['cell']}: {_ratio(found, line)}; {numbers}", width=width, hang=_INDENT)


def _ratio(found: Phase, line: Mapping[str, Any]) -> str:
    return marked(ratio_text(line["ratio"], line["qualifier"]), short=is_short(found, line))


def _style(column: str, amount: int | None) -> str:
    return STYLES.get(column, "") if amount else "dim"


def _notes(report: Report, phase: str, width: int) -> Iterator[Text]:
    """What a reader must know of the table above."""
    if left_out(report["phases"][phase]) and phase == next(iter(report["phases"])):
        yield wrapped(NOT_COMPARED, width=width, style="dim")
    for line in between_slices(report, phase):
        yield wrapped(line, width=width)
    yield from _failures(report, phase, width)
    yield from _uncounted(report, phase, width)
    for line in shortfalls(report, phase):
        yield wrapped(line, width=width)
    for line in report["phases"][phase].get("notes", ()):
        yield wrapped(line, width=width, style="dim")
    for line in origin_lines(report, phase):
        yield wrapped(line, width=width, hang=_INDENT)


def _failures(report: Report, phase: str, width: int) -> Iterator[Text]:
    """A line for each reason that programs are not there; what all of an arm's have in common is told once."""
    every = [(name, line) for name, found in report["phases"].items() for line in found["headline"]]
    told: dict[tuple[str, str], list[str]] = {}
    for line in report["phases"][phase]["headline"]:
        if line["status"] in GOOD:
            continue
        reason = f"{line['status']}: {line['error'] or 'no reason was given'}"
        own = [(name, one) for name, one in every if one["arm"] == line["arm"]]
        if all((one["status"], one["error"]) == (line["status"], line["error"]) for _, one in own):
            if phase == own[0][0]:
                told[line["title"], reason] = []
        else:
            told.setdefault((line["title"], reason), []).append(line["cell"])
    for (title, reason), cells in told.items():
        yield wrapped(f"{' '.join([title, ', '.join(cells)]).strip()}: {reason}", width=width, style="red")


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


def _differences(report: Report, phase: str, *, width: int) -> Iterator[Text]:
    """The findings of the compared programs, then what is left aside."""
    found = findings(report["phases"][phase])
    names = titles(report)
    if found.told:
        yield Text(f"\n{heading(report, phase)} (bytes a step)", style="bold")
    elif found.alike:
        yield Text("")  # else it stands with the times
    for number, one in enumerate(found.told, start=1):
        yield from _finding(number, one, report, phase, width=width)
    if found.small:
        total = bytes_text(sum(one.excess_bytes for one in found.small))
        amount = len(found.small)
        yield wrapped(f"and {amount} smaller difference{'s' * (amount > 1)}: {total} together", width=width)
    if found.alike:
        yield wrapped(_alike(found.alike, names), width=width)
    for line in asides(report, phase):
        yield wrapped(line, width=width)
    yield from _whose(report, phase, width=width)


def _whose(report: Report, phase: str, *, width: int) -> Iterator[Text]:
    """Whose the bytes beyond the plan are, where controls were compiled."""
    if lines := whose_lines(report, phase) if report.get("controls") else ():
        yield Text(f"\n{HEADING}", style="bold")
    for line in (*lines, *pair_lines(report, phase)):
        yield wrapped(line, width=width, hang=_INDENT)


def _showed(report: Report, *, width: int) -> Iterator[Text]:
    """What each control showed, over all phases."""
    if lines := showed_lines(report):
        yield Text("\nWhat each control showed", style="bold")
    for line in lines:
        yield wrapped(line, width=width, hang=_INDENT)


def _finding(number: int, one: Finding, report: Report, phase: str, *, width: int) -> Iterator[Text]:
    entry, names = one.first, titles(report)
    place = f"{names.get(entry['arm'], entry['arm'])}: {entry['kind']} {axes_text(entry['axes'])} in {entry['scope']}"
    indent = " " * 12
    words = wrapped(f"{place}, {entry['executions']:,} ×", width=width, indent=indent).plain[len(indent) :]
    amount = (f"{bytes_text(one.excess_bytes):>8} ", f"bold {STYLES[entry['verdict']]}")
    yield Text.assemble(f"{number:>2} ", amount, words, no_wrap=True, overflow="ignore")
    yield wrapped(f"{entry['verdict']}, {entry['cause']}: {entry['sentence']}", width=width, indent=indent)
    lines = sources(entry, compared(report, phase))
    where = lines[0][0] if lines else "no line of source is recorded"
    where += f" ({bytes_text(lines[0][1])}, and {len(lines) - 1} more)" if len(lines) > 1 else ""
    control = control_text(entry, report["phases"][phase])
    told = [where, *([each_arm(one, titles=names)] if entry["others"] else []), *([control] if control else [])]
    yield wrapped("; ".join(told), width=width, indent=indent, style="dim")


def _alike(found: Sequence[Finding], names: Mapping[str, str]) -> str:
    causes: dict[str, list[Mapping[str, Any]]] = {}
    for one in found:
        causes.setdefault(one.first["cause"], []).append(one.first)
    sums = {cause: sum(entry["bytes"] for entry in own) for cause, own in causes.items()}
    ordered = sorted(causes, key=lambda cause: -sums[cause])
    told = ", ".join(f"{cause} {bytes_text(sums[cause])}{_where(causes[cause])}" for cause in ordered)
    arms = listing([names.get(arm, arm) for arm in dict.fromkeys(arm for one in found for arm in one.by_arm)])
    return f"Alike in {arms}: {bytes_text(sum(sums.values()))} beyond the plan ({told})"


def _where(entries: Sequence[Mapping[str, Any]]) -> str:
    """The scope, or how many there are."""
    scopes = list(dict.fromkeys(entry["scope"] for entry in entries))
    return f" in {scopes[0] if len(scopes) == 1 else counted(len(scopes), 'place')}"


def _contract(rows: Sequence[Mapping[str, Any]], *, width: int) -> Iterator[Text]:
    heading = ("scope", "collective", "times", "payload", "wire", "a step")
    wide = width >= len(_columns(heading))
    if wide:
        yield Text(_columns(heading), style="dim")
    for row in rows:
        collective = f"{row['kind']} {axes_text(row['axes'])}"
        amounts = [bytes_text(row[name]) for name in ("payload_bytes", "wire_bytes", "step_wire_bytes")]
        words = (row["scope"], collective, f"{row['executions']:,}", *amounts)
        if wide:
            yield Text(_columns(words))
        else:
            told = ", ".join(f"{name} {word}" for name, word in zip(heading[2:], words[2:], strict=True))
            yield wrapped(f"{row['scope']}: {collective}; {told}", width=width, indent=_INDENT)
        told = "; ".join(filter(None, (row["formula"], row["source"], network_words(row))))
        yield wrapped(told, width=width, indent=_INDENT + "  ", style="dim")


def _columns(words: Sequence[str]) -> str:
    scope, collective, *numbers = words
    return f"{_INDENT}{scope:<21}{collective:<29}" + "".join(f"{word:>11}" for word in numbers)
