"""`python -m compare.metric --trace DIR --metric NAME`: one number, by the names that CCL-Bench uses."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compare.cli.options.axes_options import add_axes, axes_of
from compare.hlo.text.files import read_file
from compare.metric.catalog import METRICS, find_metric
from compare.metric.errors import MetricError, NotApplicable
from meshes.process.command_line import command_parser, print_json, whole_number

if TYPE_CHECKING:
    from compare.metric.catalog import Metric
    from compare.metric.subject import Subject

NOT_APPLICABLE = -1
ALL = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the number, or -1 and on stderr why it does not apply."""
    parser = command_parser(
        "compare.metric",
        "One metric of a trace: the last line is a number; -1 where it does not apply, with the reason on stderr.",
        example="--trace traces/llama-tp4pp2-tpu --metric communication_fraction",
    )
    add = parser.add_argument
    add("--trace", metavar="DIR", type=Path, help="a trace directory of CCL-Bench, a run folder, or any profile")
    add("--metric", metavar="NAME", default="", help="one of --list; all: every one, from one reading")
    add("--list", action="store_true", help="print every metric: unit, meaning, and where CCL-Bench's differs and why")
    add("--json", action="store_true", help="print JSON, with what the number was made of")
    add("--hlo", metavar="FILE", help="the compiled HLO text of the trace's program")
    add("--microbatches", metavar="M", type=whole_number, help="of a trace's pipeline")
    add("--arm", metavar="ARM", default="", help="of a run folder: this framework's program")
    add("--phase", metavar="PHASE", default="", help="of a run folder: prefill or decode")
    add("--cell", metavar="CELL", default="", help="of a run folder: this cell")
    add_axes(parser)
    options = parser.parse_args(argv)
    if options.list:
        _print_list(as_json=options.json)
        return 0
    if options.trace is None or not options.metric:
        parser.error("give --trace DIR and --metric NAME, or --list")
    metrics = list(METRICS.values()) if options.metric == ALL else [find_metric(options.metric)]
    likely = {"ttft": "prefill", "tpot": "decode"}.get(metrics[0].name, "") if len(metrics) == 1 else ""
    from compare.metric.subject import Request, read_subject

    if not options.trace.exists():
        raise MetricError(f"{options.trace}: no such file or directory")
    subject = read_subject(Request(
        trace=options.trace, axes=axes_of(options), mesh=options.mesh or "",
        hlo=read_file(options.hlo) if options.hlo else None,
        microbatches=options.microbatches, arm=options.arm, phase=options.phase, cell=options.cell,
        likely_phase=likely,
    ))  # fmt: skip
    # Of all, one that needs what is not there is no error of the request.
    refusals = (NotApplicable, MetricError) if options.metric == ALL else (NotApplicable,)
    values = [_measure(metric, subject, refusals, as_json=options.json) for metric in metrics]
    if options.metric == ALL:
        _print_all(values, subject, as_json=options.json)
    elif options.json:
        print_json({**values[0], **_about(subject)})
    else:
        print(values[0]["value"])
    return 0


def _measure(
    metric: "Metric", subject: "Subject", refusals: tuple[type[Exception], ...], *, as_json: bool
) -> dict[str, object]:
    """The number with all that it was made of; where it does not apply -1, and on stderr why."""
    row: dict[str, object] = {"metric": metric.name, "value": NOT_APPLICABLE, "unit": metric.unit}
    try:
        value = metric.measure(subject)
    except refusals as reason:
        print(f"{metric.name}: {reason}", file=sys.stderr)
        return {**row, "not_applicable": str(reason), "details": {}}
    details = dict(value.details) if as_json else {}
    return {**row, "value": value.number, "not_applicable": None, "details": details}


def _about(subject: "Subject") -> dict[str, object]:
    return {"source": subject.timeline.source, "label": subject.timeline.label, "notes": list(subject.tracks.notes)}


def _print_all(values: Sequence[dict[str, object]], subject: "Subject", *, as_json: bool) -> None:
    if as_json:
        print_json({**_about(subject), "metrics": values})
        return
    width = max(len(str(row["metric"])) for row in values)
    for row in values:
        print(f"{row['metric']:<{width}}  {row['value']!s:>22} {row['unit']}")


def _print_list(*, as_json: bool) -> None:
    if as_json:
        print_json([{"name": row.name, "unit": row.unit, "meaning": row.meaning, "ccl_bench": row.ccl_bench}
                    for row in METRICS.values()])  # fmt: skip
        return
    for row in METRICS.values():
        print(f"{row.name} ({row.unit})\n    {row.meaning}\n    CCL-Bench: {row.ccl_bench}")
