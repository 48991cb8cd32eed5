"""docs/laws.md, made from the table."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from tests.laws.law import ALL, PHASES, Law, Program, Setting, number
from tests.laws.table import CHAPTERS, KINDS, Chapter, settings

HEAD = """\
# Laws: which collectives a sharding costs

This page is made from the law table in `tests/laws` (`python -m tests.laws > docs/laws.md`), and the table is a test:
every row was worked out by hand, and every program below is compiled and must have these collectives, as often, with
as many bytes, and **no others**.

**How to read it.** A *mesh* is a grid of chips, here 8. Its name gives its axes: `tp4pp2` has an axis `tp` of 4 chips
and an axis `pp` of 2. An axis *cuts* a dim of the tensors: if 256 columns are cut over `tp` of 4, each chip has 64. If
a computation needs data of another chip, the compiler inserts a *collective*, written kind@axis: `all-reduce@tp` adds
something up over the 4 chips of each `tp` group.

Each row names the *block* of the model that has the collective, what it carries, how often it runs (in one *layer*, in
one *tick* of a pipeline, or in one *step*), and its bytes per run on one chip: the size of the operand (for an
all-gather, of the result). In a group of n chips, each chip sends (n−1)/n of these bytes in an all-gather, a
reduce-scatter or an all-to-all, 2(n−1)/n in an all-reduce, and all of them in a permute. If the compiler combines
several collectives into one instruction, each of the tensors that it carries has its own row.

**The programs.** Whole steps of both frameworks, with the layers in a loop, compiled by libtpu for a v5e:2x4 slice (no
TPU is needed) unless the table says otherwise. JAX is partitioned by *Shardy*, its default, and by *GSPMD*. TorchXLA is
partitioned by GSPMD, its default (a report also shows it under Shardy, as `tpu+shardy`; this page does not). Its
attention is written as *einsum*, and with *SDPA* (`F.scaled_dot_product_attention`), PyTorch's own call.

● the program has this row. **◆** it has it, and nothing in the plan requires it: a finding. **◇** the plan requires
it, and it is not there. – not there, and not required. What the plan requires is in
[definitions.md](definitions.md#2-inherent-the-contract). A row that differs from the plan in its kind or its bytes
has the number of a [note](#notes).

**The letters.** B = 16 sequences of S = 64 tokens (decode: one new token each, and a cache of 128 places), embed D =
256, 24 heads of 32, 8 KV heads, L = 6 layers, b = 2 bytes an element (bf16; s32 ids have 4). t: the tokens that one
chip works on at a time.

## Notes
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
    """The whole page; a note is said once, before the tables, and they name it by its number."""
    notes = list(dict.fromkeys(law.note for setting in settings() for law in setting.laws if law.note))
    said = [f"{at}. {note[0].upper()}{note[1:]}." for at, note in enumerate(notes, start=1)]
    return "\n".join([HEAD, *said, "", *(line for chapter in CHAPTERS for line in _chapter(chapter, notes))])


def _chapter(chapter: Chapter, notes: Sequence[str]) -> Iterator[str]:
    yield f"## {chapter.title}\n\n{chapter.text}\n"
    for setting in chapter.settings:
        yield f"{_heading(setting)}\n"
        yield from _table(setting, notes)
        yield ""


def _heading(setting: Setting) -> str:
    """The mesh, its rules, and how often passes come in a step."""
    rules = "sequence-parallel rules" if setting.mesh.endswith("+sp") else "Megatron's rules"
    off = f", {' and '.join(setting.off)} whole" if setting.off else ""
    model = "" if setting.model.name == "dense" else f", model: {setting.model.name}"
    compiler = "by libtpu for v5e:2x4" if setting.backend == "tpu" else "by XLA for 8 CPU devices"
    once = f"{setting.layers} times"
    if setting.ticks > 1:
        times = setting.passes("layer")
        once = f"{setting.layers} layers · {setting.ticks} ticks = {times} times, a tick’s {setting.ticks}"
    return (
        f"**`{setting.mesh}`**, {rules}{off}{model}, B = {setting.batch}, S = {setting.seq}. Compiled {compiler}. "
        f"In a step a layer’s rows run {once}."
    )


def _table(setting: Setting, notes: Sequence[str]) -> Iterator[str]:
    programs = [program for program in ALL if program in setting.programs]
    columns = ["block", "collective", "carries", "times", *(f"bytes in {phase}" for phase in setting.phases)]
    columns += [program.title for program in programs] + ["note"]
    yield _line(columns)
    yield _line(["---"] * len(columns))
    for laws in _rows(setting):
        law = laws[0]
        sizes = [_bytes([each.bytes_in(phase) for each in laws]) for phase in PHASES if phase in setting.phases]
        marks = [_mark(law, program) for program in programs]
        note = f"[{notes.index(law.note) + 1}](#notes)" if law.note else ""
        times = f"{sum(each.each for each in laws)} a {law.per}" if law.each else "–"
        carries = ", ".join(_carries(each) for each in laws)
        yield _line([f"`{law.block}`", law.collective, carries, times, *sizes, *marks, note])


def _rows(setting: Setting) -> Iterator[list[Law]]:
    """The laws of each row: one, or the three gathers of SDPA."""
    for together, laws in groupby(setting.laws, key=lambda law: law.finding and law.note == KINDS.notes["merged"]):
        if together:
            yield list(laws)
        else:
            yield from ([law] for law in laws)


def _carries(law: Law) -> str:
    if law.block == "layer.moe.combine" and not law.collective.startswith("all-to-all"):
        return law.what or CARRIES["layer.mlp.down"]
    return law.what or CARRIES[law.block]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bytes(products: Sequence[str | None]) -> str:
    """`16·64·2 = 2,048`; of several together the sum."""
    there = [text for text in products if text and number(text)]
    return f"{' + '.join(there)} = {sum(map(number, there)):,}" if there else "–"


def _mark(law: Law, program: Program) -> str:
    if program not in law.programs:
        return "–"
    return "**◇**" if not law.each else "**◆**" if law.finding else "●"
