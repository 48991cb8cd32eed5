"""Write a run as it would be on another machine: a run folder whose times are simulated, and the figure of a sweep."""

import json
from collections.abc import Sequence
from pathlib import Path

from compare.render.picture import save
from compare.render.report.draw import judge_and_draw
from compare.run.folder import replace_folder, run_folder
from compare.run.folder.load_run import is_judged, read_run
from compare.run.folder.timelines import SIMULATION
from compare.simulate.what_if.figure import draw_sweep
from compare.simulate.what_if.request import WhatIf
from compare.simulate.what_if.result import SubjectResult, to_json

RESULT = "what-if.json"


def write_run(request: WhatIf, results: Sequence[SubjectResult], target: Path) -> list[Path]:
    """The files to look at.  A folder that holds something else is left as it is (`WorkError`)."""
    simulation = request.simulation(results[0].subject.topology)
    written = ["report.html", RESULT]
    with replace_folder.open_replacement(target) as scratch:
        run_folder.copy_run(request.run, scratch)
        (scratch / SIMULATION).write_text(json.dumps(simulation.to_json(), indent=1) + "\n")
        report = judge_and_draw(read_run(scratch), scratch)
        (scratch / RESULT).write_text(json.dumps(to_json(request, results), indent=1) + "\n")
        if request.sweep is not None:
            picture = draw_sweep(request.sweep, results)
            save([picture], scratch / "figures")
            written.append(f"figures/{picture.name}.svg")
        target, _ = run_folder.put_in_place(scratch, target, judged=is_judged(report))
    return [target / name for name in written]
