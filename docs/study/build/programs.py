"""Figures of programs beside each other: twins, their controls and other people's models; and of energy."""

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from compare.render.figures import INK
from compare.render.picture import Picture
from docs.study.build.answers import Answer
from docs.study.build.sheet import ARMS, MARKS, MODELLED, PHASES, TIME, Sheet, distinct, name_rows, plan_colour

_WAYS = ("#1f4e79", "#56b4e9", "#e69f00", "#6a56a5", "#c0392b")


def witnesses(answer: Answer) -> Picture:
    """The step of every program of a case: a row for each program, a mark for each plan."""
    models = [model for (model,) in distinct(answer, "model")]
    rows = {model: distinct(answer.where(model=model), "arm", "cell") for model in models}
    sheet = Sheet(
        "One plan, written by several people: modelled steps",
        label=MODELLED,
        high=sum(0.21 * len(each) + 0.75 for each in rows.values()) + 0.7,
    )
    top = 0.3
    for model in models:
        height = 0.21 * len(rows[model])
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(1.75 + column * 3.4, top, 3.0, height)
            for row, (arm, cell) in enumerate(rows[model]):
                panel.axhline(row, color="#eceef1", zorder=0)
                for each in answer.where(model=model, phase=phase, arm=arm, cell=cell):
                    if each.step_ns is not None:
                        colour = plan_colour(str(each.mesh))
                        face = "none" if arm == "jax" else colour
                        panel.plot(
                            [each.number("step_ns")],
                            [row],
                            ARMS[arm][2],
                            color=colour,
                            markersize=5,
                            markerfacecolor=face,
                            label=str(each.mesh),
                        )
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
            panel.xaxis.set_major_formatter(TIME)
            panel.xaxis.set_minor_locator(NullLocator())
            names = [f"{ARMS[arm][0]}  {cell}" for arm, cell in rows[model]]
            name_rows(panel, [] if column else names, rows=len(names))
            panel.set_title(f"{model}, {phase}", loc="left")
            panel.set_xlabel("modelled step")
        top += height + 0.75
    sheet.add_legend(columns=6)
    return sheet.save(
        "witnesses",
        "Modelled step of each program of a case: the twins, each with one thing changed, "
        "and unmodified models of other people; a colour for each plan; logarithmic",
    )


def cache(answer: Answer) -> Picture:
    """A decode step by the way in which its cache is written and read, over the default's: a row for each plan."""
    ways = ("select", "slice", "index", "written", "written_index")
    models = [model for (model,) in distinct(answer, "model")]
    plans = {model: [mesh for (mesh,) in distinct(answer.where(model=model), "mesh")] for model in models}
    sheet = Sheet(
        "A decode step by the way in which its cache is written and read",
        label=MODELLED,
        high=sum(0.24 * len(each) + 0.75 for each in plans.values()) + 0.5,
    )
    largest = max(answer.numbers("written_index_times") + answer.numbers("index_times"))
    top = 0.3
    for model in models:
        height = 0.24 * len(plans[model])
        for column, (arm, (title, *_)) in enumerate(ARMS.items()):
            panel = sheet.panel(1.05 + column * 3.8, top, 3.3, height)
            panel.axvline(1, color=INK, linewidth=0.8)
            for row, mesh in enumerate(plans[model]):
                panel.axhline(row, color="#eceef1", zorder=0)
                for each in answer.where(model=model, arm=arm, mesh=mesh):
                    copying = str(each.copied_by).split(", ")
                    for marker, colour, way in zip(MARKS, _WAYS, ways, strict=False):
                        times, name = getattr(each, f"{way}_times"), way.replace("_", "-")
                        if times is not None:
                            face = colour if name in copying else "none"
                            panel.plot([times], [row], marker, color=colour, markersize=5, markerfacecolor=face)
            panel.set_xscale("log")
            panel.set_xlim(0.8, 1.3 * largest)
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} ×"))
            panel.xaxis.set_minor_locator(NullLocator())
            name_rows(panel, [] if column else plans[model], rows=len(plans[model]))
            panel.set_title(f"{model}, {title}", loc="left")
            panel.set_xlabel("step ÷ step with the default way")
        top += height + 0.75
    marks = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", markersize=5, markerfacecolor="none")
        for marker, colour, _ in zip(MARKS, _WAYS, ways, strict=False)
    ]
    words = [way.replace("_", "-") for way in ways]
    sheet.figure.legend(marks, words, loc="lower center", ncols=len(ways), frameon=False, fontsize=7.5)
    return sheet.save(
        "cache",
        "Modelled decode step of each way to write and read the cache, over the default way; "
        "filled where the caches of all layers are copied in each layer; logarithmic",
    )


def energy(answer: Answer) -> Picture:
    """Joules of a token by plan and framework, with the range of the coefficients."""
    models = [model for (model,) in distinct(answer, "model")]
    plans = {model: [mesh for (mesh,) in distinct(answer.where(model=model), "mesh")] for model in models}
    sheet = Sheet(
        "Energy of one token, by plan",
        label=MODELLED,
        high=sum(0.26 * len(each) + 0.75 for each in plans.values()) + 0.5,
    )
    top = 0.3
    for model in models:
        height = 0.26 * len(plans[model])
        for column, phase in enumerate(PHASES):
            panel = sheet.panel(1.05 + column * 3.8, top, 3.3, height)
            for row, mesh in enumerate(plans[model]):
                for each in answer.where(model=model, phase=phase, mesh=mesh):
                    title, colour, marker = ARMS[str(each.arm)]
                    place = row + (-0.17 if each.arm == "jax" else 0.17)
                    ends = [each.number("low_per_token_j"), each.number("high_per_token_j")]
                    panel.plot(ends, [place, place], "-", color=colour, linewidth=1.2)
                    panel.plot([each.number("per_token_j")], [place], marker, color=colour, markersize=4.5, label=title)
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=8))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} J"))
            panel.xaxis.set_minor_locator(NullLocator())
            name_rows(panel, [] if column else plans[model], rows=len(plans[model]))
            panel.set_title(f"{model}, {phase}", loc="left", color=INK)
            panel.set_xlabel("joules of one token")
        top += height + 0.75
    sheet.add_legend(columns=2)
    return sheet.save(
        "energy",
        "Modelled joules of one token by plan and framework; the line is the range of the coefficients; logarithmic",
    )
