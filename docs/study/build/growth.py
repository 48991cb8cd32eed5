"""Figures of what grows with the prompt, the batch and the chips."""

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from compare.render.picture import Picture
from docs.study.build.answers import Answer
from docs.study.build.sheet import (
    ARMS,
    BYTES,
    MODELLED,
    PHASES,
    TIME,
    Sheet,
    distinct,
    name_rows,
    plan_colour,
)


def sequences(answer: Answer) -> Picture:
    """Bytes and time over the length of a prompt."""
    label = "tokens of the prompt (prefill) or in the cache (decode)"
    return _growth(answer, "sequences", "seq", label, "One prompt: bytes of a step and its time, by length")


def batches(answer: Answer) -> Picture:
    """Bytes and time over the batch."""
    return _growth(answer, "batches", "batch", "sequences in the batch", "Bytes of a step and its time, by batch")


def _growth(answer: Answer, name: str, over: str, label: str, title: str) -> Picture:
    meshes = [mesh for (mesh,) in distinct(answer, "mesh")]
    columns = (("wire_bytes", "bytes a device", BYTES), ("step_ns", "step", TIME))
    panels = [(model, phase) for (model,) in distinct(answer, "model") for phase in PHASES]
    sheet = Sheet(title, label=MODELLED, high=2.05 * len(panels) + 0.9)
    for row, (model, phase) in enumerate(panels):
        for at, (column, words, formatter) in enumerate(columns):
            panel = sheet.panel(0.85 + 4.1 * at, 2.05 * row + 0.3, 3.3, 1.35)
            for size, mesh in enumerate(reversed(meshes)):  # what lies on top is smaller
                for arm, (arm_title, _, marker) in ARMS.items():
                    here = answer.where(model=model, phase=phase, mesh=mesh, arm=arm)
                    points = [
                        (each.number(over), each.number(column)) for each in here if getattr(each, column) is not None
                    ]
                    if points:
                        colour = plan_colour(mesh)
                        panel.plot(
                            *zip(*points, strict=True),
                            marker=marker,
                            markersize=7.5 - 1.4 * size,
                            color=colour,
                            linewidth=1.1,
                            linestyle="-" if arm == "jax" else "--",
                            label=f"{arm_title} {mesh}",
                            markerfacecolor="none" if arm == "jax" else colour,
                        )
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            # At least a decade, so that a tenth more does not look like ten times as much.
            low, high = panel.get_ylim()
            middle = (low * high) ** 0.5
            panel.set_ylim(min(low, middle / 10**0.6), max(high, middle * 10**0.6))
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=5))
            panel.yaxis.set_minor_locator(NullLocator())
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            panel.yaxis.set_major_formatter(formatter)
            panel.set_title(f"{model}, {phase}: {words}", loc="left")
            if row == len(panels) - 1:
                panel.set_xlabel(label)
    sheet.add_legend(columns=min(len(meshes) * 2, 4))
    return sheet.save(
        name,
        f"{title}; left the wire bytes of one device, right the modelled step; what does not "
        "fit the memory is left out; both axes logarithmic",
    )


def chips(answer: Answer) -> Picture:
    """Tokens a second and chip of the fastest plan, from few chips to many."""
    shown = [model for (model,) in distinct(answer, "model")]
    sheet = Sheet(
        "Four times the chips and the sequences: the fastest plan", label=MODELLED, high=0.55 * len(shown) + 1.3
    )
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.15 + number * 3.8, 0.3, 3.1, 0.55 * len(shown))
        for row, model in enumerate(shown):
            for arm, (title, colour, marker) in ARMS.items():
                ends = sorted(answer.where(model=model, phase=phase, arm=arm), key=lambda each: each.number("devices"))
                place = row + (-0.18 if arm == "jax" else 0.18)
                rates = [each.number("tokens_per_s_chip") for each in ends]
                panel.plot(rates, [place] * len(rates), "-", color=colour, linewidth=1.1)
                for at, (each, rate) in enumerate(zip(ends, rates, strict=True)):
                    label = f"{title}, {each.number('devices'):.0f} chips"
                    panel.plot(
                        [rate],
                        [place],
                        marker,
                        color=colour,
                        markersize=4.5,
                        label=label,
                        markerfacecolor=colour if at else "white",
                    )
                    left = at == rates.index(min(rates))
                    panel.annotate(
                        str(each.mesh),
                        (rate, place),
                        (-5 if left else 5, 0),
                        textcoords="offset points",
                        ha="right" if left else "left",
                        va="center",
                        fontsize=6,
                        color=plan_colour(str(each.mesh)),
                        weight="bold",
                    )
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        panel.set_xlim(low / 3, high * 3)
        panel.xaxis.set_minor_locator(NullLocator())
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        name_rows(panel, [] if number else shown, rows=len(shown))
        panel.set_xlabel("tokens a second and chip")
        panel.set_title(phase, loc="left")
    sheet.add_legend(columns=4)
    return sheet.save(
        "chips",
        "Tokens a second and chip of each framework's fastest plan (named), on few chips and on "
        "four times as many with four times the sequences; logarithmic",
    )
