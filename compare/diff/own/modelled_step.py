"""The modelled step of a user's program, for notebooks, terminals and pandas."""

from dataclasses import asdict, dataclass, replace

import pandas as pd

from compare.diff.own.show import print_to_text, render_html
from compare.render.time.speed.operations import AMOUNTS, operation_amounts, operation_words
from compare.render.time.speed.program_step import operation_place, print_step
from compare.report.model.timing import Number, Operation
from compare.timeline.timeline import Timeline
from compare.user_program.step_time import StepTime


@dataclass(frozen=True)
class ModelledStep:
    """Where the time of a step goes, in ns, means over devices: modelled, not measured (docs/model.md)."""

    found: StepTime

    @property
    def step_ns(self) -> Number:
        return self.found.summary.per_step.step_ns

    @property
    def compute_ns(self) -> Number:
        return self.found.summary.per_step.compute_ns

    @property
    def exposed_ns(self) -> Number:
        """Communication while nothing computes."""
        return self.found.summary.per_step.exposed_ns

    @property
    def by_kind(self) -> pd.DataFrame:
        """The communication by axes and kind."""
        return self.found.by_kind

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The longest, the longest first (docs/metrics.md, section 15)."""
        return self.found.operations

    @property
    def timeline(self) -> Timeline:
        """Every event of the step."""
        return self.found.timeline

    def to_pandas(self) -> pd.DataFrame:
        """The longest operations, one line for each."""
        return pd.DataFrame([asdict(operation) for operation in self.operations])

    def __str__(self) -> str:
        return print_to_text(lambda out: print_step(self.found, out=out))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [
            {"words": operation_words(row), "amounts": operation_amounts(row), "place": operation_place(row)}
            for row in self.operations
        ]
        above = print_to_text(lambda out: print_step(replace(self.found, operations=()), out=out))
        return render_html("own_step.html.j2", above=above, rows=rows, amounts=AMOUNTS)
