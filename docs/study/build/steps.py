"""Figures of where a step's time goes, what the framework adds, and which plan is the fastest."""

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

from compare.render.figures import INK
from compare.render.palette import COMPUTE
from compare.render.picture import Picture
from docs.study.build.answers import Answer, Row, percent
from docs.study.build.sheet import (
    ARMS,
    COUNTED,
    MODELLED,
    PHASES,
    SHOWN,
    TIME,
    Sheet,
    distinct,
    name_rows,
    plan_colour,
)


def hidden(answer: Answer) -> Picture:
    """Compute, hidden and exposed communication and idle time of each step of the dense model, as shares of it."""
    parts = (
        ("compute alone", COMPUTE, ""),
        ("communication, hidden", "#7fb2d9", "///"),
        ("communication, exposed", "#1f4e79", ""),
        ("idle", "#eceef1", ""),
    )
    here = answer.where(model=SHOWN[0])
    bars = distinct(here, "mesh", "arm")
    sheet = Sheet(f"Where a step's time goes: {SHOWN[0]}", label=MODELLED, high=0.2 * len(bars) + 1.2)
    names = [f"{mesh}  {ARMS[arm][0]}" for mesh, arm in bars]
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.55 + number * 3.6, 0.28, 3.2, 0.2 * len(bars))
        rows = [here.where(phase=phase, mesh=mesh, arm=arm).rows for mesh, arm in bars]
        shares = np.array([_shares(found[0]) if found else (0.0, 0.0, 0.0, 0.0) for found in rows])
        left = np.zeros(len(names))
        for (label, colour, hatch), widths in zip(parts, shares.T, strict=True):
            panel.barh(
                range(len(names)),
                widths,
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                linewidth=0,
                height=0.78,
                label=label,
            )
            left += widths
        name_rows(panel, [] if number else names, rows=len(names))
        panel.set_xlim(0, 1)
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        panel.set_title(phase, loc="left")
        panel.set_xlabel("share of the step")
    sheet.add_legend(columns=4)
    return sheet.save(
        "hidden",
        f"Shares of one modelled step of {SHOWN[0]}: compute alone, communication behind "
        "compute, exposed communication, idle",
    )


def _shares(row: Row) -> tuple[float, float, float, float]:
    columns = ("step_ns", "compute_ns", "hidden_ns", "exposed_ns")
    step, compute, behind, exposed = (row.number(name) for name in columns)
    return (compute - behind) / step, behind / step, exposed / step, max(0.0, (step - compute - exposed) / step)


def frameworks(answer: Answer) -> Picture:
    """What TorchXLA moves over what the plan requires: a row for each model, a mark for each plan."""
    here = answer.where(arm="torchxla", cell=["tpu", "tpu+einsum"])
    models = distinct(here, "topology", "model")
    sheet = Sheet("TorchXLA: emitted ÷ inherent bytes, by plan", label=COUNTED, high=0.42 * len(models) + 1.75)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.85 + number * 3.4, 0.28, 3.05, 0.42 * len(models))
        panel.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        for row, (topology, model) in enumerate(models):
            for each in here.where(topology=topology, model=model, phase=phase):
                if each.emitted_over_inherent is not None:
                    own = each.cell == "tpu"
                    colour = plan_colour(str(each.mesh))
                    panel.plot(
                        [each.number("emitted_over_inherent")],
                        [row + (-0.15 if own else 0.2)],
                        "s" if own else "o",
                        color=colour,
                        markersize=5,
                        markerfacecolor=colour if own else "none",
                        label=str(each.mesh) if own else None,
                    )
        panel.set_xscale("log")
        ratios = here.where(phase=phase).numbers("emitted_over_inherent")
        panel.set_xlim(min(ratios) / 1.15, max(ratios) * 1.15)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(ratios) < 20 else (1,)))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
        panel.xaxis.set_minor_locator(NullLocator())
        names = [f"{model} {topology}" for topology, model in models]
        name_rows(panel, [] if number else names, rows=len(names))
        panel.grid(axis="y", color="#eceef1")
        panel.set_title(phase, loc="left")
        panel.set_xlabel("bytes sent ÷ bytes required")
    sheet.add_legend(columns=6)
    return sheet.save(
        "frameworks",
        "Bytes that TorchXLA emits over those that the plan requires: upper row, filled, "
        "its own attention call; lower row, hollow, the same attention written as einsum; a colour for "
        "each plan; logarithmic",
    )


