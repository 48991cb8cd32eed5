"""The command line of `compare.calibrate`: a device that is measured, or windows that were."""

import argparse
from collections.abc import Sequence

from compare.calibrate.timed_programs import KINDS, SIZES
from meshes.devices.generations import NAMES
from meshes.process.command_line import Parser, command_parser, new_file, path, whole_number
from meshes.process.one_line import quote


def parse_request(argv: Sequence[str] | None) -> argparse.Namespace:
    """What to fit, and where to write it.  Ends the process in one line where the request is wrong."""
    parser = _parser()
    options: argparse.Namespace = parser.parse_args(argv)
    if options.out.suffix != ".toml":
        parser.error(f"--out is {quote(str(options.out))}; it names a TOML file, like calibrated.toml")
    kinds = tuple(options.only.split(",")) if options.only else KINDS
    for kind in kinds:
        if kind not in KINDS:
            parser.error(f"--only: {quote(kind)} is no benchmark; choose from {', '.join(KINDS)}")
    if options.windows is None and (options.device or options.generation):
        parser.error("--device and --generation belong to --windows; a device that is measured names itself")
    for word in ("platform", "devices", "only", "repeats"):
        if options.windows is not None and getattr(options, word):
            parser.error(f"--{word} belongs to a device that is measured, not to --windows")
    options.platform, options.kinds = options.platform or "cpu", kinds
    options.devices, options.repeats = options.devices or 8, options.repeats or 3
    return options


def _parser() -> Parser:
    parser = command_parser(
        "compare.calibrate",
        "Fit the time constants of the schedule model and the energy coefficients of a device: from microbenchmarks "
        "that run on it through JAX, or from windows that were measured elsewhere.",
        example="--windows measured.csv --generation v5e --out calibrated.toml",
    )
    parser.add_argument("--platform", choices=list(SIZES), help="which devices of this machine (default: cpu)")
    parser.add_argument("--devices", metavar="N", type=whole_number, help="virtual devices of a CPU (default: 8)")
    parser.add_argument("--only", metavar="KIND,…", default="", help=f"some benchmarks (default: {', '.join(KINDS)})")
    parser.add_argument("--repeats", metavar="K", type=whole_number, help="windows of each program (default: 3)")
    parser.add_argument("--windows", metavar="FILE.csv", type=path, help="measured windows instead; nothing is run")
    device = "what --windows were measured on (default: the file)"
    parser.add_argument("--device", metavar="NAME", default="", help=device)
    chips = "of --windows: the chips that the result is for"
    parser.add_argument("--generation", choices=NAMES, default="", help=chips)
    parser.add_argument(
        "--out",
        metavar="FILE.toml",
        type=new_file,
        default="calibrated.toml",
        help="the result; windows that are measured lie beside it as CSV (default: calibrated.toml)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    return parser
