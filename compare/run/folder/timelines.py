"""The timelines of a run's programs: what was run is read from its profile, what was only compiled is modelled."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compare.hlo.text.errors import HloError
from compare.report.build import mesh_picture
from compare.report.programs import Judged, Key
from compare.run.folder.untrusted_paths import is_inside
from compare.run.tasks import PROFILES
from compare.timing.alignment.timeline_diff import timeline_diff
from compare.timing.alignment.unmatched_intervals import LEFT, RIGHT
from compare.timing.errors import TimingError
from compare.timing.join import profile
from compare.timing.metrics.section import section
from compare.timing.model.schedule import modelled
from compare.timing.timeline import Timeline
from meshes.process.one_line import one_line

SIDES = (LEFT, RIGHT)
MOST_STRETCHES = 20
"""Of those that one arm's timeline has and the other's has not, as many are in a report."""


@dataclass(frozen=True, slots=True)
class Timelines:
    """By arm, phase and cell, of every program that is there."""

    found: Mapping[Key, Timeline]
    errors: Mapping[Key, str]
    """Why a program has none, one line."""


def timelines(cells: Sequence[Judged], *, folder: Path) -> Timelines:
    """Of all cells that are there.  `folder`: the run folder, with the profiles of those that were run."""
    found, errors = dict[Key, Timeline](), dict[Key, str]()
    for cell in cells:
        if cell.module is None:
            continue
        try:
            found[cell.result.key] = _measured(cell, folder) if cell.result.executed else _modelled(cell)
        except (TimingError, HloError, OSError) as error:
            errors[cell.result.key] = one_line(str(error).replace(f"{folder}/", ""))
    return Timelines(found, errors)


def _modelled(cell: Judged) -> Timeline:
    assert cell.module is not None
    return modelled(cell.module, cell.rows, cell.case.plan)


def _measured(cell: Judged, folder: Path) -> Timeline:
    files = sorted(one for one in folder.joinpath(*cell.result.key).glob(PROFILES) if is_inside(folder, one))
    if not files:
        raise TimingError(f"its profile is not there: {'/'.join(cell.result.key)}/{PROFILES}")
    return profile.read(files, axes=cell.case.mesh.split_axes, hlo=cell.module, label=cell.about.get("label"))


def add_times(report: Mapping[str, Any], cells: Sequence[Judged], times: Timelines) -> None:
    """Give each program of a report its `timing`, or its `timing_error`; and each phase its `time_differences`."""
    own = {cell.result.key: cell for cell in cells}
    for key, entry in _entries(report):
        if key in times.found:
            entry["timing"] = _section(own[key], entry, times.found[key])
        elif key in times.errors:
            entry["timing_error"] = times.errors[key]
    for phase, found in report["phases"].items():
        found["time_differences"] = _differences(phase, found, times.found, axes=report["mesh"]["groups"])


def _differences(
    phase: str, found: Mapping[str, Any], times: Mapping[Key, Timeline], *, axes: Collection[str]
) -> dict[str, Any]:
    """Two arms' timelines held against each other: the compared programs as modelled, and each pair measured alike."""
    ran = dict.fromkeys(cell for arm in found["arms"].values() for cell in arm["profiles"])
    pairs = {"modelled": found["compared_cells"], **{cell: measured_alike(found["arms"], cell) for cell in ran}}
    told = {name: _difference(phase, found, cells, times, axes) for name, cells in pairs.items()}
    return {name: one for name, one in told.items() if one}


def measured_alike(arms: Mapping[str, Any], cell: str) -> dict[str, str]:
    """Arm -> its cell that was measured as `cell` was: `cpu+jaxlib` as the `cpu` of an arm that runs on that anyway."""
    found: dict[str, str] = {}
    for arm, entry in arms.items():
        there = [name for name in (cell, cell.partition("+")[0]) if name in entry["profiles"]]
        found |= {arm: there[0]} if there else {}
    return found


def _difference(
    phase: str,
    found: Mapping[str, Any],
    cells: Mapping[str, str],
    times: Mapping[Key, Timeline],
    axes: Collection[str],
) -> dict[str, Any] | None:
    """None where there are not two.  cells: arm -> its cell."""
    there = {arm: times[arm, phase, cell] for arm, cell in cells.items() if (arm, phase, cell) in times}
    if len(there) != len(SIDES):
        return None
    rows = [_entry(found["arms"][arm], cells[arm])["collectives"] for arm in there]
    sides = {side: {"arm": arm, "cell": cells[arm]} for side, arm in zip(SIDES, there, strict=True)}
    diff = timeline_diff(*there.values(), left_rows=rows[0], right_rows=rows[1], axes=axes)
    return {**sides, **diff.to_dict(most=MOST_STRETCHES)}


def _entry(arm: Mapping[str, Any], cell: str) -> Mapping[str, Any]:
    return next(entry for entry in _of_arm(arm) if entry["cell"] == cell)


def _of_arm(arm: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """Its default program, controls, and what was run."""
    return (arm, *arm["controls"].values(), *arm["profiles"].values())


def _entries(report: Mapping[str, Any]) -> Iterator[tuple[Key, dict[str, Any]]]:
    for phase, found in report["phases"].items():
        for arm, default in found["arms"].items():
            for entry in _of_arm(default):
                yield (arm, phase, entry["cell"]), entry


def _section(cell: Judged, entry: Mapping[str, Any], timeline: Timeline) -> dict[str, Any]:
    on_tpu = cell.about.get("executed", {}).get("platform") != "cpu"
    return section(
        timeline,
        rows=entry["collectives"],
        mesh=mesh_picture(cell.case),
        microbatches=cell.case.microbatches,
        link_bytes_per_s=cell.case.topology.generation.ici_link_bytes_per_s if on_tpu else None,
    )
