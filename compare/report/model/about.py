"""The fields of a program's about.json, written by its workers, that a report repeats or uses for judging."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from compare.report.model.codec import Json, decode
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a program."""

    index: int
    role: str
    """`weight`, `cache` or `input`."""
    name: str | None = None
    """Of the tensor, like `cache.k`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The fields are None where about.json does not have them: a program that failed early has few of them.

    Other fields of the file pass from one worker to the next as JSON.
    """

    status: str | None = None
    """`ok`, or what happened instead; in a run folder only, like `error`, `case` and the digests."""
    error: str | None = None
    case: Case | None = None
    """Of a program that was run: the case it was run for."""
    label: str | None = None
    executed: Mapping[str, Json] | None = None
    """Platform, devices, runtime … of one that was run."""
    versions: Mapping[str, str] | None = None
    partitioner: str | None = None
    loop: str | None = None
    attention: str | None = None
    style: str | None = None
    cache: str | None = None
    """How a decode step reads and writes its cache: words of `meshes.twins.caches`."""
    tracer: str | None = None
    """The tracer, where it is not the arm's own: `torchax`."""
    witness: str | None = None
    """Of a program that other people wrote: the name of its adapter."""
    constraints: int | None = None
    """Of such a program: the number of sharding constraints on activations."""
    owns: tuple[str, ...] | None = None
    """Parts of paths: installed files that match count as its source."""
    compile_options: Mapping[str, Json] | None = None
    parameters: tuple[Parameter, ...] | None = None
    device_ids: tuple[int, ...] | None = None
    passes: Mapping[str, Json] | None = None
    """`why_not`: why the passes were not recorded."""
    memory: Mapping[str, float | None] | None = None
    """Bytes on one device, as the compiler planned them."""
    cost: Mapping[str, Json] | None = None
    seconds: Mapping[str, Json] | None = None
    program_digest: str | None = None
    hlo_digest: str | None = None
    passes_digest: str | None = None

    @classmethod
    def from_json(cls, value: object) -> Self:
        """From the contents of about.json.  Raises `ReportError`, one line, naming the first bad field."""
        return decode(cls, value)
