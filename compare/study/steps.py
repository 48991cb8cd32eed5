"""Figures of where a step's time goes, what the framework adds, and which plan is the fastest."""

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from compare.render.figures import COMPUTE, INK
from compare.render.picture import Picture
from compare.study.answers import Answer, Row
from compare.study.sheet import (
    ARMS,
    COUNTED,
    MODELLED,
    PHASES,
    TIME,
    Sheet,
    distinct,
)


def hidden(answer: Answer) -> Picture:
    """Compute, hidden and exposed communication and idle time of each step, as shares of it."""
    parts = (("compute alone", COMPUTE, ""), ("communication, hidden", "#7fb2d9", "///"),
             ("communication, exposed", "#1f4e79", ""), ("idle", "#eceef1", ""))  # fmt: skip
    models = [model for (model,) in distinct(answer, "model")]
    bars = {model: distinct(answer.where(model=model), "mesh", "arm") for model in models}
    high = sum(0.17 * len(bars[model]) + 0.58 for model in models) + 0.3
    sheet, top = Sheet("Where a step's time goes", label=MODELLED, high=high), 0.0
    for model in models:
        height = 0.17 * len(bars[model])
        names = [f"{mesh}  {ARMS[arm][0]}" for mesh, arm in bars[model]]
        for number, phase in enumerate(PHASES):
            panel = sheet.panel(1.55 + number * 3.6, top + 0.28, 3.2, height)
            rows = [answer.where(model=model, phase=phase, mesh=mesh, arm=arm).rows for mesh, arm in bars[model]]
            shares = np.array([_shares(found[0]) if found else (0.0, 0.0, 0.0, 0.0) for found in rows])
            left = np.zeros(len(names))
            for (label, colour, hatch), widths in zip(parts, shares.T, strict=True):
                panel.barh(range(len(names)), widths, left=left, color=colour, hatch=hatch, edgecolor="white",
                           linewidth=0, height=0.78, label=label)  # fmt: skip
                left += widths
            panel.set_yticks(range(len(names)), [""] * len(names) if number else names, fontsize=6.5)
            panel.invert_yaxis()
            panel.set_xlim(0, 1)
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
            panel.set_title(f"{model}, {phase}", loc="left")
        top += height + 0.58
    sheet.add_legend(columns=4)
    return sheet.save("hidden", "Shares of one modelled step: compute alone, communication behind compute, exposed "
                      "communication, idle")  # fmt: skip


def _shares(row: Row) -> tuple[float, float, float, float]:
    columns = ("step_ns", "compute_ns", "hidden_ns", "exposed_ns")
    step, compute, behind, exposed = (row.number(name) for name in columns)
    return (compute - behind) / step, behind / step, exposed / step, max(0.0, (step - compute - exposed) / step)


def frameworks(answer: Answer) -> Picture:
    """What TorchXLA moves over what the plan requires, by model and plan; its einsum control beside it."""
    here = answer.where(arm="torchxla", cell=["tpu", "tpu+einsum"])
    looks = {"tpu": (ARMS["torchxla"][1], "s", "its own attention call"), "tpu+einsum": ("#147a70", "o", "as einsum")}
    models = distinct(here, "topology", "model")
    plans = {
        each: [mesh for (mesh,) in distinct(here.where(topology=each[0], model=each[1]), "mesh")] for each in models
    }
    high = sum(0.2 * len(each) + 0.55 for each in plans.values()) + 0.4
    sheet, top = Sheet("TorchXLA: emitted ÷ inherent bytes, by plan", label=COUNTED, high=high), 0.0
    furthest = 1.1 * max([2.0, *here.where(phase="prefill").numbers("emitted_over_inherent")])
    for (topology, model), meshes in plans.items():
        for number, phase in enumerate(PHASES):
            panel = sheet.panel(1.0 + number * 3.85, top + 0.28, 3.4, 0.2 * len(meshes))
            panel.axvline(1, color=INK, linewidth=1, linestyle=(0, (4, 2)))
            for row, mesh in enumerate(meshes):
                for each in here.where(topology=topology, model=model, mesh=mesh, phase=phase):
                    if each.emitted_over_inherent is not None:
                        colour, marker, label = looks[str(each.cell)]
                        panel.plot([each.number("emitted_over_inherent")], [row], marker, color=colour, markersize=4.5,
                                   markerfacecolor=colour if each.cell == "tpu" else "white", label=label)  # fmt: skip
            panel.set_yticks(range(len(meshes)), [""] * len(meshes) if number else meshes, fontsize=7)
            panel.set_ylim(len(meshes) - 0.5, -0.5)
            panel.set_xscale("log" if phase == "decode" else "linear")
            panel.set_xlim(*((0.6, 2000.0) if phase == "decode" else (0.9, furthest)))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_title(f"{model} on {topology}, {phase}", loc="left")
        top += 0.2 * len(meshes) + 0.55
    sheet.add_legend(columns=2)
    return sheet.save("frameworks", "Bytes that TorchXLA emits over those that the plan requires, with its own "
                      "attention call and with the same attention written as einsum")  # fmt: skip


