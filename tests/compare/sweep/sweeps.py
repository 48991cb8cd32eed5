"""Sweeps without frameworks: cases of small models, and an engine whose run folders are copies of a report."""

import json
from pathlib import Path
from uuid import uuid4

from compare.cli.options.sweep_options import sweep_parser
from compare.cli.options.sweep_request import combinations
from compare.sweep.combination import Combination
from compare.sweep.engines.local import CaseOutcome
from compare.sweep.sweep import Work
from tests.compare.render.reports import make_report
from tests.places import example_report

REPORT = example_report()
SMALL = make_report(phases=("prefill", "decode"))
"""Of no times: read in a tenth of the time."""


def parse_combinations(*words: str) -> list[Combination]:
    """Of the model `tiny`, both phases."""
    return combinations(sweep_parser().parse_args(["--models", "tiny", "--seq", "128", *words]))


class Copies:
    """An engine that writes the same report for every case; `does` says of a case by its mesh how it goes wrong."""

    def __init__(self, **does: str):
        self.does, self.made, self.tasks, self.closed = does, [], [], False

    def __call__(self, tasks, *, at_once, scratch, notify):
        try:
            for task in tasks:
                does = next((word for mesh, word in self.does.items() if f"-{mesh}-" in task.name), "well")
                self.made.append(task.name)
                self.tasks.append(task)
                notify(task.name, "start", 0.0)
                if does == "interrupt":
                    self._begin(task, scratch)
                    raise KeyboardInterrupt
                if does == "crash":
                    yield task, CaseOutcome(status="crashed", error="died of SIGABRT: boom", seconds=1.0)
                    continue
                run = self._begin(task, scratch)
                (run / "report.json").write_text(json.dumps(SMALL | {"marked": uuid4().hex}))
                good = does == "well"
                yield task, CaseOutcome(status="ok", run=run, judged=does != "nothing", complete=good, seconds=1.0)
        finally:
            self.closed = True

    @staticmethod
    def _begin(task, scratch: Path) -> Path:
        run = scratch / uuid4().hex / "run"
        run.mkdir(parents=True)
        (run / "case.json").write_text(json.dumps(task.request["case"]))
        return run


def work(out: Path, engine, **more) -> Work:
    return Work(out=out, arms=["jax", "torchxla"], engine=engine, at_once=2, timeout_s=60.0, **more)
