"""What a collective carries and what each device sends of it, by hand."""

from fractions import Fraction

import pytest

from compare.hlo.emission.payload import carried_arrays, round_half_up, sent_bytes, total_bytes, window_bytes
from compare.hlo.text.module import read
from compare.hlo.text.shapes import Array

FOURS = ((0, 1, 2, 3), (4, 5, 6, 7))


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        ("all-reduce", 150),  # 2 x 3/4 x 100
        ("all-gather", 75),
        ("reduce-scatter", 75),
        ("all-to-all", 75),
        ("ragged-all-to-all", 75),
        ("collective-broadcast", 75),
    ],
)
def test_a_device_of_a_group_of_four_sends(kind, sent):
    assert sent_bytes(kind, FOURS, 100, 8) == (sent,) * 8


def test_a_permute_sends_from_its_sources_alone():
    assert sent_bytes("collective-permute", ((0, 1), (1, 0), (2, 2)), 100, 4) == (100, 100, 0, 0)


def test_unequal_groups_each_send_by_their_own_size():
    # 2(3-1)/3 x 60 on three devices, 2(1-1)/1 on one, nothing on the device that is left out.
    sent = sent_bytes("all-reduce", ((0, 1, 2), (3,)), 60, 5)
    assert sent == (80, 80, 80, 0, 0)
    assert total_bytes(sent, (1,) * 5) == 240


def test_fractions_are_kept_until_the_end():
    sent = sent_bytes("all-reduce", ((0, 1, 2),), 1, 3)
    assert sent[0] == Fraction(4, 3)
    assert total_bytes(sent, (3, 3, 3)) == 12
    assert total_bytes(sent, (1, 0, 2)) == 4


@pytest.mark.parametrize(
    ("value", "rounded"), [("1/2", 1), ("3/2", 2), ("5/2", 3), ("49/100", 0), ("7/3", 2), ("8/3", 3)]
)
def test_halves_are_rounded_up(value, rounded):
    assert round_half_up(Fraction(value)) == rounded


def payload(line, kind, *, shapes=("f32[16]",), receive=None):
    given = "\n".join(f"  p{at} = {shape} parameter({at})" for at, shape in enumerate(shapes))
    module = read(f"HloModule m\nENTRY main {{\n{given}\n  ROOT r = {line}\n}}\n")
    item = module.entry.root
    arrays = carried_arrays(item, kind, receive)
    return list(map(sum, window_bytes(item, arrays)))


@pytest.mark.parametrize(
    ("line", "kind", "shapes", "bytes_of_each"),
    [
        ("f32[16] all-reduce(p0)", "all-reduce", ("f32[16]",), [64]),
        ("f32[64] all-gather(p0)", "all-gather", ("f32[16]",), [256]),  # the result
        ("f32[4] reduce-scatter(p0)", "reduce-scatter", ("f32[16]",), [64]),
        ("(f32[16], bf16[8]) all-reduce(p0, p1)", "all-reduce", ("f32[16]", "bf16[8]"), [64, 16]),
        ("(f32[64], bf16[32]) all-gather(p0, p1)", "all-gather", ("f32[16]", "bf16[8]"), [256, 64]),
        ("(f32[16], f32[64]) all-gather-start(p0)", "all-gather", ("f32[16]",), [256]),
        ("(f32[16], f32[64], u32[], u32[]) all-gather-start(p0)", "all-gather", ("f32[16]",), [256]),
        (
            "((f32[16], bf16[8]), (f32[64], bf16[32])) all-gather-start(p0, p1)",
            "all-gather",
            ("f32[16]", "bf16[8]"),
            [256, 64],
        ),
        ("f32[16] all-reduce-start(p0)", "all-reduce", ("f32[16]",), [64]),
        ("(f32[16], f32[16], u32[], u32[]) collective-permute-start(p0)", "collective-permute", ("f32[16]",), [64]),
        ("((f32[16]), f32[4], u32[]) reduce-scatter-start(p0)", "reduce-scatter", ("f32[16]",), [64]),
        ("(f32[4], f32[4]) all-to-all(p0, p1)", "all-to-all", ("f32[4]", "f32[4]"), [16, 16]),
        (
            "f32[16] ragged-all-to-all(p0, p1, p2, p2, p2, p2)",
            "ragged-all-to-all",
            ("f32[8]", "f32[16]", "s32[4]"),
            [32],  # the output's buffer, the offsets and the sizes are not sent
        ),
        (
            "f32[16] collective-permute(p0, p1, p2, p2), slice_sizes={{3}}",
            "collective-permute",
            ("f32[16]", "f32[16]", "s32[]"),
            [12],  # in place: a window of three
        ),
    ],
)
def test_the_payload_is_operands_or_of_an_all_gather_results(line, kind, shapes, bytes_of_each):
    assert payload(line, kind, shapes=shapes) == bytes_of_each


_UNPACKED = """\
  a = u32[] shift-right-logical(x, x)
  b = u8[] convert(a)
  c = {floats} bitcast-convert(b)
  d = {floats} add(c, c)
  e = u8[] bitcast-convert(d)
  ROOT r = u32[] convert(e)"""


@pytest.mark.parametrize(
    ("reduction", "carried"),
    [
        (_UNPACKED.format(floats="f8e4m3fn[]"), Array("f8e4m3fn", (2, 512))),  # as libtpu adds up f8, four in a number
        (_UNPACKED.format(floats="s8[]"), Array("s8", (2, 512))),
        ("  ROOT r = u32[] add(x, y)", Array("u32", (2, 128))),
        ("  a = f32[] bitcast-convert(x)\n  ROOT r = u32[] bitcast-convert(a)", Array("f32", (2, 128))),
    ],
)
def test_a_sum_that_unpacks_smaller_numbers_carries_these(reduction, carried):
    module = read(
        f"HloModule m\nsum {{\n  x = u32[] parameter(0)\n  y = u32[] parameter(1)\n{reduction}\n}}\nENTRY main {{\n"
        "  p = u32[2,128] parameter(0)\n  ROOT r = u32[2,128] all-reduce(p), to_apply=sum\n}\n"
    )
    assert carried_arrays(module.entry.root, "all-reduce", None) == [carried]
    assert carried.num_bytes == 2 * 128 * 4


def test_a_collective_that_carries_nothing_is_refused():
    with pytest.raises(ValueError, match=r"line 4: all-reduce carries no array"):
        payload("token[] all-reduce(p0)", "all-reduce", shapes=("token[]",))


def test_where_no_device_has_as_many_pairs_as_windows_each_pair_moves_them_all():
    assert sent_bytes("collective-permute", ((0, 1), (1, 2), (2, 0)), 30, 3, windows=(10, 20)) == (30, 30, 30)
    assert sent_bytes("collective-permute", ((0, 1), (0, 2), (1, 2)), 30, 3, windows=(10, 20)) == (30, 10, 0)
