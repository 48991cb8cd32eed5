"""The options of `compare.simulate FOLDER`, and of `compare.simulate RUN --as astra-sim`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compare.run.chip_option import add_chip
from compare.run.folder.replace_folder import CASE
from meshes.process.command_line import command_parser

ASTRA_SIM = "astra-sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRequest:
    """Programs, a machine, and by whose rules they run."""

    path: Path
    machine: str | None
    """A file or a name; `None`: what stands beside the trace, or what the programs were compiled for."""
    as_astra_sim: bool
    aware: bool
    words: tuple[str, str, str]
    """Arm, phase and cell of a run's programs; "" for any."""
    chip: Path | None
    """What a run's chips are taken for; `None`: what the run keeps, or the generation's."""
    out: Path | None
    """Of a trace on our own engine: a timeline for Perfetto."""
    json: bool

    @property
    def is_run(self) -> bool:
        return (self.path / CASE).is_file()


def is_graph_request(words: Sequence[str]) -> bool:
    """Whether a command line is of a Chakra folder, or names a run and ASTRA-sim's rules."""
    if not words or words[0].startswith("-"):
        return False
    if any(word == "--as" or word.startswith("--as=") for word in words):
        return True
    path = Path(words[0])
    return path.is_dir() and not (path / CASE).is_file() and any(path.glob("*.et"))


def parse_graph_request(words: Sequence[str]) -> GraphRequest:
    """Ends the process in one line where the request is wrong."""
    parser = command_parser(
        "compare.simulate",
        "Play a Chakra trace, name.0.et, name.1.et …, on the machine beside it (network.yml, system.json) or on "
        "another; or the programs of a run by ASTRA-sim's rules.",
        example="traces/llama-3.1-8b-pp2tp4-v5e-2x4-b8-s1024-m4-jax-decode-tpu --as astra-sim",
    )
    parser.add_argument("path", metavar="FOLDER", type=Path, help="of one trace, or a run folder")
    parser.add_argument("--machine", metavar="FILE|NAME", help="a TOML file, or a TPU slice like v6e:2x4")
    parser.add_argument(
        "--as", dest="rules", choices=(ASTRA_SIM,), help="cost model: ASTRA-sim's cycles (default: wirediff's, in ns)"
    )
    parser.add_argument(
        "--aware", action="store_true", help="use ASTRA-sim's congestion-aware backend (one dimension only)"
    )
    add_chip(parser, "; of a run (default: what it keeps)")
    for name, *words_of in (("arm", "--framework", "--arm"), ("phase", "--phase"), ("cell", "--variant", "--cell")):
        parser.add_argument(*words_of, dest=name, metavar="NAME", default="", help="of a run: only this one")
    parser.add_argument(
        "--out",
        metavar="FILE.json.gz",
        type=Path,
        help="of a trace, by our own engine: its timeline, for ui.perfetto.dev",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    options = parser.parse_args(words)
    if options.aware and not options.rules:
        parser.error("--aware belongs to --as astra-sim")
    request = GraphRequest(
        path=options.path,
        machine=options.machine,
        as_astra_sim=options.rules == ASTRA_SIM,
        aware=options.aware,
        words=(options.arm, options.phase, options.cell),
        chip=options.chip,
        out=options.out,
        json=options.json,
    )
    if options.out and (options.rules or request.is_run):
        parser.error("--out is of a trace on our own engine; leave out --as")
    if options.out and not options.out.name.endswith(".json.gz"):
        parser.error("--out is a file like timeline.perfetto.json.gz")
    if request.chip and not request.is_run:
        parser.error("--chip belongs to a run folder")
    if any(request.words) and not request.is_run:
        parser.error("--framework, --phase and --variant belong to a run folder")
    return request
