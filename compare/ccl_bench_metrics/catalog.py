"""Every metric by name, as `catalog.toml` has it; what measures one is imported when it is asked for."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from compare.ccl_bench_metrics.errors import MetricError, NotApplicable

if TYPE_CHECKING:
    from compare.ccl_bench_metrics.subject import Subject
    from compare.ccl_bench_metrics.value import Value


NOT_APPLICABLE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One name."""

    name: str
    unit: str
    meaning: str
    ccl_bench: str
    """What CCL-Bench's tool of this name does otherwise for a TPU trace: why that is another number."""
    function: str
    """Of `compare.metric`: `times.mfu`."""
    kind: str = ""
    """Of collectives: only these."""

    def measure(self, subject: "Subject") -> "Value":
        """The value.  `NotApplicable` where the subject has none."""
        module, _, name = self.function.partition(".")
        function = getattr(import_module(f"compare.ccl_bench_metrics.{module}"), name)
        value: Value = function(subject, kind=self.kind) if self.kind else function(subject)
        return value

    def measure_row(self, subject: "Subject", *, is_one_of_all: bool) -> dict[str, object]:
        """The number with all that it was made of; `NOT_APPLICABLE`, and why, where it does not apply.

        is_one_of_all: a metric for which something is missing is no error of the request then.
        """
        row: dict[str, object] = {"metric": self.name, "value": NOT_APPLICABLE, "unit": self.unit}
        try:
            value = self.measure(subject)
        except (NotApplicable, MetricError) as reason:
            if isinstance(reason, MetricError) and not is_one_of_all:
                raise
            return {**row, "not_applicable": str(reason), "details": {}}
        return {**row, "value": value.number, "not_applicable": None, "details": dict(value.details)}


def _read(path: Path) -> Mapping[str, Metric]:
    rows = tomllib.loads(path.read_text(encoding="utf-8"))
    return MappingProxyType({name: Metric(name=name, function=row.pop("measure"), **row) for name, row in rows.items()})


METRICS = _read(Path(__file__).with_name("catalog.toml"))


def find_metric(name: str) -> Metric:
    """The metric of this name.  `MetricError` for any other."""
    if name not in METRICS:
        near = get_close_matches(name[:100], METRICS, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise MetricError(f"unknown metric {name!r}; {hint}--list names all {len(METRICS)}")
    return METRICS[name]
