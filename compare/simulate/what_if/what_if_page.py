"""What a run would do on other machines, as a section of its report: a sentence for each phase, and the figure."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from compare.render.blocks import Block, Section, Sentence, Widget
from compare.render.errors import ViewError
from compare.render.picture import Picture, inline_picture
from compare.render.units import list_text, time_text
from compare.run.folder.run_folder import WHAT_IF
from meshes.process.documents import read_json
from meshes.process.errors import MeshError
from meshes.process.one_line import one_line

LEAST = 1.0
"""A smaller percentage of every step says nothing."""


def sections(folder: Path) -> list[Section]:
    """The section of a run's page if it has the result of a what-if that says something.

    `ViewError` if that file is of another form.
    """
    path = folder / WHAT_IF[0]
    if not path.is_file():
        return []
    try:
        words = list(_sentences(read_json(path)))
    except (MeshError, ValueError, LookupError, TypeError, AttributeError) as error:
        why = f"{path.name} is not what compare.simulate writes ({one_line(str(error), most=200)})"
        raise ViewError(f"{why}; delete it, or simulate again") from None
    blocks: list[Block] = [Sentence(sentence) for sentence in words]
    if words and (figure := _read_figure(folder)) is not None:
        blocks.append(Widget(template="figures.html.j2", values={"pictures": [inline_picture(figure)]}))
    return [Section(anchor="what-if", title="another network", link="what if", blocks=tuple(blocks))] * bool(blocks)


def _sentences(result: object) -> Iterator[str]:
    """`Simulated on v5e:2x4: twice the bandwidth shortens the prefill step of TorchXLA by 18.6 % and of JAX by …`."""
    programs: Mapping[str, Mapping[str, object]] = result["programs"]  # type: ignore[index]
    by_phase: dict[str, list[tuple[str, float]]] = {}
    machines: dict[str, None] = {}
    for program in programs.values():
        utility = _number(program["scale_up_bw_utility"])
        machines[str(program["machine"])] = None
        by_phase.setdefault(str(program["phase"]), []).append((str(program["title"]), utility))
    for phase, rows in by_phase.items():
        if max(utility for _, utility in rows) >= LEAST:
            rows.sort(key=lambda row: -row[1])
            steps = [
                f"{'the ' + phase + ' step of ' if not place else 'that of '}{title} by {utility:.1f} %"
                for place, (title, utility) in enumerate(rows)
            ]
            induced = list(_framework_words(programs.values(), phase))
            yield (
                f"Simulated on {list_text(list(machines))}: twice the bandwidth shortens {list_text(steps)}"
                + "".join(f"; {words}" for words in induced)
                + "."
            )


def _framework_words(programs: Iterable[Mapping[str, object]], phase: str) -> Iterator[str]:
    """`it hides 63 % of the 48.5 ms that only TorchXLA waits`, where that is more than a small part of the step."""
    for program in programs:
        induced = program.get("framework_induced")
        if program["phase"] != phase or not isinstance(induced, Mapping):
            continue
        now, twice = (_number(induced[key]) for key in ("exposed_ns", "twice_the_bandwidth_ns"))
        step = _number(program["step_ns"])
        if 100 * now >= LEAST * step > 0:
            hidden = 100 * (now - twice) / now
            yield f"it hides {hidden:.0f} % of the {time_text(now)} that only {program['title']} waits"


def _number(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return float(value)


def _read_figure(folder: Path) -> Picture | None:
    svg, png = (folder / name for name in WHAT_IF[1:])
    if not svg.is_file() or not png.is_file():
        return None
    caption = "Simulated, not measured: step time and exposed communication by verdict, as the machine changes"
    return Picture(name=svg.stem, caption=caption, png=png.read_bytes(), svg=svg.read_bytes())
