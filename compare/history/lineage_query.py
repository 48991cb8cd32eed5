"""The histories of a run's collectives, selected by name, arm, phase and cell."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.passes.lineage import Event, Track, add_origins, trace_archive
from compare.report.model.program import DEFAULT_CELL
from compare.report.programs import JudgedProgram
from compare.run.errors import WorkError
from compare.user_program.saved_program import read_saved

if TYPE_CHECKING:
    from compare.run.folder.load_run import JudgedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One collective of one program, and its history."""

    arm: str
    phase: str
    cell: str
    row: Collective
    track: Track

    @property
    def program(self) -> str:
        """Arm, phase and cell of a run, or the folder of a saved program."""
        return "/".join(filter(None, (self.arm, self.phase, self.cell)))

    def to_dict(self) -> dict[str, object]:
        words = {name: getattr(self, name) for name in ("arm", "phase", "cell")}
        columns = ("name", "kind", "axes", "scope", "form", "step_wire_bytes", "source_line", "origin")
        return {
            **words,
            **{name: getattr(self.row, name) for name in columns},
            "changes": [change.public() for change in self.row.changes],
            "events": [_event(event) for event in self.track.events],
        }


def query_saved(folder: Path, *, name: str = "") -> list[History]:
    """The histories of a saved program: of the collective of this name, of those whose names begin so, or all."""
    program = read_saved(folder)
    if not program.passes:
        raise WorkError(f"the passes of {folder} are not recorded: it was compiled elsewhere")
    rows = collectives(read(program.text), program.axes, device_ids=program.device_ids, names=program.names)
    lives = trace_archive(program.passes, program.text)
    wanted = match_names(name, [row.name for row in rows])
    histories = [
        History(arm=str(folder), phase="", cell="", row=row, track=lives[row.name])
        for row in add_origins(rows, lives)
        if row.name in lives and row.name in wanted
    ]
    if name and not histories:
        raise _unknown(str(folder), name, [row.name for row in rows])
    return histories


def query_run(run: "JudgedRun", *, name: str = "", arm: str = "", phase: str = "", cell: str = "") -> list[History]:
    """The histories of this name, or all, in the order of the run, of the programs that the other arguments select.

    Where none bears the name, those whose names begin with it.

    Without a cell, the default cells are searched first, then the others.  Raises `WorkError` if there is no such
    program, none whose passes were recorded, or none with that name.
    """
    selected = {result.key for result in run.run.select((arm, phase, cell))}
    cells = [program for program in run.programs if program.result.key in selected]
    if not cells:
        asked = "/".join(word or "*" for word in (arm, phase, cell))
        raise WorkError(f"{run.run.folder} has no program {asked}; there are {_all(run.programs)}")
    recorded = [cell for cell in cells if cell.lineage is not None]
    if not recorded:
        why = "; ".join(dict.fromkeys(cell.why_no_lineage or cell.result.status for cell in cells))
        raise WorkError(f"the passes of {_all(cells)} are not recorded: {why}")
    names = list(dict.fromkeys(row.name for member in recorded for row in member.rows))
    wanted = match_names(name, names)
    if not cell:
        defaults = [member for member in recorded if member.result.cell == DEFAULT_CELL]
        others = [member for member in recorded if member.result.cell != DEFAULT_CELL]
        histories = _of(defaults, wanted) or (_of(others, wanted) if name or not defaults else [])
    else:
        histories = _of(recorded, wanted)
    if not histories and name:
        where = _all(recorded) if len(recorded) == 1 else f"{run.run.folder}, {len(recorded)} programs"
        raise _unknown(where, name, names)
    return histories


def _unknown(where: str, name: str, names: Sequence[str]) -> WorkError:
    like = get_close_matches(name, names, n=3, cutoff=0.5) or names[:5]
    return WorkError(f"{where}: no collective is named {name!r}; there are {', '.join(like) or 'none'}")


def match_names(name: str, names: Sequence[str]) -> frozenset[str]:
    """The name itself; where none bears it, those that begin with it; all for an empty one."""
    return frozenset((name,)) if name in names else frozenset(each for each in names if each.startswith(name))


def _of(cells: Sequence[JudgedProgram], wanted: Collection[str]) -> list[History]:
    return [
        History(arm=cell.result.arm, phase=cell.result.phase, cell=cell.result.cell, row=row, track=life)
        for cell in cells
        for row in cell.rows
        if row.name in wanted and (life := (cell.lineage or {}).get(row.name))
    ]


def _all(cells: Sequence[JudgedProgram]) -> str:
    return ", ".join("/".join(cell.result.key) for cell in cells)


def _event(event: Event) -> dict[str, object]:
    return {
        "pass": event.span,
        "what": event.what,
        "detail": event.detail,
        "before": list(event.before),
        "after": event.after,
    }
