"""docs/laws.md, made from the table."""

from collections.abc import Iterator

from tests.laws.law import ALL, PHASES, Law, Program, Setting, number
from tests.laws.table import CHAPTERS, Chapter

HEAD = """\
# Laws: which collectives a sharding costs

This page is made from the law table in `tests/laws` (`python -m tests.laws > docs/laws.md`), and the table is a test:
every row was worked out by hand, and every program below is compiled and must have these collectives, as often, with
as many bytes, and **no others**.

**How to read it.** A *mesh* is a grid of chips, here 8. Its name says how: `tp4pp2` has an axis `tp` of 4 chips and
an axis `pp` of 2. An axis *cuts* a dim of the tensors: of 256 columns cut over `tp` of 4 each chip has 64. Where a
computation needs what another chip has, the compiler puts in a *collective*, written kind@axis: `all-reduce@tp` adds
something up over the 4 chips of each `tp` group.

A row says in which *block* of the model a collective stands, what it carries, how often it runs (in one *layer*, in
one *tick* of a pipeline, or in one *step*), and how many bytes one run has on one chip: its operand, of an all-gather
its result. Of these n chips send (n−1)/n each in an all-gather, reduce-scatter or all-to-all, 2(n−1)/n in an
all-reduce, all of it in a permute. What the compiler combines into one instruction has a row for each thing that it
carries.

**The programs.** Both arms, whole steps, layers in a loop, compiled by libtpu for a v5e:2x4 slice (no TPU is needed),
if nothing else is said. JAX partitioned by *Shardy*, its own, and by *GSPMD*. TorchXLA by GSPMD, its only one, with
attention written as *einsum*, and with *SDPA* (`F.scaled_dot_product_attention`), PyTorch's own call.

● the program has this row. **◆** it has it, and nothing in the plan asks for it: a finding. **◇** the plan asks for
it, and it is not there. – not there, and not asked for. What the plan asks for:
[definitions.md](definitions.md#2-inherent-the-contract); a row that differs from it in its kind or its bytes has a
note.

**The letters.** B = 16 sequences of S = 64 tokens (decode: one new token each, and a cache of 128 places), embed D =
256, 24 heads of 32, 8 KV heads, L = 6 layers, b = 2 bytes an element (bf16; s32 ids have 4). t: the tokens that one
chip works on at a time.
"""

CARRIES = {
    "embed": "rows of the table",
    "layer.attention.qkv": "all tokens",
    "layer.attention.out": "partial sums",
    "layer.mlp.up": "all tokens",
    "layer.mlp.down": "partial sums",
    "layer.moe.route": "all tokens",
    "layer.moe.dispatch": "places of tokens",
    "layer.moe.combine": "places of tokens",
    "pipeline.shift": "the state",
    "pipeline.collect": "ids",
    "head": "last tokens",
}
"""What a block's collective carries, where the row does not say."""


def page() -> str:
    return "\n".join([HEAD, *(line for chapter in CHAPTERS for line in _chapter(chapter))])


def _chapter(chapter: Chapter) -> Iterator[str]:
    notes = list(dict.fromkeys(law.note for setting in chapter.settings for law in setting.laws if law.note))
    yield f"## {chapter.title}\n\n{chapter.text}\n"
    for setting in chapter.settings:
        yield f"{_heading(setting)}\n"
        yield from _table(setting, notes)
        yield ""
    yield from (f"{at}. {note[0].upper()}{note[1:]}." for at, note in enumerate(notes, start=1))
    yield from [""] if notes else []


def _heading(setting: Setting) -> str:
    """The mesh, its rules, and how often passes come in a step."""
    rules = "sequence-parallel rules" if setting.mesh.endswith("+sp") else "Megatron's rules"
    off = f", {' and '.join(setting.off)} whole" if setting.off else ""
    model = "" if setting.model.name == "dense" else f", model: {setting.model.name}"
    compiler = "by libtpu for v5e:2x4" if setting.backend == "tpu" else "by XLA for 8 CPU devices"
    once = f"{setting.layers} times" if setting.ticks == 1 else (
        f"{setting.layers} layers · {setting.ticks} ticks = {setting.passes('layer')} times, a tick’s {setting.ticks}"
    )  # fmt: skip
    return (
        f"**`{setting.mesh}`**, {rules}{off}{model}, B = {setting.batch}, S = {setting.seq}. Compiled {compiler}. "
        f"In a step a layer’s rows run {once}."
    )


def _table(setting: Setting, notes: list[str]) -> Iterator[str]:
    programs = [program for program in ALL if program in setting.programs]
    columns = ["block", "collective", "carries", "times", *(f"bytes in {phase}" for phase in setting.phases)]
    columns += [program.title for program in programs] + ["note"]
    yield _line(columns)
    yield _line(["---"] * len(columns))
    for law in setting.laws:
        carries = law.what or CARRIES[law.block]
        if law.block == "layer.moe.combine" and not law.collective.startswith("all-to-all"):
            carries = CARRIES["layer.mlp.down"]
        sizes = [_bytes(law.bytes_in(phase)) for phase in PHASES if phase in setting.phases]
        marks = [_mark(law, program) for program in programs]
        note = str(notes.index(law.note) + 1) if law.note else ""
        times = f"{law.each} a {law.per}" if law.each else "–"
        yield _line([f"`{law.block}`", law.collective, carries, times, *sizes, *marks, note])


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(text: str | None) -> str:
    return f"{text} = {number(text):,}" if text and number(text) else "–"


def _mark(law: Law, program: Program) -> str:
    if program not in law.programs:
        return "–"
    return "**◇**" if not law.each else "**◆**" if law.finding else "●"
