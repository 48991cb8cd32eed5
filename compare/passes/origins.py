"""Rows with their origin and their changes, from the recorded passes of their own compile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from compare.hlo.collective import Collective
from compare.passes.archive import unpack
from compare.passes.lineage import UNKNOWN, Track, trace_lineage


def trace_lineages(archive: bytes, optimized: str) -> dict[str, Track]:
    """The life of every collective of an optimized program.  `HloError` where the archive is damaged."""
    return trace_lineage(unpack(archive), optimized)


def add_origins(rows: Sequence[Collective], lives: Mapping[str, Track]) -> list[Collective]:
    """The same rows; one whose life is not known says so."""
    return [
        replace(row, origin=life.origin, changes=life.changes)
        if (life := lives.get(row.name))
        else replace(row, origin=UNKNOWN)
        for row in rows
    ]
