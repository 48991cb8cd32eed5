"""Witnesses: other people's programs for the case of a run, and the bytes that they share with an arm's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from compare.report.controls import is_counted
from compare.report.differences import CauseGroup, group_by_cause
from compare.report.grouping import sum_by
from compare.report.model.findings import Difference
from compare.report.model.program import ProgramReport

_BEFORE_PACKAGE = re.compile(r"^.*/(?=(?:transformers|tunix)/)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """One witness, in words."""

    arm: str
    """The arm that it is reported with."""
    title: str
    """Its title in tables."""
    description: str
    """A noun phrase for sentences."""
    control: bool = False
    """Whether one thing in it was changed: it shows a cause, and is not cited as a program that people run."""


WITNESSES: Mapping[str, Witness] = MappingProxyType(
    {
        "hf-torchxla": Witness(
            arm="torchxla",
            title="transformers",
            description="the unmodified Hugging Face model",
        ),
        "hf-torchax": Witness(
            arm="torchxla",
            title="transformers",
            description="the unmodified Hugging Face model on JAX, through torchax",
        ),
        "hf-torchax+jax-attention": Witness(
            arm="torchxla",
            title="transformers",
            control=True,
            description="the Hugging Face model through torchax, its attention call replaced by JAX's",
        ),
        "tunix": Witness(arm="jax", title="tunix", description="tunix's model as shipped"),
        "tunix+norm": Witness(
            arm="jax",
            title="tunix",
            control=True,
            description="tunix's model with the weight of its norms whole",
        ),
    }
)
"""By cell name, which is the name of the adapter in `witnesses/catalog.py`."""


def shared_bytes(witness: ProgramReport, groups: Sequence[Difference]) -> int | None:
    """How many of the excess bytes in these groups of an arm the witness moves too, per scope, axes and verdict.

    `None` where the witness cannot be counted.
    """
    if not is_counted(witness):
        return None
    places = sum_by(((group.scope, group.axes, group.verdict), group.bytes) for group in groups)
    witness_groups = group_by_cause(witness.collectives).items()
    witness_bytes = sum_by(((key.scope, key.axes, key.verdict), group.bytes) for key, group in witness_groups)
    return sum(min(amount, witness_bytes.get(place, 0)) for place, amount in places.items())


def main_line(group: CauseGroup) -> str:
    """The source line of the largest collective of a group, relative to its package; empty where unknown."""
    rows = sorted(group.rows, key=lambda row: -row.excess_bytes)
    line = next((row.source_line for row in rows if row.source_line), "")
    return _BEFORE_PACKAGE.sub("", line)
