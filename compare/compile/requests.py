"""The requests that the workers read, as JSON has them."""

from collections.abc import Mapping, Sequence
from typing import TypedDict

OptionValue = bool | int | float | str | Sequence[bool] | Mapping[str, str]
"""The value of a compile option; of `flags` a map of XLA's flags, value by name."""


class CompileRequest(TypedDict):
    """One program for `workers.compile_request`."""

    program: str
    """Path of the bytecode."""
    topology: str
    """Of one slice, `v5e:2x4`."""
    num_slices: int
    places: Sequence[Sequence[int]]
    """Slice, x, y, z, core of each logical device."""
    compile_options: Mapping[str, OptionValue]
    """As in the arm's about.json."""
    strip: Sequence[str]
    """Folders to take off source paths."""
    passes: bool
    """Whether to record the program between libtpu's passes."""


class Remedy(TypedDict):
    """Which operations or arguments of a program are to be written otherwise, and how."""

    name: str
    """Of `rewrite.REMEDIES`."""
    op_names: Sequence[str]
    """Paths of the collectives that it is to remove."""
    axes: Sequence[str]
    """Those that they run over, outermost first."""
    parameters: Sequence[int]
    """The program's arguments that they carry."""


class ArrayRow(TypedDict):
    """A parameter or result of a program, as about.json lists it; the shape is that of the unsharded array."""

    name: str
    shape: list[int]
    dims: str
    role: str


class AboutProgram(TypedDict):
    """What a run on CPUs reads of about.json."""

    arm: str
    phase: str
    compile_options: Mapping[str, OptionValue]
    parameters: list[ArrayRow]
    outputs: list[ArrayRow]
    versions: dict[str, str]
