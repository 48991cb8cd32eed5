"""Print measured power and heat in a terminal."""

import re
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from compare.render.plain_table import plain_table
from compare.render.terminal import console, text_width, wrap_prose
from compare.render.units import UNKNOWN, axes_text, bytes_text, count_text, joules_text, time_text, watts_text
from compare.report.model.power import MeasuredEnergy, MeasuredPower, Meter, PowerWindow
from meshes.process.one_line import plain

_UNIT = re.compile(r"\s*\((?:W|C|%)\)$")
_BAR = 30
_NAME = 12
_MOST = 8
_BYTES: Mapping[str, int] = {"B": 1, "KiB": 1024}
_PARTS = {"compute": "green", "communication": "red", "copies": "yellow", "idle": "dim"}
NOT_MEASURED = "power and heat: not measured"
TEMPERATURE = "temperature"
NO_HEAT = "heat: not measured"
POWER = "power"
RULES = (
    "mean: each sample holds until the next, as in CharLLM-PPT's figures; sum: joules by straight lines between "
    "samples, so that power that rises or falls has another mean × time."
)


def print_measured(label: str, power: MeasuredPower, *, out: Console | None = None) -> None:
    """Print what files of measured power hold, without a profile."""
    out = out or console()
    out.print(wrap_prose(label, width=text_width(out), style="bold"))
    print_power(power, out=out)
    for note in power.notes:
        out.print(wrap_prose(f"note: {note}", width=text_width(out), style="dim"))


def print_power(power: MeasuredPower | None, *, out: Console) -> None:
    """Print a step's measured energy by each source, then the meters and windows; one line where nothing measured."""
    width = text_width(out)
    if power is None:
        out.print(wrap_prose(NOT_MEASURED, width=width, style="dim"))
        return
    for energy in power.steps:
        out.print()
        out.print(wrap_prose(energy_sentence(energy), width=width))
        out.print(*_bars(energy), sep="\n")
        out.print(_operations(energy))
    if power.windows:
        out.print()
        out.print(_windows(power.windows))
    if power.meters:
        out.print()
        out.print(_meters(power.meters))
        if any(meter.quantity == POWER for meter in power.meters):
            out.print(wrap_prose(RULES, width=width, style="dim"))
    if not power.heat_measured:
        out.print(wrap_prose(NO_HEAT, width=width, style="dim"))


def power_sentences(power: MeasuredPower) -> Iterator[str]:
    """What a report says of a program's measured power and heat."""
    yield from map(energy_sentence, power.steps)
    for meter in power.meters:
        if meter.quantity == TEMPERATURE:
            name, mean, peak = (
                _UNIT.sub("", meter.name),
                _amount(meter.mean, meter.unit),
                _amount(meter.peak, meter.unit),
            )
            yield f"{plain(name)}: {mean}, at most {peak}."
    if not power.heat_measured:
        yield f"{NO_HEAT.capitalize()}."
    yield from power.notes


def energy_sentence(energy: MeasuredEnergy) -> str:
    """`measured: a step takes 41.0 J on 8 devices, 105 W each, at most 150 W in 1 ms (HBM … )`, with its verdicts."""
    peak = f", at most {watts_text(energy.peak_w)} in 1 ms" if energy.peak_w is not None else ""
    words = (
        f"measured: a step takes {joules_text(energy.energy_j)} on {count_text(energy.devices, 'device')}, "
        f"{watts_text(energy.mean_w)} each{peak}; measured is {plain(energy.covers)}."
    )
    needless = sum(energy.by_verdict_j.get(name) or 0 for name in ("inflated", "induced"))
    if energy.by_verdict_j:
        words += f" {joules_text(needless)} are for communication that the plan does not need."
    return words


def _bars(energy: MeasuredEnergy) -> Iterator[Text]:
    total = energy.energy_j or 0
    parts: list[tuple[str, float, str]] = []
    for name, amount in energy.by_part_j.items():
        words = "exposed communication" if name == "communication" and energy.source == "meters" else name
        parts.append((words, amount or 0, _PARTS[name]))
        if name == "communication" and len(energy.by_axes_j) > 1:
            parts += [(f"  {axes_text(plain(axes))}", joules or 0, "dim") for axes, joules in energy.by_axes_j.items()]
    for words, amount, style in parts:
        share = amount / total if total else 0
        yield Text.assemble(
            f"  {words:<25}{joules_text(amount):>9}{100 * share:>7.3g} %  ", ("█" * round(share * _BAR), style)
        )


def _operations(energy: MeasuredEnergy) -> Table:
    table = _table(("operation", "over", "time", "energy", "power"))
    for row in energy.operations[:_MOST]:
        name = plain(row.operation) if row.kind or row.operation != "others" else "all others"
        seconds = (row.time_ns or 0) * energy.devices / 1e9
        watts = row.energy_j / seconds if row.energy_j is not None and seconds else None
        over = axes_text(plain(row.axes)).removeprefix("over ") if row.kind else ""
        table.add_row(name, over, time_text(row.time_ns), joules_text(row.energy_j), watts_text(watts))
    return table


def _meters(meters: tuple[Meter, ...]) -> Table:
    spread = "± within hosts", "± between hosts"
    table = _table(("meter", "devices", "mean", "peak", "lowest", "highest", *spread, "sum"))
    for meter in meters:
        table.add_row(
            plain(_UNIT.sub("", meter.name)),
            f"{meter.devices:,}",
            _amount(meter.mean, meter.unit),
            _amount(meter.peak, meter.unit),
            _amount(meter.lowest_device_mean, meter.unit, bare=True),
            _amount(meter.highest_device_mean, meter.unit, bare=True),
            _spread(meter.within_hosts_std),
            _spread(meter.between_hosts_std),
            _total(meter),
        )
    return table


def _windows(windows: tuple[PowerWindow, ...]) -> Table:
    table = _table(("window", "times", "devices", "time", "energy", "power", "± devices", "host"))
    for row in windows:
        table.add_row(
            plain(row.name),
            f"{row.windows:,} ×",
            f"{row.devices:,}",
            time_text(_ns(row.mean_s)),
            joules_text(row.energy_j),
            watts_text(row.mean_w),
            watts_text(row.device_std_w),
            joules_text(row.host_energy_j),
        )
    return table


def _table(headings: tuple[str, ...]) -> Table:
    table = plain_table(headings[:1], headings[1:])
    table.columns[0].min_width = _NAME  # numbers never push the names out
    return table


def _total(meter: Meter) -> str:
    if meter.quantity == POWER:
        return joules_text(meter.total)
    return UNKNOWN if meter.total is None else bytes_text(meter.total * _BYTES.get(meter.unit, 1))


def _spread(value: float | None) -> str:
    return UNKNOWN if value is None else f"± {value:.3g}"


def _amount(value: float | None, unit: str, *, bare: bool = False) -> str:
    """`100 W`; `bare`: without a unit, where another column has it, but of bytes."""
    if value is None:
        return UNKNOWN
    if unit in _BYTES:
        return bytes_text(value * _BYTES[unit])
    return _digits(value) if bare else f"{_digits(value)} {unit}"


def _digits(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def _ns(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e9
