"""The lessons' own numbers, held to arithmetic by hand; and their patterns, the same in both arms."""

import ast
from dataclasses import replace

import pytest

from compare.gallery.lesson_types.lesson import (
    GSPMD,
    LAW,
    PROGRAMS,
    SHARDY,
    TORCH,
    TORCH_SHARDY,
    Move,
    evaluate_formula,
)
from compare.gallery.lesson_types.lesson_result import needed_wire
from compare.gallery.lessons import CHAPTERS, LESSONS, LessonError, find_lesson
from tests.places import ROOT

FILES = (
    "moves",
    "matmuls",
    "pieces",
    "lookups",
    "attention",
    "shapes",
    "streams",
    "blocks",
    "partitioner",
    "caches",
    "weights",
)

# What a device sends, worked out by hand, bf16, on 4 devices or where it is said 8: nothing here is read from a lesson.
SENDS = {
    "move-slice": 0,
    "move-gather": 512 * 1024 * 2 * 3 // 4,
    "move-exchange": 512 * 1024 * 2 // 4 * 3 // 4,
    "move-sum": 1024 * 2 * 2 * 3 // 4,
    "move-sum-scatter": 512 * 1024 * 2 * 3 // 4,
    "matmul-contracting": 512 * 2048 * 2 * 2 * 3 // 4,
    "matmul-scattered": 512 * 2048 * 2 * 3 // 4,
    "matmul-same-axis": 1024 * 2048 * 2 * 3 // 4,
    "matmul-gradient": 1024 * 2048 * 2 * 2 * 3 // 4,
    "mlp": 512 * 1024 * 2 * 2 * 3 // 4,
    "mlp-sequence": 512 * 1024 * 2 * 2 * 3 // 4,  # the same as mlp: a gather and a scatter are an all-reduce
    "norm-width": 512 * 4 * 2 * 3 // 4,
    "softmax-split": 2 * 512 * 4 * 2 * 3 // 4,
    "layers-split": 8 * 512 * 512 * 2 * 3 // 4,
    "layers-inside": 8 * 256 * 512 * 2 * 3 // 4,
    "sample-greedy": 4 * 8 * (2 + 4) * 3 // 4,
    "gqa-few-heads": 256 * 128 * 2 // 2,  # half a head of 128, to the other of a pair
    "cache-read-positions": 2 * 8 * (2 + 4 + 128 * 2) * 2 * 3 // 4,
    "context-gather": 2 * 1024 * 4 * 128 * 2 * 3 // 4,
    "context-ring": 2 * 3 * 1024 * 4 * 128 * 2 // 4,  # three hops of a quarter, of k and of v: as context-gather
    "concat-split": 512 * 1024 * 2 // 4 * 6 // 4,  # six quarters change their device
    "roll-split": 1024 * 2,
    "fused-halves": 512 * 512 * 2 * 6 // 4,  # six eighths of x·w do
    "pipeline-shift": 512 * 1024 * 2 * 3 // 4,
    "pipeline-roll": 512 * 1024 * 2,
    "layer-dp-tp": 2 * (4 // 2) * 256 * 1024 * 2,
    "expert-dispatch": 4 * 64 * 512 * 2 * 3 // 4,
    "move-sum-few": 32 * 1024 * 2 * 3 // 4,
    "matmul-both-agree": 1024 * 2048 * 2 // 2 // 2 + 512 * 2048 * 2 // 2,  # half of half of w; 2·1/2 of y
    "matmul-both-axes": 1024 * 2048 * 2 // 2 // 2 + 512 * 1024 * 2 // 2 // 2,
    "embedding-ids": 512 * 4 * 3 // 4 + 512 * 1024 * 2 * 3 // 4,
    "read-traced": 4 * 1024 * 2 * 2 * 3 // 4,
    "gather-along": 512 * 2 * 2 * 3 // 4,
    "cross-entropy": 3 * 512 * 2 * 2 * 3 // 4,
    "layernorm-width": 2 * 512 * 4 * 2 * 3 // 4,
    "split-three": 512 * 512 * 2 * 8 // 4,  # eight of twelve quarters change their device
    "dispatch-sum": 4 * 256 * 512 * 2 // 2 + 512 * 512 * 2 // 2,
    "sequence-unpinned": 512 * 1024 * 2 * 2 * 3 // 4,
    "sequence-weights": 1024 * 4096 * 2 * 2 * 3 // 4,
    "sequence-windows": 2 * 2 * 1024 * 1024 * 2 * 3 // 4,  # on 8: two sequences, gathered and scattered over 4
    "linear-merged": 0,
    "layers-fsdp-tp": 8 * (2 * 512 * 1024 * 2 // 2 // 2 + 2 * 256 * 512 * 2),
    "moe-layer": 4 * 128 * 512 * 2 * (1 + 2) // 2 + 4 * 128 * 512 * 2 // 2,
    "decide-both-fit": 512 * 2 * 2 // 2 + 1024 * 2 // 2,  # sums and columns, both in pairs of devices
    "decide-both-clash": 512 * 1024 * 2 // 2 // 2 + 1024 * 2 * 2 // 2,  # half of b, from two of four devices
    "decide-first-rows": 512 * 1024 * 2 // 4 * 3 // 4 + 1024 * 2 * 2 * 3 // 4,
    "decide-first-columns": 512 * 1024 * 2 // 4 * 3 // 4 + 1024 * 2 * 3 // 4,
    "decide-tokens-few": 2 * 1920 * 1024 * 2 * 3 // 4,
    "decide-tokens-many": 2 * 1024 * 2048 * 2 * 3 // 4,
    "decide-tokens-joined": 2 * 2048 * 1024 * 2 * 3 // 4,  # at the border both ways cost the same
    "decide-wanted-rows": 8 * 1024 * 2 * 3 // 4 + 8 * 2048 * 2 // 4 * 3 // 4,
    "decide-wanted-columns": 8 * 1024 * 2 * 3 // 4,
    "decide-wanted-whole": 8 * 2048 * 2 * 3 // 4,
    "decide-order-kept": 64 * 1024 * 2 // 4 * 3 // 4 + 64 * 2048 * 2 * 3 // 4,
    "decide-sum-narrow": 512 * 1024 * 2 * 3 // 4,
    "decide-view-heads": 2 * 256 * 1024 * 2 // 4 * 3 // 4,
    "rows-read": 0,
    "pages-read": 8 * 4 * 4 * 3 // 4 + 8 * 4 * 16 * 1024 * 2 * 3 // 4,  # a table of 32 numbers, and 32 pages
    "pages-write": 2 * 8 * 4 * 3 // 4 + 8 * 1024 * 2 * 3 // 4,
    "slide-cat": 2 * 8 * 128 * 2 * 3 // 4,  # one position of two sequences, from three of four devices
    "cache-loop-index": 0,
    "weight-int8": 1024 * 2048 * 3 // 4,  # a byte a number
    "lora-rank": 512 * 16 * 2 * 3 // 4,
    "lora-rows": 512 * 2048 * 2 * 2 * 3 // 4,
    "sums-joined": 512 * (512 + 2048) * 2 * 2 * 3 // 4,
    "gradient-scattered": 1024 * 2048 * 2 // 2 + 1024 * 2048 * 2 // 2,  # half of all; then 2·1/2 of half
    "gradient-two-dims": 1024 * 2048 * 2 // 2 + 1024 * 2048 * 2 // 2 // 2,
    "embedding-gradient": 8192 * 512 * 2 * 2 * 3 // 4,
    "sort-rows": 512 * 2 * 3 // 4 + 512 * 1024 * 2 * 3 // 4,
    "sequence-windows-axes": 2 * 2 * 2048 * 1024 * 2 * 7 // 8,  # on 8: all tokens, gathered and scattered
    "window-masked": 2 * 127 * 4 * 128 * 2 * 3 // 4,
    "window-blocks": 2 * 128 * 4 * 128 * 2 * 3 // 4,
    "ragged-experts": 512 * 1024 * 2 * 2 * 3 // 4,
    "gqa-head-dim": 2 * 8 * 1024 * 2 * 2 * 3 // 4,  # a score for each of 8 query heads and 1024 positions
    "gqa-head-dim-whole": 2 * 8 * 1024 * 2 * 2 * 3 // 4 + 2 * 8 * 128 * 2 * 3 // 4,
}


@pytest.mark.parametrize("name", SENDS)
def test_what_a_split_needs_is_what_arithmetic_says(name: str) -> None:
    (lesson,) = find_lesson(name)
    assert needed_wire(lesson) == SENDS[name]


def test_a_4d_matmul_of_pytorch_gathers_the_queries_and_the_whole_cache() -> None:
    (lesson,) = find_lesson("attention-matmul")
    own_share = 2 * 2 * 128 * 2  # two sequences, two of eight heads, 128 numbers of two bytes
    for program in (TORCH, TORCH_SHARDY):
        assert needed_wire(lesson, lesson.expected(program)) == 3 * own_share * (1 + 1024 + 1024)
    assert needed_wire(lesson) == 0


def test_a_formula_is_worked_out_from_left_to_right() -> None:
    assert evaluate_formula("T·F·2/tp", {"T": 3, "F": 8, "tp": 4}) == 12
    assert evaluate_formula("T·2 + F·4", {"T": 3, "F": 8}) == 38
    with pytest.raises(ValueError, match="T/tp is 3/4, no whole number of bytes"):
        evaluate_formula("T/tp", {"T": 3, "tp": 4})


def test_a_permute_is_sent_by_those_who_send() -> None:
    (lesson,) = find_lesson("pipeline-shift")
    assert lesson.wire(Move("collective-permute@pp", "T·D·2", "", senders=1)) == 512 * 1024 * 2 // 4
    assert lesson.wire(Move("collective-permute@pp", "T·D·2", "")) == 512 * 1024 * 2


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_can_be_worked_out_and_asks_something(lesson) -> None:
    assert lesson.num_devices in (4, 8)
    for array in lesson.arrays:
        assert all(size > 0 for size in lesson.shape(array))
    for program in PROGRAMS:
        assert all(lesson.payload(move) > 0 for move in lesson.expected(program))
    assert lesson.story.strip()
    assert lesson.rule.endswith(".")
    assert lesson.question.endswith(("?", "?`"))
    assert lesson.answer.endswith(".")
    assert "\n\n" not in lesson.rule
    assert all(other.why for other in lesson.but)


# The two sides of a border of the chapter on the partitioner, and a program in which it turns.
BORDERS = (
    ("decide-both-fit", "decide-both-clash", GSPMD),
    ("decide-first-rows", "decide-first-columns", SHARDY),
    ("decide-used-once", "decide-used-twice", SHARDY),
    ("decide-tokens-few", "decide-tokens-many", SHARDY),
    ("decide-tokens-many", "decide-tokens-joined", SHARDY),
    ("decide-tokens-few", "decide-looks-ahead", GSPMD),
    ("decide-gated", "decide-gated-pinned", GSPMD),
    ("decide-wanted-rows", "decide-wanted-columns", SHARDY),
    ("decide-wanted-whole", "decide-wanted-later", GSPMD),
    ("decide-order-kept", "decide-order-summed", SHARDY),
    ("decide-order-summed", "decide-order-moved", SHARDY),
    ("decide-sum-narrow", "decide-sum-wide", SHARDY),
    ("decide-sum-wide", "decide-sum-made", SHARDY),
    ("decide-view-heads", "decide-view-width", SHARDY),
    ("decide-view-heads", "decide-view-pinned", TORCH),
    ("gqa-head-dim", "gqa-head-dim-whole", TORCH),
)

# A form against one that sends less, each with its neighbour of the same arrays.
FORMS = (
    ("attention-matmul", "attention-per-sequence", TORCH),
    ("attention-merged", "attention-one-sequence", SHARDY),
    ("attention-merged", "attention-heads-first", SHARDY),
    ("rows-write", "rows-write-masked", TORCH),
    ("pages-read", "pages-replicas", SHARDY),
    ("pages-write", "pages-replicas-write", SHARDY),
    ("slide-cat", "slide-masked", SHARDY),
    ("weight-int8", "weight-int8-scaled", SHARDY),
    ("lora-columns", "lora-rank", SHARDY),
    ("gradient-scattered", "gradient-two-dims", SHARDY),
    ("window-masked", "window-blocks", SHARDY),
)


@pytest.mark.parametrize(("name", "other", "program"), BORDERS + FORMS)
def test_on_the_two_sides_of_a_border_other_things_are_sent(name: str, other: str, program: str) -> None:
    first, two = (
        {(move.collective, move.formula, move.times) for move in find_lesson(each)[0].expected(program)}
        for each in (name, other)
    )
    assert first != two


def test_every_rule_of_the_partitioner_stands_at_a_border_and_says_what_it_is() -> None:
    assert {lesson.name for lesson in CHAPTERS[-1].lessons} == {name for pair in BORDERS for name in pair[:2]}
    assert {lesson.standing for lesson in CHAPTERS[-1].lessons} == {"law", "this compiler", "advice"}


def test_a_rule_says_how_far_it_reaches() -> None:
    (lesson,) = find_lesson("mlp")
    with pytest.raises(ValueError, match="mlp: a rule is 'law' or 'this compiler' or 'advice', not 'gospel'"):
        replace(lesson, standing="gospel")
    # A law is what programs can't get round: one that moves less than it needs would refute it.
    for item in LESSONS:
        for other in item.but if item.standing == LAW else ():
            assert needed_wire(item, other.moves) >= needed_wire(item), item.name


def test_lessons_that_seem_to_contradict_each_other_name_each_other_at_the_border() -> None:
    for first, other in (
        ("move-sum-scatter", "move-sum-few"),
        ("matmul-scattered", "move-sum-few"),
        ("matmul-same-axis", "sequence-weights"),
        ("sequence-unpinned", "sequence-weights"),
        ("layers-inside", "layers-fsdp-tp"),
        ("layers-fsdp-tp", "layers-inside"),
        ("expert-dispatch", "dispatch-sum"),
        ("dispatch-sum", "expert-dispatch"),
        ("linear-merged", "attention-merged"),
        ("attention-matmul", "attention-heads-first"),
        ("attention-one-sequence", "attention-merged"),
        ("attention-per-sequence", "attention-matmul"),
        ("attention-heads-first", "attention-merged"),
        ("read-traced", "cache-write-positions"),
        ("rows-write", "rows-write-masked"),
        ("pages-read", "pages-replicas"),
        ("pages-replicas", "pages-read"),
        ("slide-cat", "concat-split"),
        ("cache-loop-index", "cache-loop-masked"),
        ("cache-loop-masked", "cache-loop-index"),
        ("cache-loop-index", "cache-loop-heads"),
        ("weight-int8", "weight-int8-scaled"),
        ("gradient-scattered", "gradient-two-dims"),
        ("window-blocks", "window-masked"),
        ("ragged-experts", "dispatch-sum"),
    ):
        assert other in find_lesson(first)[0].border, first


def test_a_name_that_is_nearly_right_is_told() -> None:
    assert find_lesson("matmul_rows") == find_lesson("matmul-rows")
    with pytest.raises(LessonError, match=r"no pattern 'matmul-row'; did you mean matmul-rows.*--list names all"):
        find_lesson("matmul-row")


def functions(arm: str) -> dict[str, list[str]]:
    """The patterns of an arm: name -> arguments."""
    by_name = {}
    for name in FILES:
        tree = ast.parse((ROOT / arm / "patterns" / f"{name}.py").read_text(encoding="utf-8"))
        by_name |= {
            node.name: [argument.arg for argument in node.args.args]
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
        }
    return by_name


def test_every_lesson_has_its_pattern_in_both_arms_in_the_same_file_and_order() -> None:
    jax, torch = functions("jax_impl"), functions("torchxla_impl")
    absent = {lesson.pattern for lesson in LESSONS if "torchxla" in lesson.absent}
    assert [name for name in jax if name not in absent] == list(torch)
    assert all(torch[name] == jax[name] for name in torch)
    assert {lesson.pattern: list(lesson.takes) for lesson in LESSONS} == jax
