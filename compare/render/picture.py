"""A drawn figure as PNG and SVG; needs no drawing library."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from meshes.process import atomic_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One figure: its file name without suffix, its caption, and its two forms."""

    name: str
    caption: str
    png: bytes
    svg: bytes


Drawing = Callable[[], Picture]
"""A figure that is not drawn yet: any process may draw it."""


def draw_all(drawings: Iterable[Drawing]) -> list[Picture]:
    """The figures, one after another."""
    return [draw() for draw in drawings]


def inline_picture(picture: Picture) -> tuple[str, str, str]:
    """(name, caption, data URL)."""
    source = "data:image/svg+xml;base64," + b64encode(picture.svg).decode("ascii")
    return picture.name, picture.caption, source


def save(pictures: Sequence[Picture], folder: Path) -> None:
    """Write each as PNG and SVG."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in pictures:
        atomic_files.write_bytes(folder / f"{picture.name}.png", picture.png)
        atomic_files.write_bytes(folder / f"{picture.name}.svg", picture.svg)
