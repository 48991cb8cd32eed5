"""The lines of a sweep's energy table: one program of one case in one phase, or why a case has none."""

from dataclasses import dataclass, replace

from compare.energy.step_energy import WINDOW_NS
from compare.report.compiler_options import option_of
from compare.sweep.summary import EnergySummary, ProgramSummary, ResultRow, Sweep
from meshes.memory import is_misfit

UNFIT = "does not fit the memory"
SAME = "the same program"
"""What is said of options that leave the default program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyLine:
    """One program with its energy; or one without, and why."""

    model: str
    mesh: str
    layout: str
    """The mesh, and what else tells it from others of this model: batch, microbatches."""
    folder: str = ""
    phase: str = ""
    arm: str = ""
    title: str = ""
    cell: str = ""
    option: str = ""
    """Of a program that was compiled with other options; empty: the default ones."""
    num_devices: int
    microbatches: int
    exposed_ns: float | None = None
    step_ns: float | None = None
    energy: EnergySummary | None = None
    efficiency: float | None = None
    """Tokens per J ÷ those of the best line of this model and phase."""
    missing: str
    """Why it has no energy."""
    is_same: bool = False
    """Whether its options left the default program."""

    @property
    def peak_w(self) -> float | None:
        """Peak W of a chip; `None` for a step of one window of power, which has no peak beside its mean."""
        return self.energy["peak_w"] if self.energy and (self.step_ns or 0) >= 2 * WINDOW_NS else None


def energy_lines(sweep: Sweep) -> list[EnergyLine]:
    """The default program of every arm, and those with other compiler options, in the order of the request."""
    lines: list[EnergyLine] = []
    for result in sweep["results"]:
        if not result["phases"]:
            lines.append(_without(sweep, result))
        for phase, summary in result["phases"].items():
            for program in summary["programs"]:
                if program["is_default"] or option_of(program["cell"]):
                    lines.append(_line(sweep, result, phase, program))
    best: dict[tuple[str, str], float] = {}
    for line in lines:
        if line.energy:
            key = line.model, line.phase
            best[key] = max(best.get(key, 0.0), line.energy["tokens_per_j"])
    return [
        replace(line, efficiency=line.energy["tokens_per_j"] / most)
        if line.energy and (most := best[line.model, line.phase])
        else line
        for line in lines
    ]


def layout_of(sweep: Sweep, result: ResultRow) -> str:
    """`tp4pp2`, with microbatches and batch where they differ within the sweep: `tp4pp2 m8`."""
    rows = [row for row in sweep["results"] if row["case"] and row["model"] == result["model"]]
    words = [result["mesh"]]
    for letter, name in (("b", "batch"), ("s", "seq"), ("m", "microbatches")):
        like = [row for row in rows if row["mesh"] == result["mesh"]]
        if len({row.get(name) for row in like}) > 1:
            words.append(f"{letter}{result.get(name)}")
    return " ".join(words)


def has_energy(sweep: Sweep) -> bool:
    """Whether any of its programs has an energy."""
    phases = (summary for result in sweep["results"] for summary in result["phases"].values())
    return any("energy" in program for summary in phases for program in summary["programs"])


def _line(sweep: Sweep, result: ResultRow, phase: str, program: ProgramSummary) -> EnergyLine:
    energy = program.get("energy")
    return replace(
        _without(sweep, result),
        folder=result["folder"] or "",
        phase=phase,
        arm=program["arm"],
        title=program["title"],
        cell=program["cell"],
        option=option_of(program["cell"]),
        exposed_ns=program["modelled_exposed_ns"],
        step_ns=program["modelled_step_ns"],
        energy=energy,
        missing="" if energy else _why(program["error"] or "no modelled energy"),
        is_same=program.get("same_program", False),
    )


def _without(sweep: Sweep, result: ResultRow) -> EnergyLine:
    return EnergyLine(
        model=result["model"],
        mesh=result["mesh"],
        layout=layout_of(sweep, result),
        num_devices=result["num_devices"] or 0,
        microbatches=result["microbatches"] or 1,
        missing=_why(result["error"]),
    )


def _why(error: str) -> str:
    return UNFIT if is_misfit(error) else error
