"""The lines of a sweep's table: a case in a phase, with every arm's default program side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render.report.missing_notes import LESS, MARK, mark_ratio
from compare.render.units import bytes_text, count_text, ratio_text, time_text
from compare.sweep.summary import ProgramSummary, ResultRow, Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLine:
    """One case in one phase."""

    model: str
    mesh: str
    label: str
    """The mesh, and what else distinguishes the row from others of this model on it."""
    on: str
    """Topology and devices."""
    words: str
    """The properties of its step that differ within the sweep."""
    phase: str
    needs: str
    """Inherent bytes of a step."""
    folder: str
    programs: Mapping[str, ProgramSummary]
    """Arm -> its default program."""

    def ratio(self, arm: str) -> str:
        """Emitted over inherent bytes; the status of a program that failed."""
        program = self.programs.get(arm)
        if program is None or program["wire_bytes"] is None:
            return str(program["status"]) if program else "–"
        if program["ratio"] is None:
            return "nothing" if not program["wire_bytes"] else bytes_text(program["wire_bytes"])
        return mark_ratio(ratio_text(program["ratio"], program["qualifier"]), short=is_short(program))

    def between_slices(self, arm: str) -> str:
        """Its bytes over the network between slices."""
        program = self.programs.get(arm)
        return bytes_text(program["dcn_wire_bytes"]) if program else "–"

    def step(self, arm: str) -> str:
        """Its modelled step time."""
        program = self.programs.get(arm)
        return time_text(program["modelled_step_ns"]) if program else "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a combination, or some of its programs, is missing."""

    what: str
    status: str
    reason: str


def is_short(program: ProgramSummary) -> bool:
    """Whether some bytes of the plan are unserved."""
    return bool(program.get("unserved"))


def footnotes(lines: Sequence[SweepLine]) -> list[str]:
    """What the marks in the table mean."""
    short = any(is_short(program) for line in lines for program in line.programs.values())
    return [f"{MARK} {LESS}."] if short else []


def common_words(sweep: Sweep) -> list[str]:
    """The properties that the steps of all cases share: `batch 8`, `1,024 tokens`."""
    steps = [_words(result) for result in sweep["results"] if result["case"]]
    return [words[0] for words in zip(*steps, strict=True) if len(set(words)) == 1 and words[0]]


def distinct_words(sweep: Sweep, result: ResultRow) -> str:
    """The properties of this row's step that not all cases share."""
    common = common_words(sweep)
    return ", ".join(word for word in _words(result) if word and word not in common) if result["case"] else ""


def label(sweep: Sweep, result: ResultRow) -> str:
    """The mesh; if several rows are of this model on it, also what distinguishes them."""
    like = [row for row in sweep["results"] if (row["model"], row["mesh"]) == (result["model"], result["mesh"])]
    words = distinct_words(sweep, result) if len(like) > 1 else ""
    return f"{result['mesh']}, {words}" if words else str(result["mesh"])


def _words(result: ResultRow) -> tuple[str, ...]:
    capacity = "full" if result["capacity"] is None else result["capacity"]
    return (
        f"batch {result['batch']}",
        count_text(result["seq"] or 0, "token"),
        count_text(result["microbatches"] or 0, "microbatch"),
        f"capacity {capacity}" if result.get("experts") else "",
        result["dtype"] or "",
    )


def crosses_slices(lines: Sequence[SweepLine]) -> bool:
    """Whether any program moves bytes between slices."""
    return any(program["dcn_wire_bytes"] for line in lines for program in line.programs.values())


def case_lines(sweep: Sweep) -> list[SweepLine]:
    """The lines of every case that has programs, in the order of the request."""
    return [
        SweepLine(
            model=result["model"],
            mesh=result["mesh"],
            label=label(sweep, result),
            words=distinct_words(sweep, result),
            on=f"{result['topology']}, {count_text(result['num_devices'] or 0, 'device')}",
            phase=phase,
            folder=result["folder"] or "",
            needs=bytes_text(summary["inherent_total"]),
            programs={program["arm"]: program for program in summary["programs"] if program["is_default"]},
        )
        for result in sweep["results"]
        for phase, summary in result["phases"].items()
    ]


def list_reasons(sweep: Sweep, *, status: str = "") -> list[Reason]:
    """What is missing and why, of combinations with this status; by default of all that failed."""
    wanted = [
        result for result in sweep["results"] if (result["status"] == status if status else _bad(result["status"]))
    ]
    return [reason for result in wanted for reason in _of(result)]


def _bad(status: str) -> bool:
    return status not in ("done", "refused")


def _of(result: ResultRow) -> Iterator[Reason]:
    what = f"{result['model']} on {result['mesh']}"
    bad = [
        (phase, program)
        for phase, summary in result["phases"].items()
        for program in summary["programs"]
        if program["status"] != "ok"
    ]
    by_reason: dict[tuple[str, str], list[str]] = {}
    for phase, program in bad:
        where = f"{program['title']} {program['cell']} in {phase}"
        by_reason.setdefault((program["status"], program["error"] or "no reason given"), []).append(where)
    for (status, error), places in by_reason.items():
        yield Reason(what=f"{what}: {_some(places)}", status=status, reason=error)
    if result["error"] or not bad:
        yield Reason(what=what, status=result["status"], reason=result["error"] or "no reason given")


def _some(places: Sequence[str]) -> str:
    """The first of them, and how many more."""
    return places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else "")
