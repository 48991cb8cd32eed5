"""A drawn figure in its two forms, as a file and as what a page shows; known to those who draw nothing."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from meshes.process import atomic_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure: its file name without suffix, what it shows in words, and its two forms."""

    name: str
    caption: str
    png: bytes
    svg: bytes


def inline_picture(picture: Picture) -> tuple[str, str, str]:
    """Name, caption and a source that needs no file."""
    source = "data:image/svg+xml;base64," + b64encode(picture.svg).decode("ascii")
    return picture.name, picture.caption, source


def save(pictures: Sequence[Picture], folder: Path) -> None:
    """Write each as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        atomic_files.write_bytes(folder / f"{picture.name}.png", picture.png)
        atomic_files.write_bytes(folder / f"{picture.name}.svg", picture.svg)
