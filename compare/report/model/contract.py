"""The contract as a report writes it: each row, and how many of its bytes a program satisfies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from compare.report.model.codec import Count, JsonObject, encode, one_of
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRow:
    """One row of the contract, and how many of its bytes are served: by one program, or the least over programs."""

    scope: str
    kind: str
    axes: str
    executions: Count
    payload_bytes: Count
    wire_bytes: Count
    step_wire_bytes: Count
    served_bytes: Count | None
    """`None` where unknown, like `unserved_bytes`."""
    unserved_bytes: Count | None
    formula: str
    source: str
    network: Annotated[str, one_of("ici", "dcn", "ici+dcn")] = "ici"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseContract:
    """What one phase requires."""

    inherent: tuple[ServedRow, ...]
    total: Count
    """Bytes a step, mean over devices."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a case requires, as `compare.plan --json` prints it."""

    case: Case
    phases: Mapping[str, PhaseContract]

    def to_json(self) -> JsonObject:
        return encode(self)
