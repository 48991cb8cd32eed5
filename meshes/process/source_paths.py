"""File names in programs, independent of where this checkout, the environment and Python are installed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("compare", "jax_impl", "meshes", "torchxla_impl", "witnesses")

_INSTALLED = (r"^.*/(?=(?:site|dist)-packages/)", r"^.*/(?=lib/python\d[\d.]*/)")
"""What precedes the folders that Python installs packages into, and its own library.  They keep their names,
`site-packages/torch/functional.py`: so a reader tells a package's line from a line of the model."""


def machine_part(*packages: str, root: Path = ROOT) -> str:
    """A regular expression for the part of a file name to remove, so that the rest is the same on any machine.

    Our rooms come first, also where they are installed; then what is installed, also where that lies inside the
    checkout.  Of `packages` (their `__file__`) the folder goes where nothing says that it is an installed one.
    """
    rooms = f"^{re.escape(str(root))}/(?=(?:{'|'.join(ROOMS)})/)"
    folders = [str(Path(package).parents[1]) for package in packages] + [str(root)]
    return "|".join([rooms, *_INSTALLED, *(f"^{re.escape(folder)}/" for folder in folders)])
