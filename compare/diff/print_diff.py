"""A diff in a terminal, one line for each difference, at most 100 columns wide; and as a page without scripts."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from compare.diff import lines
from compare.diff.lines import (
    Comparison,
    Line,
    case_words,
    difference_lines,
    equivalent_words,
    legend_text,
    total_words,
    totals_words,
    verdict,
    version_words,
)
from compare.diff.result import CellDiff, ProgramsDiff, RunsDiff
from compare.render import units
from compare.render.terminal import console, text_width, wrap_prose
from compare.report.programs import UNREADABLE
from meshes.process.one_line import plain

_STYLES = {"−": "green", "+": "red", "~": "yellow"}
_HEADINGS = ("collective", "scope", "op_name", "count × payload", "source")
_OP_NAME = _HEADINGS.index("op_name")
_NARROWEST = ((2, 24), (1, 20), (3, 28), (2, 12), (4, 14), (3, 20), (4, 10), (3, 12), (2, 7), (0, 16), (1, 8), (4, 6))
"""The columns of a line that are narrowed, in order, and how far; the longest scope has 20 characters."""


def print_diff(diff: ProgramsDiff | RunsDiff, *, out: Console | None = None) -> None:
    """Print the diff of two programs or two runs."""
    out = out or console()
    if "programs" in diff:
        _print_runs(diff, out)
        return
    for side, sign in ((diff["a"], "−"), (diff["b"], "+")):
        words = f"{sign} {side['name']}: {total_words(side)}"
        out.print(wrap_prose(words, width=text_width(out), hang="  ", style="bold"))
    _print_lines(diff, out)


def _print_lines(diff: Comparison, out: Console, *, indent: int = 0) -> None:
    rows = difference_lines(diff)
    if rows:
        out.print(*_table(rows, width=text_width(out), indent=indent), sep="\n")
    pad = " " * indent
    if words := legend_text(diff):
        out.print(wrap_prose(words, width=text_width(out), indent=pad, style="dim"))
    for words in equivalent_words(diff):
        out.print(wrap_prose(f"= {words}", width=text_width(out), indent=pad, hang=pad + "  ", style="dim"))
    out.print(wrap_prose(verdict(diff), width=text_width(out), indent=pad))


def _table(lines: Sequence[Line], *, width: int, indent: int) -> Iterator[Text]:
    """A heading and one line for each difference; long cells are cut (`--json` and the page have them in full)."""
    cells = [
        [plain(word) for word in (entry.what, entry.scope, entry.op_name, entry.how, _file(entry.source))]
        for entry in lines
    ]
    columns = [column for column, _ in enumerate(_HEADINGS) if any(row[column] for row in cells)]
    amounts = [f"{entry.amount:>9}" for entry in lines]
    widths = [max(map(len, column)) for column in zip(_HEADINGS, *cells, strict=True)]
    over = indent + 2 + max(map(len, amounts)) + sum(2 + widths[column] for column in columns) - width
    for column, least in _NARROWEST:
        taken = max(0, min(over, widths[column] - least)) if column in columns else 0
        widths[column] -= taken
        over -= taken

    def line(row: Sequence[str]) -> str:
        return "".join(f"  {_cut(row[column], widths[column], column):{widths[column]}}" for column in columns).rstrip()

    heading = " " * indent + f"  {'bytes':>{max(map(len, amounts))}}" + line(_HEADINGS)
    yield Text(heading, style="dim", no_wrap=True, overflow="ignore")
    for entry, amount, row in zip(lines, amounts, cells, strict=True):
        sign = (entry.sign, _STYLES[entry.sign])
        yield Text.assemble(" " * indent, sign, f" {amount}", line(row), no_wrap=True, overflow="ignore")


def _cut(words: str, size: int, column: int) -> str:
    """Cut to `size`: an op_name keeps its end, which names the operation, other cells their beginning."""
    if len(words) <= size:
        return words
    return f"…{words[len(words) - size + 1 :]}" if column == _OP_NAME else f"{words[: size - 1]}…"


def _file(source: str) -> str:
    """File and line without the folders; the full path is in `--json` and on the page."""
    return source.rpartition("/")[2]


def _print_runs(diff: RunsDiff, out: Console) -> None:
    width = text_width(out)
    for side, sign in ((diff["a"], "−"), (diff["b"], "+")):
        words = f"{sign} {side['run']}: {side['case']}"
        out.print(wrap_prose(words, width=width, hang="  ", style="bold"))
    for title, changes in (("case: ", case_words(diff)), ("versions: ", version_words(diff))):
        if changes:
            out.print(wrap_prose(f"{title}{'; '.join(changes)}", width=width, hang="  "))
    for program in diff["programs"]:
        if program["same"]:
            continue
        out.print()
        for line in _program(program, width):
            out.print(line)
        if program["differences"] is not None:
            _print_lines(program, out, indent=2)
    out.print()
    if same := [_name(program) for program in diff["programs"] if program["same"]]:
        out.print(wrap_prose(f"identical: {', '.join(same)}", width=width, hang="  "))
    for keys, words in ((diff["only_in_a"], "only in the first"), (diff["only_in_b"], "only in the second")):
        for arm, phase, cell in keys:
            out.print(wrap_prose(f"{arm} {phase} {cell}: {words}", width=width, style="yellow"))
    unread = [program for program in diff["programs"] if program["status"][0] == program["status"][1] in UNREADABLE]
    if unread:
        out.print(wrap_prose(f"not compared: {', '.join(map(_name, unread))}", width=width, style="yellow"))
    rest_same = not diff["same"] and all(program["same"] for program in diff["programs"] if program not in unread)
    if diff["same"]:
        verdict_words = "The two runs move the same bytes."
    elif rest_same and not (diff["only_in_a"] or diff["only_in_b"] or diff["case_changes"]):
        verdict_words = "What could be read of the two runs moves the same bytes."
    else:
        verdict_words = "The two runs differ."
    out.print(Text(verdict_words, style="bold"))


def _name(program: CellDiff) -> str:
    status = program["status"]
    failed = f" ({status[0]} in both)" if status[0] == status[1] != "ok" else ""
    return f"{program['title']} {program['phase']} {program['cell']}{failed}"


def _program(program: CellDiff, width: int) -> Iterator[Text]:
    yield wrap_prose(_name(program), width=width, style="bold")
    if program["status"] != ["ok", "ok"]:
        ends = [
            f"{status}{f' ({error})' if error else ''}"
            for status, error in zip(program["status"], program["error"], strict=True)
        ]
        yield wrap_prose(" → ".join(ends), width=width, indent="  ", style="red")
        return
    if program["partitioner"][0] != program["partitioner"][1]:
        yield wrap_prose(f"partitioner {' → '.join(map(str, program['partitioner']))}", width=width, indent="  ")
    if words := totals_words(program):
        yield wrap_prose("; ".join(words), width=width, indent="  ")


def page(diff: ProgramsDiff | RunsDiff) -> str:
    """The diff of two programs or two runs as a self-contained page."""
    from compare.render.html import environment, read_static

    templates = environment()
    templates.filters["bytes"] = units.bytes_text
    return templates.get_template("diff.html.j2").render(
        found=diff,
        programs=[program for program in diff["programs"] if not program["same"]] if "programs" in diff else [diff],
        style=read_static("page.css"),
        words=lines,
    )
