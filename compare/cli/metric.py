"""`python -m compare.metric --trace DIR --metric NAME`: one number, by the names that CCL-Bench uses."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from compare.cli.options.axes_options import add_axes, axes_of
from compare.cli.options.program_words import add_program_words
from meshes.process.command_line import command_parser, path, print_json, whole_number
from meshes.process.log import log

if TYPE_CHECKING:
    from compare.ccl_bench_metrics.catalog import Metric

ALL = "all"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the number, or -1 and on stderr why it does not apply."""
    parser = command_parser(
        "compare.metric",
        "One metric of a trace: the last line is a number; -1 where it does not apply, with the reason on stderr.",
        example="--trace traces/llama-tp4pp2-tpu --metric communication_fraction",
    )
    add = parser.add_argument
    add("--trace", metavar="DIR", type=path, help="a trace directory of CCL-Bench, a run folder, or any profile")
    add("--metric", metavar="NAME", default="", help="one of --list; all: every one, from one reading")
    add("--list", action="store_true", help="print every metric: unit, meaning, and where CCL-Bench's differs and why")
    add("--json", action="store_true", help="print JSON, with what the number was made of")
    add("--hlo", metavar="FILE", help="the compiled HLO text of the trace's program")
    add("--microbatches", metavar="M", type=whole_number, help="microbatches of the traced pipeline")
    add_program_words(parser, default="tpu")
    add_axes(parser)
    options = parser.parse_args(argv)
    from compare.ccl_bench_metrics.catalog import METRICS, find_metric
    from compare.ccl_bench_metrics.errors import MetricError

    if options.list:
        _print_list(METRICS.values(), as_json=options.json)
        return 0
    if options.trace is None or not options.metric:
        parser.error("give --trace DIR and --metric NAME, or --list")
    metrics = list(METRICS.values()) if options.metric == ALL else [find_metric(options.metric)]
    likely = {"ttft": "prefill", "tpot": "decode"}.get(metrics[0].name, "") if len(metrics) == 1 else ""
    from compare.ccl_bench_metrics.subject import Request, read_subject
    from compare.hlo.proto.program import write_hlo_text
    from compare.hlo.text.files import read_file
    from compare.report.model.codec import copy_fields

    if not options.trace.exists():
        raise MetricError(f"{options.trace}: no such file or directory")
    subject = read_subject(
        copy_fields(
            options,
            Request,
            axes=axes_of(options),
            mesh=options.mesh or "",
            hlo=read_file(options.hlo, binary=write_hlo_text) if options.hlo else None,
            likely_phase=likely,
        )
    )
    rows = [metric.measure_row(subject, is_one_of_all=options.metric == ALL) for metric in metrics]
    for row in rows:
        if row["not_applicable"]:
            log().info("%s: %s", row["metric"], row["not_applicable"])
    about = {"source": subject.timeline.source, "label": subject.timeline.label, "notes": list(subject.tracks.notes)}
    if options.json:
        print_json({**about, "metrics": rows} if options.metric == ALL else {**rows[0], **about})
    elif options.metric == ALL:
        print(*(f"{row['metric']:<40} {row['value']!s:>24} {row['unit']}" for row in rows), sep="\n")
    else:
        print(rows[0]["value"])
    return 0


def _print_list(metrics: Iterable["Metric"], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"name": row.name, "unit": row.unit, "meaning": row.meaning, "ccl_bench": row.ccl_bench}
                for row in metrics
            ]
        )
        return
    for row in metrics:
        print(f"{row.name} ({row.unit})\n    {row.meaning}\n    CCL-Bench: {row.ccl_bench}")
