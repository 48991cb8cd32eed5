"""What a law is: a block of the model, and exactly which collectives it costs.

Every number is written by hand, with its arithmetic: `"8·128·256·2"` is a product, and the page shows it as it stands.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from types import MappingProxyType

from meshes.case import Case
from meshes.dims import rules
from meshes.models import Model

PHASES = ("prefill", "decode")

BATCH, SEQ = 16, 64

DENSE = Model(name="dense", vocab=1024, embed=256, ffn=512, layers=6, heads=24, kv_heads=8, head_dim=32)
MOE = replace(DENSE, name="experts", family="mixtral", ffn=0, experts=8, experts_per_token=2, expert_ffn=512)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One way in which a step is written and partitioned: an arm, and words of the case."""

    title: str
    arm: str
    """The folder of the twin."""
    partitioner: str
    words: Mapping[str, str] = field(default_factory=dict)


_NONE: Mapping[str, str] = MappingProxyType({})
SHARDY = Program(title="JAX, Shardy", arm="jax_impl", partitioner="shardy")
GSPMD = Program(title="JAX, GSPMD", arm="jax_impl", partitioner="gspmd", words={"partitioner": "gspmd"})
EINSUM = Program(title="TorchXLA, einsum", arm="torchxla_impl", partitioner="gspmd", words={"attention": "einsum"})
SDPA = Program(title="TorchXLA, SDPA", arm="torchxla_impl", partitioner="gspmd")

JAX, TORCHXLA = (SHARDY, GSPMD), (EINSUM, SDPA)
CLEAN = (*JAX, EINSUM)
"""Those whose attention is an einsum; SDPA is `F.scaled_dot_product_attention`, as PyTorch's models call it."""
ALL = (*JAX, *TORCHXLA)

PASSES = ("layer", "tick", "step")
"""What one pass of a block is: of one layer in one tick of the pipeline, of one tick, of the step."""


@dataclass(frozen=True, slots=True)
class Law:
    """One collective of one block."""

    block: str
    collective: str
    """kind@axes."""
    per: str
    """The pass in which it runs `each` times."""
    prefill: str | None
    """Payload bytes of one; `None`: it is not there."""
    decode: str | None
    programs: tuple[Program, ...] = field(default=ALL, kw_only=True)
    """Those that run it."""
    each: int = field(default=1, kw_only=True)
    """0: the plan asks for it, and it is not there."""
    what: str = field(default="", kw_only=True)
    """What it carries, where the block does not say."""
    note: str = field(default="", kw_only=True)
    """Why it is not just what the plan asks for."""
    finding: bool = field(default=False, kw_only=True)
    """Whether nothing in the plan asks for it, or something does and it is not there."""

    def bytes_in(self, phase: str) -> str | None:
        return {"prefill": self.prefill, "decode": self.decode}[phase]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A mesh with its rules and a model, and the laws of its step: nothing else is in its programs."""

    mesh: str
    laws: tuple[Law, ...]
    model: Model = DENSE
    off: tuple[str, ...] = ()
    """Dims that a spec file does not split: `vocab = "none"`."""
    batch: int = BATCH
    seq: int = SEQ
    layers: int = 6
    """Of one stage."""
    ticks: int = 1
    """Of the pipeline: 4 microbatches, and one more tick for each stage but the first."""
    phases: tuple[str, ...] = PHASES
    programs: tuple[Program, ...] = ALL
    backend: str = "tpu"

    @property
    def name(self) -> str:
        parts = [self.mesh, *(f"{dim}-none" for dim in self.off), self.model.name]
        return " ".join(parts + ([] if self.backend == "tpu" else [self.backend]))

    def passes(self, per: str) -> int:
        """Of a block in one step, on one device."""
        return {"layer": self.layers * self.ticks, "tick": self.ticks, "step": 1}[per]

    def case(self, phase: str, program: Program, **words: str) -> Case:
        """The case whose compiled program is held to the laws."""
        case = Case.read(
            self.mesh, shapes=self.model, batch=self.batch, seq=self.seq, phases=(phase,), **program.words | words
        )
        off = dict.fromkeys(self.off)
        return case.at(plan=replace(case.plan, rules=rules(off))) if off else case

    def expected(self, phase: str, program: Program) -> Counter[tuple[str, str, int]]:
        """Block, kind@axes and payload bytes of one: how often a device runs it in a step."""
        counts: Counter[tuple[str, str, int]] = Counter()
        for law in self.laws:
            text = law.bytes_in(phase)
            if text and program in law.programs and law.each:
                counts[law.block, law.collective, number(text)] += law.each * self.passes(law.per)
        return counts


def number(text: str) -> int:
    """`"4·8·2"` is 64."""
    return prod(int(factor) for factor in text.split("·"))
