"""What a planted defect is: one line of a twin changed, and what the compiled program then moves, by hand.

Every number is written before the program is made, with its arithmetic: `"2·3/4·512·256·2"` is a product, and the page
shows it as it stands.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import prod

from meshes.case import Case
from meshes.models import Model

ARMS = {"jax": "jax_impl", "torchxla": "torchxla_impl"}
"""Arm -> its package."""

DENSE = Model(name="small", vocab=2048, embed=256, ffn=1024, layers=2, heads=16, kv_heads=8, head_dim=32)
EXPERTS = replace(DENSE, name="small-experts", family="mixtral", ffn=0, experts=8, experts_per_token=2, expert_ffn=512)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A case that defects are planted in."""

    name: str
    mesh: str
    model: Model = DENSE
    batch: int = 8
    seq: int = 128
    numbers: str
    """What its formulas are made of, for readers."""
    style: str = "pinned"

    def case(self, phase: str, *, partitioner: str = "native") -> Case:
        """Attention is einsum in both arms, so that no difference between arms hides the planted one."""
        return Case.read(
            self.mesh,
            shapes=self.model,
            batch=self.batch,
            seq=self.seq,
            phases=(phase,),
            attention="einsum",
            partitioner=partitioner,
            style=self.style,
        )

    def case_of_others(self, phase: str) -> Case:
        """Of the arms in which nothing is planted: in the style that all of them offer on every mesh."""
        return replace(self, style="pinned").case(phase)


@dataclass(frozen=True, slots=True)
class Site:
    """Where one arm's line is changed.  A line is named by its text, without its indentation: exactly one has it."""

    file: str
    old: str
    new: str
    reported: tuple[str, str] = ("", "")
    """File and text of the line that a report names: of a declaration or a rule the first operation that uses it.

    Empty: the planted line itself.
    """


@dataclass(frozen=True, slots=True)
class Row:
    """All that a program moves in one scope by one kind over one set of axes."""

    scope: str
    collective: str
    """kind@axes."""
    times: str
    """Executions a step, of what is combined one for each thing that it carries."""
    moves: str
    """Bytes that a device sends in one of them, mean over all devices: wire factor · payload."""
    verdict: str | Mapping[str, str]
    """`inherent`, `inflated CAUSE` or `induced CAUSE`; or each of them with its bytes a step."""

    @property
    def step_bytes(self) -> int:
        return amount(" + ".join(f"{self.times}·{part}" for part in self.moves.split(" + ")))

    @property
    def verdicts(self) -> dict[str, int]:
        """Verdict and cause -> bytes a step."""
        if isinstance(self.verdict, str):
            return {self.verdict: self.step_bytes}
        return {name: amount(text) for name, text in self.verdict.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """One change, and all in which its program differs from the one without it."""

    name: str
    chapter: str
    what: str
    """What is changed, for readers."""
    setting: Setting
    phase: str = "prefill"
    sites: Mapping[str, Site]
    """Arm -> its line.  Of two arms the same defect: what it costs is `common` to them."""
    rows: tuple[Row, ...] = ()
    """Those that are there and were not, or are not as they were."""
    gone: tuple[tuple[str, str], ...] = ()
    """Scope and collective of those that were there."""
    unserved: Mapping[str, str] = field(default_factory=dict)
    """`scope kind@axes` of the contract's rows -> bytes that nothing serves, where that is not as it was."""
    why: str = ""
    """Why the verdicts are these, where it is not plain."""

    @property
    def harmless(self) -> bool:
        return not (self.rows or self.gone or self.unserved)

    @property
    def extra(self) -> int:
        """Bytes a step that are inflated or induced."""
        return sum(number for row in self.rows for name, number in row.verdicts.items() if name != "inherent")

    def partitioner(self, arm: str) -> str:
        """Arms are compared under one partitioner."""
        return "gspmd" if arm == "jax" and len(self.sites) > 1 else "native"

    def case(self, arm: str) -> Case:
        return self.setting.case(self.phase, partitioner=self.partitioner(arm))


def amount(text: str) -> int:
    """`"3/4·8·2 + 4 − 1"` is 15.  Raises `ValueError` where it is no whole number."""
    parts = re.split(r" ([+−]) ", f"0 + {text}")
    signs = [-1 if sign == "−" else 1 for sign in parts[1::2]]
    total = sum((sign * _product(part) for sign, part in zip(signs, parts[2::2], strict=True)), Fraction(0))
    if total.denominator != 1:
        raise ValueError(f"{text} is {total}, no whole number")
    return int(total)


def _product(text: str) -> Fraction:
    return prod((Fraction(factor) for factor in text.split("·")), start=Fraction(1))
