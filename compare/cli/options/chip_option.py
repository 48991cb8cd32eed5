"""`--chip FILE`, the same of every command: what a user's chips are taken for."""

from meshes.process.command_line import Parser, path


def add_chip(parser: Parser, more: str = "") -> None:
    """Add the option; more: what this command does with it."""
    parser.add_argument(
        "--chip",
        metavar="FILE",
        type=path,
        help="your chips, as TOML: data sheet, rates, energies (docs/calibration.md); what it leaves out is the "
        f"generation's{more}",
    )
    parser.add_renamed("--power", now="--chip", metavar="FILE", type=path)
