"""The law table: every parallelism, what it costs and why, and the laws of meshes that have it."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.laws import context, experts, others, sequence, tensor
from tests.laws.law import EINSUM, GSPMD, SDPA, SHARDY, TORCHXLA, Program, Setting


@dataclass(frozen=True, slots=True)
class Chapter:
    """One parallelism."""

    title: str
    text: str
    settings: tuple[Setting, ...]


CHAPTERS = (
    Chapter(
        "Tensor parallelism: `tp`",
        """\
Every matmul's weight is cut over `tp`, and every device sees all tokens. A block has two matmuls. The first is cut by
columns: each device makes its own heads, or its own part of the hidden layer, and needs no other device. The second
is cut by rows: each device has what it needs to make a *partial sum* of every output, and one **all-reduce** adds the
partial sums up. So a layer costs two: one after attention, one after the feed-forward, of t·D·b bytes each (t: the
tokens that a device works on at a time). A device sends 2·(tp−1)/tp of that.

The vocabulary is cut, too. Each device looks up the ids that it has rows for and puts zeros elsewhere: an all-reduce
of t·D·b. At the end each device scores its own part of the vocabulary, and only the winners travel: an **all-gather**
of tp values and one of tp ids for each sequence.""",
        tensor.TP,
    ),
    Chapter(
        "Data parallelism beside it: `dp`",
        """\
`dp` cuts the batch. At inference no two sequences need each other, so it costs nothing: no row of any mesh names
`dp`. It makes the other rows smaller, since t is B·S/dp.""",
        tensor.DP,
    ),
    Chapter(
        "Pipelines: `pp`",
        """\
`pp` cuts the layers into stages. A batch goes through in m microbatches (here 4). In each tick every stage works on
its own one, then hands it on: a **collective-permute** of t·D·b from each stage to the next, where t is now the
tokens of one microbatch. The last microbatch reaches the last stage after m + pp − 1 ticks (here 5), and in the first
and last ticks some stages have nothing to do. They communicate all the same, which is why the rows of a layer run 3
layers · 5 ticks = 15 times, where 3 · 4 = 12 would do. (The tool calls that fifth *bubble*.) At the end the ids that
the last stage chose go to the others.""",
        tensor.PP,
    ),
    Chapter(
        "Sequence parallelism: `+sp`",
        """\
Between the blocks of a layer every device of `tp` would do the same work on the same tokens. So there `tp` cuts the
tokens instead: an all-reduce becomes a **reduce-scatter** (each device gets the sum of its own tokens only) behind
the block, and an **all-gather** in front of the next (all tokens again). Each sends (tp−1)/tp of t·D·b: together they
send what the all-reduce sent, and the work and the memory between them are cut by tp. The pipeline's shift is cut by
tp as well. The head needs the last tokens whole: one all-gather of B·D·b.

In decode there is one position, which nothing cuts: `tp` cuts the sequences between the blocks.""",
        sequence.SP,
    ),
    Chapter(
        "Expert parallelism: `ep`",
        """\
Each layer has E feed-forwards (8 here), of which each token takes k (2 here). `ep` gives each device E/ep of them,
and cuts the batch as `dp` does. So tokens must travel to their experts and back: two **all-to-alls** a layer. Which
token goes where is data, but shapes are not: each expert has C = ⌈1.25·k·G/E⌉ places for each group of G tokens, and
all places travel, taken or not: groups·E·C·D·b. In prefill a group is one device's part of a sequence (64 tokens: C =
20; 32: C = 10), in decode all sequences of a device's microbatch (4: C = 2; 2 or 1: C = 1).

With `tp` each expert's matmuls are cut as those of any feed-forward. The partial sums are added up after the tokens
are back, t·D·b as ever, and not where they are made: there they would be E·C·D·b a group, 2.5 times as much. A shared
expert, which every token takes, costs what a dense feed-forward costs.""",
        experts.EP,
    ),
    Chapter(
        "Context parallelism: `cp`",
        """\
`cp` cuts the sequence. Only attention looks at other tokens. In prefill each device has the queries of its own part,
and needs the keys and values of all parts before. They go around a ring: cp − 1 **collective-permutes**, each of one
part's k and v. A program that
cannot write a ring gathers all parts at once: (cp−1)/cp of cp parts, which is as many bytes.

In decode `cp` cuts the cache. One query meets every part of it; each device makes the softmax of its own part, and
three small **all-reduces** merge them: of the highest score, of the sum, and of the weighted values.""",
        context.CP,
    ),
    Chapter(
        "Rules that are switched off",
        """\
A spec file may leave a dim whole (`[rules] vocab = "none"`). A dim that is no longer cut requires no
collective: its rows vanish, and the others stay as they are. (Each device then holds and computes all of it.)""",
        tensor.RULES,
    ),
    Chapter(
        "More shards than KV heads",
        """\
Where `tp` does not divide the KV heads, each is copied until it does. Attention runs on a device's own heads, so
copies cost memory and no bytes on the wire. But where k and v travel, as around the ring of `cp`, the copies travel,
too.""",
        tensor.COPIES,
    ),
    Chapter(
        "At the size of a real model",
        """\
Small shapes could hide what large ones do. These are the laws of Llama-3.1-8B (embed 4096, 32 heads of 128 and 8 KV
heads, 32 layers): 8 sequences of 1024 tokens, in decode a cache of 1152 places.""",
        others.REAL,
    ),
    Chapter(
        "The same programs by the CPU compiler",
        """\
XLA's CPU compiler gets the same program and makes another one. It writes no reduce-scatter: it makes an all-reduce
and cuts out each device's part. It has no bf16 collectives and carries float32 instead: twice the bytes. So a program
compiled for a CPU does not show what a TPU moves.""",
        others.CPU,
    ),
)


def settings() -> list[Setting]:
    return [setting for chapter in CHAPTERS for setting in chapter.settings]


def setting_of(mesh: str) -> Setting:
    """The first setting of this mesh."""
    return next(setting for setting in settings() if setting.mesh == mesh)


def laws(arm: str) -> list[tuple[Setting, str, Program]]:
    """All that is compiled of one arm: setting, phase, program."""
    return [
        (setting, phase, program)
        for setting in settings()
        for phase in setting.phases
        for program in setting.programs
        if program.arm == arm
    ]


PLAIN = ((SHARDY, "prefill"), (GSPMD, "decode"), (SDPA, "prefill"), (EINSUM, "decode"))
"""Of the two programs that an arm has of a setting, the one that a plain `pytest` compiles of each phase."""


def is_long(setting: Setting, phase: str, program: Program) -> bool:
    """Whether only `pytest -m long` compiles it.

    Of a setting a plain run compiles one phase in one arm and the other phase in the other arm, by turns: so the laws
    of either phase are held by a program, every arm has every setting, and every program has every other setting.
    """
    programs = [other for other in setting.programs if other.arm == program.arm]
    if len(programs) > 1 and (program, phase) not in PLAIN:
        return True
    if len(setting.phases) == 1 or len(programs) == len(setting.programs):
        return False
    turn = (settings().index(setting) + (program in TORCHXLA)) % len(setting.phases)
    return phase != setting.phases[turn]


def parameters(arm: str) -> list[Any]:
    """Of a test: setting, phase, program of each of its laws."""
    return [
        pytest.param(
            *row, id=f"{row[0].name} {row[1]} {row[2].title}", marks=[pytest.mark.long] if is_long(*row) else []
        )
        for row in laws(arm)
    ]
