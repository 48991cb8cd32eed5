"""The room's error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from meshes.process.errors import MeshError, OneLineError

if TYPE_CHECKING:
    from pathlib import Path


class TimingError(OneLineError):
    """A profile or a schedule that cannot be read."""


@contextmanager
def name_place(prefix: str) -> Iterator[None]:
    """What is raised within begins with its place, like `dims.0.`."""
    try:
        yield
    except TimingError as error:
        raise TimingError(f"{prefix}{error}") from None


@contextmanager
def name_file(path: "Path") -> Iterator[None]:
    """The same of a file; one that is no TOML or JSON is a `TimingError`, too."""
    try:
        with name_place(f"{path}: "):
            yield
    except MeshError as error:
        raise TimingError(f"{path} is {error}") from None
