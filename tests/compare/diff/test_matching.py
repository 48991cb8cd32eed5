"""Two programs' collectives, matched: programs that differ in a known way, and the one line that says so."""

import random
import re

import pytest

from compare.diff.diff_report import diff_values as told_of
from compare.diff.lines import difference_lines, verdict
from compare.diff.matching import match
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from tests.compare.verdict.toy_hlo import AXES, GATHER, SCATTER, SUM, program, rows, wire

KV = wire("all-gather", "bf16[8,128]", result="bf16[32,128]", scope="layer.attention.core")
OTHERS = [SUM, KV, GATHER, SCATTER, wire("all-reduce", "bf16[512]", over="data", scope="norm"), SUM, KV]


def diff_values(diff):
    return [
        (difference.what, difference.first.kind, len(difference.a), len(difference.b))
        for difference in diff.differences
    ]


def test_a_program_is_the_same_as_itself():
    diff = match(rows(*OTHERS), rows(*OTHERS))
    assert diff.is_empty
    assert diff.differences == diff.equivalents == ()
    assert (len(diff.alike), diff.moved) == (len(OTHERS), 0)


@pytest.mark.parametrize("at", range(len(OTHERS) + 1))
def test_one_injected_gather_is_one_line_wherever_it_stands(at):
    injected = wire("all-gather", "bf16[128,1024]", result="bf16[512,1024]", scope="layer.attention.qkv")
    after = [*OTHERS[:at], injected, *OTHERS[at:]]
    diff = match(rows(*OTHERS), rows(*after))
    (difference,) = diff.differences
    assert (difference.what, difference.first.name, difference.first.scope) == (
        "only in b",
        f"c{at}",
        "layer.attention.qkv",
    )
    # 512 x 1024 bf16 is 1,048,576 bytes, of which each of four devices sends three quarters.
    assert difference.delta_bytes == 786_432
    assert not diff.equivalents
    assert diff_values(match(rows(*after), rows(*OTHERS))) == [("only in a", "all-gather", 1, 0)]


def test_the_copy_that_was_injected_is_told_by_the_order():
    diff = match(rows(SUM, KV, GATHER, SUM), rows(SUM, KV, KV, GATHER, SUM))
    assert [row.name for row in diff.differences[0].b] in (["c1"], ["c2"])
    assert diff_values(diff) == [("only in b", "all-gather", 0, 1)]


def test_another_order_is_no_difference_and_is_counted():
    diff = match(rows(SUM, KV, GATHER), rows(KV, SUM, GATHER))
    assert diff.is_empty
    assert diff.moved == 1


def test_alike_differences_are_one_line():
    (difference,) = match(rows(SUM), rows(SUM, *[KV] * 32)).differences
    assert len(difference.b) == 32
    assert difference.delta_bytes == 32 * 32 * 128 * 2 * 3 // 4


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (SUM, wire("all-reduce", "bf16[512,1024]"), ("payload_bytes",)),
        (SUM, wire("all-reduce", "f32[256,1024]"), ("dtype", "payload_bytes")),
        (SUM, wire("all-reduce", "bf16[256,1024]", scope="layer.attention.out"), ("scope",)),
        (SUM, wire("all-reduce", "bf16[256,1024]", over="data"), ("axes",)),
        (SUM, SCATTER, ("kind",)),
    ],
)
def test_what_has_changed_is_one_line_that_names_the_columns(before, after, changes):
    (difference,) = match(rows(KV, before, KV), rows(KV, after, KV)).differences
    assert (difference.what, difference.changes) == ("changed", changes)


def test_an_axis_of_another_size_is_told_by_its_groups():
    wide = program(SUM).replace("num_partitions=8", "num_partitions=16")
    wide = wide.replace("{{0,1,2,3},{4,5,6,7}}", "{{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15}}")
    sides = collectives(read(program(SUM)), AXES), collectives(read(wide), {"data": 2, "tensor": 8})
    diff = match(*sides)
    assert [difference.changes for difference in diff.differences] == [("groups",)]
    assert [line.how for line in difference_lines(told_of(diff))] == ["groups of 4 → 8"]


def test_names_forms_and_lines_are_no_difference():
    text = program(*OTHERS)
    other = re.sub(r"\bc(\d)", r"renamed\1", text).replace("model.py", "other.py")
    other = other.replace("source_line=7", "source_line=99")
    assert other != text
    assert match(*(collectives(read(each), AXES) for each in (text, other))).is_empty


def test_the_largest_difference_comes_first_and_what_cannot_be_counted_before_it():
    large = wire("all-gather", "bf16[4096,1024]", result="bf16[16384,1024]", scope="head")
    diff = match(rows(), rows(KV, large))
    assert [difference.first.scope for difference in diff.differences] == ["head", "layer.attention.core"]


def test_without_axes_groups_tell_collectives_apart():
    over_data = wire("all-reduce", "bf16[256,1024]", over="data")
    assert match(rows(SUM, axes={}), rows(SUM, axes={})).is_empty
    diff = match(rows(SUM, axes={}), rows(over_data, axes={}))
    assert not diff.is_empty


def test_a_scope_that_is_only_a_neighbours_is_not_held_against_a_row():
    nameless = SUM.partition(", metadata")[0]
    near, far = (
        wire("all-reduce", "bf16[8]", scope="layer.mlp.up"),
        wire("all-reduce", "bf16[8]", scope="layer.mlp.down"),
    )
    diff = match(rows(nameless, near), rows(nameless, far))
    assert [difference.changes for difference in diff.differences] == [("scope",)]


def test_a_lost_scope_that_other_neighbours_tell_is_told():
    text = program(SUM.partition(", metadata")[0])
    programs = (
        text.replace("negate(p0)", f'negate(p0), metadata={{op_name="{first}/neg"}}')
        for first in ("layer.mlp.up", "layer.mlp.down")
    )
    diff = match(*(collectives(read(first), AXES) for first in programs))
    assert diff.is_empty
    assert [(first.scope, other.scope) for first, other in diff.rescoped] == [("layer.mlp.up", "layer.mlp.down")]
    said = "1 whose scope, read from the nearest instruction, is another in b (layer.mlp.up → layer.mlp.down)"
    assert said in verdict(told_of(diff))


def test_every_row_is_in_one_place_of_the_diff():
    pool = [SUM, KV, GATHER, SCATTER, wire("all-reduce", "f32[256,1024]"), wire("all-to-all", "bf16[64,64]")]
    chance = random.Random(7)
    for _ in range(60):
        a, b = ([chance.choice(pool) for _ in range(chance.randrange(9))] for _ in "ab")
        diff = match(rows(*a), rows(*b))
        for side, side_rows in enumerate((diff.a, diff.b)):
            placed = [pair[side] for pair in diff.alike]
            placed += [row for entry in (*diff.equivalents, *diff.differences) for row in (entry.a, entry.b)[side]]
            assert sorted(row.name for row in placed) == sorted(row.name for row in side_rows)
        total = [sum(row.step_wire_bytes for row in side_rows) for side_rows in (diff.a, diff.b)]
        assert sum(entry.delta_bytes for entry in (*diff.equivalents, *diff.differences)) == total[1] - total[0]
        assert sorted(a) != sorted(b) or diff.is_empty
