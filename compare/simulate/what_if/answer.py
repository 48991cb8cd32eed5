"""Answer `compare.simulate RUN`: simulate, print, write."""

import sys

from compare.simulate.what_if.request import WhatIf
from compare.simulate.what_if.result import simulate_run, to_json
from compare.simulate.what_if.subjects import load_subjects
from compare.simulate.what_if.text import list_lines
from meshes.process.command_line import print_json


def answer_what_if(request: WhatIf) -> int:
    """0: every program was simulated."""
    subjects = load_subjects(request.run)
    results = simulate_run(request, subjects)
    written = []
    if request.into or request.out is not None:
        from compare.simulate.what_if.write import write_result, write_run

        if request.into:
            written += write_result(request, results, request.run)
        if request.out is not None:
            written += write_run(request, results, request.out)
    if request.json:
        print_json(to_json(request, results))
    else:
        print(*list_lines(request, results), sep="\n")
    print(*written, sep="\n", end="\n" * bool(written), file=sys.stderr if request.json else sys.stdout)
    return 0
