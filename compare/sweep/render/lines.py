"""The lines of a sweep's table: a case in a phase, with every arm's default program side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compare.render.report.missing_notes import LESS, MARK, mark_ratio
from compare.render.units import bytes_text, count_text, ratio_text, time_text
from compare.sweep.summary import ProgramSummary, ResultRow, Sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One case in one phase."""

    model: str
    mesh: str
    label: str
    """The mesh, and what else tells it from another of this model on the same."""
    on: str
    """Topology and devices."""
    words: str
    """What of its step is not the same in the whole sweep."""
    phase: str
    needs: str
    """What the plan needs."""
    folder: str
    programs: Mapping[str, ProgramSummary]
    """Arm -> its default program."""

    def ratio(self, arm: str) -> str:
        """What it moves over what the plan needs; of one that is not there its status."""
        found = self.programs.get(arm)
        if found is None or found["wire_bytes"] is None:
            return str(found["status"]) if found else "–"
        if found["ratio"] is None:
            return "nothing" if not found["wire_bytes"] else bytes_text(found["wire_bytes"])
        return mark_ratio(ratio_text(found["ratio"], found["qualifier"]), short=is_short(found))

    def between_slices(self, arm: str) -> str:
        """What of it crosses the network between slices."""
        found = self.programs.get(arm)
        return bytes_text(found["dcn_wire_bytes"]) if found else "–"

    def step(self, arm: str) -> str:
        """Its time a step, modelled."""
        found = self.programs.get(arm)
        return time_text(found["modelled_step_ns"]) if found else "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why something is not there: a combination, or programs of one."""

    what: str
    status: str
    reason: str


def is_short(program: ProgramSummary) -> bool:
    """Whether it leaves a part of the plan unserved."""
    return bool(program.get("unserved"))


def footnotes(lines: Sequence[Line]) -> list[str]:
    """What the marks in a table say."""
    short = any(is_short(program) for line in lines for program in line.programs.values())
    return [f"{MARK} {LESS}."] if short else []


def common_words(sweep: Sweep) -> list[str]:
    """What of their steps all cases have in common: `batch 8`, `1,024 tokens`."""
    found = [_words(one) for one in sweep["results"] if one["case"]]
    return [words[0] for words in zip(*found, strict=True) if len(set(words)) == 1 and words[0]]


def distinct_words(sweep: Sweep, one: ResultRow) -> str:
    """What they have not."""
    common = common_words(sweep)
    return ", ".join(word for word in _words(one) if word and word not in common) if one["case"] else ""


def label(sweep: Sweep, one: ResultRow) -> str:
    """The mesh; where another row is of this model on the same mesh, what tells them apart, too."""
    like = [row for row in sweep["results"] if (row["model"], row["mesh"]) == (one["model"], one["mesh"])]
    words = distinct_words(sweep, one) if len(like) > 1 else ""
    return f"{one['mesh']}, {words}" if words else str(one["mesh"])


def _words(one: ResultRow) -> tuple[str, ...]:
    capacity = "full" if one["capacity"] is None else one["capacity"]
    return (
        f"batch {one['batch']}",
        count_text(one["seq"] or 0, "token"),
        count_text(one["microbatches"] or 0, "microbatch"),
        f"capacity {capacity}" if one.get("experts") else "",
        one["dtype"] or "",
    )


def crosses_slices(lines: Sequence[Line]) -> bool:
    """Whether any program moves bytes between slices."""
    return any(program["dcn_wire_bytes"] for line in lines for program in line.programs.values())


def case_lines(sweep: Sweep) -> list[Line]:
    """Of every case that has programs, in the order in which they were asked for."""
    return [
        Line(
            model=one["model"], mesh=one["mesh"], label=label(sweep, one), words=distinct_words(sweep, one),
            on=f"{one['topology']}, {count_text(one['num_devices'] or 0, 'device')}", phase=phase,
            folder=one["folder"] or "", needs=bytes_text(found["inherent_total"]),
            programs={program["arm"]: program for program in found["programs"] if program["is_default"]},
        )
        for one in sweep["results"]
        for phase, found in one["phases"].items()
    ]  # fmt: skip


def list_reasons(sweep: Sweep, *, status: str = "") -> list[Reason]:
    """What is not there, and why; of combinations with this status, or of all others that are not done."""
    wanted = [one for one in sweep["results"] if (one["status"] == status if status else _bad(one["status"]))]
    return [reason for one in wanted for reason in _of(one)]


def _bad(status: str) -> bool:
    return status not in ("done", "refused")


def _of(one: ResultRow) -> Iterator[Reason]:
    what = f"{one['model']} on {one['mesh']}"
    bad = [
        (phase, program)
        for phase, found in one["phases"].items()
        for program in found["programs"]
        if program["status"] != "ok"
    ]
    told: dict[tuple[str, str], list[str]] = {}
    for phase, program in bad:
        where = f"{program['title']} {program['cell']} in {phase}"
        told.setdefault((program["status"], program["error"] or "no reason given"), []).append(where)
    for (status, error), places in told.items():
        yield Reason(what=f"{what}: {_some(places)}", status=status, reason=error)
    if one["error"] or not bad:
        yield Reason(what=what, status=one["status"], reason=one["error"] or "no reason given")


def _some(places: Sequence[str]) -> str:
    """The first of them, and how many more."""
    return places[0] + (f" and {len(places) - 1} more" if len(places) > 1 else "")