def plans(answer: Answer) -> Picture:
    """The step of each framework's fastest plan, named, by model and phase."""
    shown = distinct(answer, "topology", "model")
    sheet = Sheet("The fastest plan of each framework", label=MODELLED, high=0.34 * len(shown) + 1.0)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.85 + number * 3.45, 0.3, 2.9, 0.34 * len(shown))
        for row, (topology, model) in enumerate(shown):
            for each in answer.where(topology=topology, model=model, phase=phase):
                for at, (arm, (title, colour, marker)) in enumerate(ARMS.items()):
                    step, mesh = each.number(f"{arm}_step_ns"), str(getattr(each, f"{arm}_mesh"))
                    place = row + (at - 0.5) * 0.38
                    panel.plot([step], [place], marker, color=colour, markersize=5, label=title)
                    panel.annotate(mesh, (step, place), (6, 0), textcoords="offset points", va="center", fontsize=6.5)
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        panel.set_xlim(low, high * 2.2)
        panel.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        panel.xaxis.set_major_formatter(TIME)
        panel.xaxis.set_minor_locator(NullLocator())
        names = [f"{model} {topology}" for topology, model in shown]
        panel.set_yticks(range(len(shown)), [""] * len(shown) if number else names, fontsize=7)
        panel.set_ylim(len(shown) - 0.4, -0.6)
        panel.grid(axis="y", color="#eceef1")
        panel.set_title(phase, loc="left")
    sheet.add_legend(columns=2)
    return sheet.save("plans", "Modelled step of the fastest plan of each framework, by model and slice")


def slices(answer: Answer) -> Picture:
    """The same plan on one slice and on two."""
    shown, topologies = distinct(answer, "model", "mesh"), [each for (each,) in distinct(answer, "topology")]
    sheet = Sheet("16 chips as one slice and as two", label=MODELLED, high=0.62 * len(shown) + 1.0)
    for number, phase in enumerate(PHASES):
        panel = sheet.panel(1.75 + number * 3.5, 0.3, 3.0, 0.62 * len(shown))
        for row, (model, mesh) in enumerate(shown):
            for at, (arm, topology) in enumerate((arm, topology) for arm in ARMS for topology in topologies):
                found = answer.where(model=model, mesh=mesh, phase=phase, arm=arm, topology=topology).numbers("step_ns")
                title, colour, _ = ARMS[arm]
                several = topology.partition("x")[0].isdigit()
                panel.barh(row + (at - 1.5) * 0.2, found[0] if found else 0, height=0.19,
                           color="white" if several else colour, edgecolor=colour, hatch="////" if several else "",
                           label=f"{title}, {topology}")  # fmt: skip
        panel.xaxis.set_major_formatter(TIME)
        panel.locator_params(axis="x", nbins=4)
        names = [f"{model} {mesh}" for model, mesh in shown]
        panel.set_yticks(range(len(shown)), [""] * len(shown) if number else names, fontsize=7)
        panel.invert_yaxis()
        panel.set_title(f"{phase}: step", loc="left")
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
                panel.plot(ends, [place, place], marker, linestyle="-", color=colour, markersize=4,
                           label=f"{title}: share of the step, least and most")  # fmt: skip
                panel.plot([each.number("gpipe_share")], [row], "|", color=INK, markersize=16,
                           label="share of the ticks, (p − 1)/(m + p − 1)")  # fmt: skip
        panel.set_xlim(0, None)
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))
        names = [f"{pp} stages, {microbatches} microbatches" for pp, microbatches in shown]
        panel.set_yticks(range(len(shown)), [""] * len(shown) if number else names, fontsize=7)
        panel.set_ylim(len(shown) - 0.4, -0.6)
        panel.set_title(phase, loc="left")
    sheet.add_legend(columns=3)
    return sheet.save("bubbles", "Share of a modelled step in which a stage computes on no microbatch, over all "
                      "programs; a bar where GPipe's share of the ticks is")  # fmt: skip
