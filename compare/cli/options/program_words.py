"""`--framework`, `--phase`, `--variant`: which programs of a run folder are meant."""

from argparse import ArgumentParser


def add_program_words(parser: ArgumentParser, *, default: str = "all") -> None:
    """Options whose attributes are `arm`, `phase` and `cell`, as the folder's own words are.

    default: which variants are taken without `--variant`.
    """
    add = parser.add_argument
    add("--framework", "--arm", dest="arm", metavar="NAME", default="", help="of a run folder: jax or torchxla only")
    add("--phase", metavar="NAME", default="", help="of a run folder: prefill or decode only")
    add(
        "--variant",
        "--cell",
        dest="cell",
        metavar="NAME",
        default="",
        help=f"of a run folder: one compiled variant, like tpu or tpu+shardy (default: {default})",
    )
