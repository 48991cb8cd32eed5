"""Answer `compare.simulate RUN`: simulate, print, write."""

import sys

from compare.run.errors import WorkError
from compare.run.folder.replace_folder import CASE
from compare.run.folder.timelines import SIMULATION
from compare.simulate.what_if.request import WhatIf
from compare.simulate.what_if.result import simulate_run, to_json
from compare.simulate.what_if.subjects import load_subjects
from compare.simulate.what_if.text import list_lines
from meshes.process.command_line import print_json
from meshes.process.one_line import complain_of


def answer_what_if(request: WhatIf) -> int:
    """0: every program was simulated; 1: some could not be read."""
    _check_out(request)
    subjects = load_subjects(request.run, chip=request.chip)
    results = simulate_run(request, subjects.programs)
    written = []
    if request.into or request.out is not None:
        from compare.simulate.what_if.write import write_into, write_run

        if request.into:
            written += write_into(request, results)
        if request.out is not None:
            written += write_run(request, results, request.out)
    if request.json:
        print_json(to_json(request, results))
    else:
        print(*list_lines(request, results), sep="\n")
    print(*written, sep="\n", end="\n" * bool(written), file=sys.stderr if request.json else sys.stdout)
    return complain_of(subjects.failures)


def _check_out(request: WhatIf) -> None:
    """`WorkError` where `--out` would replace a run whose times are not simulated, or the one that is read."""
    out = request.out
    if out is None:
        return
    if out.resolve() == request.run.resolve():
        raise WorkError(
            f"--out {out} is the run itself, which stays as it is; name another folder, or write numbers and figure "
            "into it with --into"
        )
    if (out / CASE).is_file() and not (out / SIMULATION).is_file():
        raise WorkError(
            f"--out {out} holds a run that is not simulated (no {SIMULATION} in it); name another folder; --into "
            "writes numbers and figure into the run that is simulated"
        )
