"""`python -m compare.metric --trace DIR --metric NAME`: one number, by the names that CCL-Bench uses."""

import sys
from collections.abc import Sequence
from pathlib import Path

from compare.cli.options.axes_options import add_axes, axes_of
from compare.hlo.text.files import read_file
from compare.metric.catalog import METRICS, find_metric
from compare.metric.errors import MetricError, NotApplicable
from meshes.process.command_line import command_parser, print_json, whole_number

NOT_APPLICABLE = -1


def main(argv: Sequence[str] | None = None) -> int:
    """Print the number, or -1 and on stderr why it does not apply."""
    parser = command_parser(
        "compare.metric",
        "One metric of a trace: the last line is a number; -1 where it does not apply, with the reason on stderr.",
        example="--trace traces/llama-tp4pp2-tpu --metric communication_fraction",
    )
    add = parser.add_argument
    add("--trace", metavar="DIR", type=Path, help="a trace directory of CCL-Bench, a run folder, or any profile")
    add("--metric", metavar="NAME", default="", help="one of --list")
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
    metric = find_metric(options.metric)
    from compare.hlo.proto.program import write_hlo_text
    from compare.metric.subject import Request, read_subject

    if not options.trace.exists():
        raise MetricError(f"{options.trace}: no such file or directory")
    subject = read_subject(Request(
        trace=options.trace, axes=axes_of(options), mesh=options.mesh or "",
        hlo=read_file(options.hlo, binary=write_hlo_text) if options.hlo else None,
        microbatches=options.microbatches, arm=options.arm, phase=options.phase, cell=options.cell,
        likely_phase={"ttft": "prefill", "tpot": "decode"}.get(metric.name, ""),
    ))  # fmt: skip
    value, why_not = None, None
    try:
        value = metric.measure(subject)
    except NotApplicable as reason:
        why_not = str(reason)
        print(f"{metric.name}: {why_not}", file=sys.stderr)
    number = NOT_APPLICABLE if value is None else value.number
    if options.json:
        print_json({
            "metric": metric.name, "value": number, "unit": metric.unit, "not_applicable": why_not,
            "source": subject.timeline.source, "label": subject.timeline.label,
            "details": {} if value is None else dict(value.details), "notes": list(subject.tracks.notes),
        })  # fmt: skip
    else:
        print(number)
    return 0


def _print_list(*, as_json: bool) -> None:
    if as_json:
        print_json([{"name": row.name, "unit": row.unit, "meaning": row.meaning, "ccl_bench": row.ccl_bench}
                    for row in METRICS.values()])  # fmt: skip
        return
    for row in METRICS.values():
        print(f"{row.name} ({row.unit})\n    {row.meaning}\n    CCL-Bench: {row.ccl_bench}")
