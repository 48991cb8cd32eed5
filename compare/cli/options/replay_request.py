"""The options of `compare.simulate FOLDER`, and of `compare.simulate RUN --as astra-sim`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compare.cli.options.chip_option import add_chip
from compare.cli.options.machine_options import add_machine, add_rules, is_as_astra_sim
from meshes.process.command_line import command_parser, new_file, path

if TYPE_CHECKING:
    from compare.simulate.graphs.graph_request import GraphRequest


def parse_graph_request(words: Sequence[str]) -> "GraphRequest":
    """Ends the process in one line where the request is wrong."""
    parser = command_parser(
        "compare.simulate",
        "Simulate a Chakra trace, name.0.et, name.1.et …, on the machine beside it (network.yml, system.json) or on "
        "another; or the programs of a run by ASTRA-sim's rules.",
        example="traces/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4-jax-decode-tpu --as astra-sim",
    )
    add = parser.add_argument
    add("path", metavar="FOLDER", type=path, help="the folder of one trace, or a run folder")
    add_machine(parser)
    add_rules(parser)
    add_chip(parser, "; for a run (default: the one that it keeps)")
    for name, *words_of in (("arm", "--framework", "--arm"), ("phase", "--phase"), ("cell", "--variant", "--cell")):
        add(*words_of, dest=name, metavar="NAME", default="", help="for a run: only its programs of this name")
    out = "for a trace on our own engine: its timeline, for ui.perfetto.dev"
    add("--out", metavar="FILE.json.gz", type=new_file, help=out)
    add("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(words)

    from compare.report.model.codec import copy_fields
    from compare.simulate.graphs.graph_request import GraphRequest

    is_astra_sim, program = is_as_astra_sim(options, parser), (options.arm, options.phase, options.cell)
    request = copy_fields(options, GraphRequest, as_astra_sim=is_astra_sim, words=program)
    if request.is_run and not is_astra_sim:
        parser.error(f"{request.path} is a run: write --as astra-sim; on our own engine what-if simulates it")
    if options.out and is_astra_sim:
        parser.error("--out is for a trace on our own engine; leave out --as")
    if options.out and not options.out.name.endswith(".json.gz"):
        parser.error("--out is a file like timeline.perfetto.json.gz")
    if request.chip and not request.is_run:
        parser.error("--chip belongs to a run folder")
    if any(request.words) and not request.is_run:
        parser.error("--framework, --phase and --variant belong to a run folder")
    return request
