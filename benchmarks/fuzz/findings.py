"""What a reader under test says beyond its reading: that it was wrong, or something to count."""

from dataclasses import dataclass


class Wrong(Exception):  # noqa: N818  (a finding, not an error)
    """The reader gave something that cannot be."""


@dataclass(frozen=True, slots=True)
class Note:
    """An outcome that is counted."""

    words: str
