"""Cells: what came of each program of a run, and the same read and judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compare.contract.reference_algorithms import inherent
from compare.contract.row import ContractRow
from compare.hlo.collective import Collective
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.errors import HloError
from compare.hlo.text.module import Module, read
from compare.passes.lineage import Track
from compare.passes.origins import tracks, with_origins
from compare.verdict.verdict import Judgement, judge
from meshes.case import Case

Key = tuple[str, str, str]
"""Arm, phase, cell."""

NOT_OFFERED = "not offered"
"""Of a control: this program cannot be made in this way, for a reason that is no failure."""
MISSING = "missing"
"""Of a program that was made and is no longer there."""
GOOD = ("ok", NOT_OFFERED)
"""How a cell may end when nothing went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What came of one program of one arm: `hlo` and `about` where it was compiled, else why not."""

    arm: str
    phase: str
    cell: str
    status: str
    """`ok`, or what happened instead: `failed`, `crashed`, `timeout`, `not installed` …"""
    error: str | None = None
    about: Mapping[str, Any] | None = None
    hlo: str | None = None
    passes: bytes | None = None
    """The archive of the passes that its compile recorded; None where none were."""
    executed: Case | None = None
    """Of a program that was run and measured: the case it was run for, which may be smaller than the run's."""

    @property
    def key(self) -> Key:
        return self.arm, self.phase, self.cell


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One program, read and judged when that is first asked for.  Raises `HloError` then, where it can't be."""

    case: Case
    """Of its own phase; of an executed one, the case it was run for."""
    result: CellResult

    @classmethod
    def of(cls, case: Case, result: CellResult) -> "Judged":
        return cls(case=(result.executed or case).at(phases=(result.phase,)), result=result)

    @property
    def about(self) -> Mapping[str, Any]:
        return self.result.about or {}

    @cached_property
    def contract(self) -> Sequence[ContractRow]:
        return inherent(self.case)

    @cached_property
    def module(self) -> Module | None:
        """None where there is no program."""
        return read(self.result.hlo) if self.result.status == "ok" and self.result.hlo is not None else None

    @cached_property
    def rows(self) -> list[Collective]:
        """Its collectives, in program order."""
        if self.module is None:
            return []
        rows = collectives(
            self.module,
            self.case.mesh.split_axes,
            contract=self.contract,
            caches=frozenset(number for number, role in self._roles.items() if role == "cache"),
            device_ids=self.about.get("device_ids") or (),
        )
        return with_origins(rows, self.lives) if self.lives is not None else rows

    @cached_property
    def lives(self) -> Mapping[str, Track] | None:
        """By the name of each collective what the compiler did with it; None where that can't be told."""
        return self._recorded if isinstance(self._recorded, dict) else None

    @property
    def why_no_lives(self) -> str:
        """Why that can't be told; empty where it can."""
        return self._recorded if isinstance(self._recorded, str) else ""

    @cached_property
    def _recorded(self) -> dict[str, Track] | str:
        if self.result.hlo is None or self.result.passes is None:
            told = self.about.get("passes")
            return (told.get("why_not") if isinstance(told, dict) else None) or "not recorded"
        try:
            return tracks(self.result.passes, self.result.hlo)
        except HloError as error:
            return str(error)

    @cached_property
    def judgement(self) -> Judgement | None:
        """None where there is no program."""
        if self.module is None:
            return None
        return judge(self.rows, self.contract, axes=self.case.mesh.split_axes, roles=self._roles)

    @property
    def _roles(self) -> dict[int, str]:
        return {entry["index"]: entry["role"] for entry in self.about.get("parameters") or []}