def plans(answer: Answer) -> Picture:
    """The step of each framework's fastest plan, named, by model and phase."""
    shown = distinct(answer, "topology", "model")
    sheet = Sheet("The fastest plan of each framework", label=MODELLED, high=0.4 * len(shown) + 1.15)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.85 + number * 3.45, 0.3, 2.75, 0.4 * len(shown))
        for row, (topology, model) in enumerate(shown):
            for each in answer.where(topology=topology, model=model, phase=phase):
                for at, (arm, (title, colour, marker)) in enumerate(ARMS.items()):
                    step, mesh = each.number(f"{arm}_step_ns"), str(getattr(each, f"{arm}_mesh"))
                    place, words = row + (at - 0.5) * 0.4, f"{mesh}, {percent(each.number(f'{arm}_holds_share'))}"
                    panel.plot([step], [place], marker, color=colour, markersize=5, label=title)
                    panel.annotate(
                        words,
                        (step, place),
                        (6, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=6.5,
                        color=plan_colour(mesh),
                        weight="bold",
                    )
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        panel.set_xlim(low / 1.2, high * 6)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        panel.xaxis.set_major_formatter(TIME)
        panel.xaxis.set_minor_locator(NullLocator())
        names = [f"{model} {topology}" for topology, model in shown]
        name_rows(panel, [] if number else names, rows=len(names))
        panel.grid(axis="y", color="#eceef1")
        panel.set_title(phase, loc="left")
        panel.set_xlabel("modelled step")
    sheet.add_legend(columns=2)
    return sheet.save(
        "plans",
        "Modelled step of the fastest plan of each framework, by model and slice; beside it the "
        "plan, and in how many draws of the model's errors it is the fastest; logarithmic",
    )


def slices(answer: Answer) -> Picture:
    """The same plan on one slice and on two."""
    shown, topologies = distinct(answer, "model", "mesh"), [each for (each,) in distinct(answer, "topology")]
    sheet = Sheet("16 chips as one slice and as two", label=MODELLED, high=0.62 * len(shown) + 1.1)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.75 + number * 3.5, 0.3, 3.0, 0.62 * len(shown))
        for row, (model, mesh) in enumerate(shown):
            for at, (arm, topology) in enumerate((arm, topology) for arm in ARMS for topology in topologies):
                found = answer.where(model=model, mesh=mesh, phase=phase, arm=arm, topology=topology).numbers("step_ns")
                title, colour, _ = ARMS[arm]
                several = topology.partition("x")[0].isdigit()
                panel.barh(
                    row + (at - 1.5) * 0.2,
                    found[0] if found else 0,
                    height=0.19,
                    color="white" if several else colour,
                    edgecolor=colour,
                    hatch="////" if several else "",
                    label=f"{title}, {topology}",
                )
        panel.xaxis.set_major_formatter(TIME)
        panel.locator_params(axis="x", nbins=4)
        names = [f"{model} {mesh}" for model, mesh in shown]
        name_rows(panel, [] if number else names, rows=len(names))
        panel.set_title(phase, loc="left")
        panel.set_xlabel("modelled step")
    sheet.add_legend(columns=4)
    return sheet.save("slices", "Modelled step of the same plan on 16 chips of one slice and on two slices of 8")


def bubbles(answer: Answer) -> Picture:
    """How much of a step a stage computes on nothing: from the least to the most of all programs, beside GPipe's."""
    shown = distinct(answer, "pp", "microbatches")
    sheet = Sheet("What a pipeline computes on nothing", label=MODELLED, high=0.5 * len(shown) + 1.0)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.65 + number * 3.55, 0.3, 3.1, 0.5 * len(shown))
        for row, (pp, microbatches) in enumerate(shown):
            for each in answer.where(pp=int(pp), microbatches=int(microbatches), phase=phase):
                title, colour, marker = ARMS[str(each.arm)]
                place = row + (-0.18 if each.arm == "jax" else 0.18)
                ends = [each.number("least_of_step_share"), each.number("most_of_step_share")]
                panel.plot(
                    ends,
                    [place, place],
                    marker,
                    linestyle="-",
                    color=colour,
                    markersize=4,
                    label=f"{title}: share of the step, least and most",
                )
                panel.plot(
                    [each.number("gpipe_share")],
                    [row],
                    "|",
                    color=INK,
                    markersize=16,
                    label="share of the ticks, (p − 1)/(m + p − 1)",
                )
        panel.set_xlim(0, None)
        panel.xaxis.set_major_locator(MultipleLocator(0.05))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        names = [f"{pp} stages, {microbatches} microbatches" for pp, microbatches in shown]
        name_rows(panel, [] if number else names, rows=len(names))
        panel.set_title(phase, loc="left")
        panel.set_xlabel("share of the step")
    sheet.add_legend(columns=3)
    return sheet.save(
        "bubbles",
        "Share of a modelled step in which a stage computes on no microbatch, over all "
        "programs; a bar where GPipe's share of the ticks is",
    )
