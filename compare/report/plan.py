"""The contract of a case, as `compare.plan` prints it."""

from compare.contract.notes import list_notes
from compare.contract.reference_algorithms import required_rows
from compare.contract.row import ContractRow
from compare.report.model.codec import copy_fields
from compare.report.model.contract import Contract, PhaseContract, ServedRow
from meshes.case import Case


def plan(case: Case) -> Contract:
    """What each phase requires, without a program to judge."""
    return Contract(case=case, phases={phase: _phase(case.at(phases=(phase,))) for phase in case.phases})


def _phase(case: Case) -> PhaseContract:
    rows = required_rows(case)
    return PhaseContract(
        inherent=tuple(served_row(row) for row in rows),
        total=sum(row.step_wire_bytes for row in rows),
        notes=tuple(list_notes(case)),
    )


def served_row(row: ContractRow, *, served_bytes: int | None = None) -> ServedRow:
    """A row of the contract, with the bytes of it that are satisfied (`None`: unknown)."""
    unserved = None if served_bytes is None else row.step_wire_bytes - served_bytes
    return copy_fields(row, ServedRow, served_bytes=served_bytes, unserved_bytes=unserved)
