"""The energy table of a sweep: in a terminal, and as cells of its page."""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.text import Text

from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import UNKNOWN, joules_text, percent_text, time_text, watts_text
from compare.sweep.energy.energy_lines import SAME, EnergyLine
from meshes.process.one_line import plain

HEADINGS = (
    "step",
    "exposed",
    "tokens/s",
    "energy of a token",
    "tokens per J",
    "÷ best",
    "W of a chip",
    "peak W",
    "in vain",
)
_SHORT = {
    "tokens/s": "tokens/s",
    "energy of a token": "energy of a token",
    "÷ best": "÷ best",
    "W of\na chip": "W of a chip",
    "peak\nW": "peak W",
    "in vain": "in vain",
}
"""Columns in a terminal, and their names in HEADINGS."""
_IN_WORDS = {
    "tokens/s": "tokens/s",
    "energy of a token": "a token",
    "÷ best": "of the best",
    "W of a chip": "W a chip",
    "in vain": "in vain",
}
"""Names in HEADINGS, and what follows the number in a line."""
NOTE = (
    "Modelled, not measured: each with its range over the coefficients (docs/energy.md). Watts are of one chip, peaks "
    "in 1 ms. In vain: the part of a step's joules that is for inflated and induced "
    "communication. ÷ best: of tokens per J, within one model and phase."
)


def cells(line: EnergyLine) -> tuple[str, ...]:
    """The numbers of a line, one for each of HEADINGS; empty without an energy."""
    energy = line.energy
    if energy is None:
        return ()
    return (
        time_text(line.step_ns),
        time_text(line.exposed_ns),
        _three(energy["tokens_per_s"]),
        _joules(energy["per_token_j"], energy["low_per_token_j"], energy["high_per_token_j"]),
        _three(energy["tokens_per_j"]),
        UNKNOWN if line.efficiency is None else f"{line.efficiency:.2f}",
        _range(energy["mean_w"], energy["low_mean_w"], energy["high_mean_w"]),
        watts_text(line.peak_w).removesuffix(" W"),
        percent_text(energy["needless_j"] / energy["step_j"] if energy["step_j"] else None),
    )


def program_words(line: EnergyLine) -> str:
    """`JAX`; with other compiler options `JAX, async-off`, or `JAX, async-off (the same program)`."""
    words = f"{line.title}, {line.option}" if line.option else line.title
    return f"{words} ({SAME})" if line.is_same else words


def print_energy(lines: Sequence[EnergyLine], *, out: Console | None = None) -> None:
    """One row for each program with an energy; the sweep's own table says why the others have none.

    A terminal that is too narrow for the table gets lines.
    """
    out = out or console()
    width = text_width(out)
    table = plain_table(("layout", "phase", "program"), [*_SHORT], vertical="bottom")
    for column in table.columns:
        column.no_wrap = True
    models = len({line.model for line in lines}) > 1
    before = ""
    for line in lines:
        if line.energy is None:
            continue
        layout = plain(f"{line.model} {line.layout}" if models else line.layout)
        row = dict(zip(HEADINGS, cells(line), strict=True))
        numbers = (row[heading] for heading in _SHORT.values())
        table.add_row(layout if layout != before else "", line.phase, plain(program_words(line)), *numbers)
        before = layout
    out.print()
    if Measurement.get(out, out.options.update(max_width=10 * width), table).maximum > width:
        out.print(*_lines(lines, width=width), sep="\n")
    else:
        out.print(table)
    out.print(wrap_prose(NOTE, width=width, style="dim"))


def _lines(lines: Sequence[EnergyLine], *, width: int) -> Iterator[Text]:
    for line in lines:
        if line.energy is not None:
            row = dict(zip(HEADINGS, cells(line), strict=True))
            numbers = (f"{row[name]} {unit}".strip() for name, unit in _IN_WORDS.items())
            words = f"{line.model} {line.layout}, {line.phase}, {program_words(line)}: {', '.join(numbers)}"
            yield wrap_prose(words, width=width, hang="   ")


def _three(value: float) -> str:
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def _joules(value: float, low: float, high: float) -> str:
    """`302 µJ (211–394)`."""
    text = joules_text(value)
    shown = float(text.split()[0].replace(",", "").replace("−", "-"))
    unit = (value / shown if shown else 0.0) or 1.0
    return f"{text} ({low / unit:.3g}–{high / unit:.3g})"


def _range(value: float, low: float, high: float) -> str:
    """`0.039 (0.027–0.051)`."""
    return f"{value:.3g} ({low:.3g}–{high:.3g})"
