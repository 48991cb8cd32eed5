"""The options for the axes of a program: `--axes data=2,tensor=4` or `--mesh tp4pp2`."""

import argparse
from collections.abc import Iterable, Mapping

from meshes.process.log import log


def add_axes(parser: argparse.ArgumentParser) -> None:
    """Add the options for the axes of a user's program."""
    add = parser.add_mutually_exclusive_group().add_argument
    add("--mesh", metavar="NAME", help="mesh in wirediff notation (tp4pp2); alternative to --axes")
    axes = "mesh axes as name=size, outermost first (data=2,tensor=4); device ids in row-major order"
    add("--axes", metavar="AXES", help=axes)


def axes_of(options: argparse.Namespace) -> Mapping[str, int]:
    """The axes from the options of `add_axes`, outermost first; empty: axes read `?`."""
    if not options.mesh:
        from compare.hlo.devices.axes import read_axes

        return read_axes(options.axes)
    from meshes.mesh_argument import read_mesh

    mesh = read_mesh(options.mesh).mesh
    return mesh.split_axes or mesh.axes


def hint_axes(options: argparse.Namespace, axes: Iterable[str]) -> None:
    """Print a hint where no axes were given, or the given ones do not match the program."""
    unmatched = sorted({"?" if word == "?" else ":sub" for word in axes if word == "?" or ":sub" in word})
    if not (options.mesh or options.axes) and unmatched:
        hint = "The axes are unknown (?): name them with --axes data=2,tensor=4 (any names and sizes) or --mesh tp4dp2."
    elif unmatched:
        unknown = "groups of none of these axes"
        if hasattr(options, "hlo") and not options.hlo:
            unknown += ", or groups that the trace does not show (--hlo FILE gives the program)"
        explanations = {":sub": "axis:sub are groups inside one axis", "?": f"? are {unknown}"}
        words = " and ".join(explanations[word] for word in unmatched)
        hint = f"{words[0].upper()}{words[1:]}. Are the axes whole, and in order, outermost first?"
    else:
        return
    if options.json:
        log().info("%s", hint)
    else:
        print(hint)
