"""Write a run as it would be on another machine: a run folder whose times are simulated, and the figure of a sweep."""

import json
from collections.abc import Sequence
from pathlib import Path

from compare.render.picture import save
from compare.render.report.draw import judge_and_draw
from compare.render.report.show import PAGE
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.chip import copy_chip
from compare.run.folder.load_run import is_judged, read_run
from compare.run.folder.run_folder import WHAT_IF
from compare.simulate.what_if.changed_machine import build_simulation
from compare.simulate.what_if.figure import draw_sweep
from compare.simulate.what_if.request import WhatIf
from compare.simulate.what_if.what_if_page import sections
from compare.simulate.what_if.what_if_result import SubjectResult, to_json
from meshes.devices.topology import Topology
from meshes.process import atomic_files


def write_run(request: WhatIf, results: Sequence[SubjectResult], target: Path) -> list[Path]:
    """The files to look at.  A folder that holds something else is left as it is (`WorkError`)."""
    subject = results[0].subject
    simulation = build_simulation(request, subject.topology, subject.chip)
    with replace_folder.open_replacement(target) as scratch:
        run_folder.copy_run(request.run, scratch)
        if request.chip is not None:
            copy_chip(request.chip, scratch, Topology.parse(subject.topology).generation)
        (scratch / replace_folder.SIMULATION).write_text(json.dumps(simulation.to_json(), indent=1) + "\n")
        written = write_result(request, results, scratch)
        report = judge_and_draw(read_run(scratch), scratch, sections=sections(scratch))
        target, _ = run_folder.put_in_place(scratch, target, judged=is_judged(report))
    return [target / PAGE, *(target / path.relative_to(scratch) for path in written)]


def write_into(request: WhatIf, results: Sequence[SubjectResult]) -> list[Path]:
    """The numbers and the figure into the run that was simulated; it keeps a copy of the constants that they are of."""
    if request.chip is not None:
        copy_chip(request.chip, request.run, Topology.parse(results[0].subject.topology).generation)
    return write_result(request, results, request.run)


def write_result(request: WhatIf, results: Sequence[SubjectResult], folder: Path) -> list[Path]:
    """The numbers and the figure; `compare.report` puts them on the page of that run."""
    data, *figures = (folder / name for name in WHAT_IF)
    picture = draw_sweep(request.sweep, results) if request.sweep is not None else None
    atomic_files.write_text(data, json.dumps(to_json(request, results), indent=1) + "\n")
    for figure in figures:
        figure.unlink(missing_ok=True)
    if picture is None:
        return [data]
    save([picture], folder / "figures")
    return [data, figures[0]]
