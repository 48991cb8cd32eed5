"""Shapes: logical bytes, never the padding of a tiled layout."""

import pytest

from compare.hlo.text.errors import HloError
from compare.hlo.text.shapes import Array, arrays, element, read_shape


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("f32[]", 4),
        ("bf16[4,1024]{1,0:T(8,128)(2,1)S(1)}", 4 * 1024 * 2),
        ("pred[16]{0:T(512)(128)(4,1)}", 16),
        ("s4[3]", 2),  # 12 bits are two bytes
        ("f8e4m3fn[10]", 10),
        ("c64[2]", 16),
        ("s32[<=8,2]", 64),  # a bounded dim at its bound
        ("f32[0,5]", 0),
        ("token[]", 0),
    ],
)
def test_bytes_are_elements_times_bits(text, num_bytes):
    assert read_shape(text).num_bytes == num_bytes


def test_tuples_nest():
    shape = read_shape("((f32[2]{0}, bf16[3]), /*index=1*/u32[], ())")
    assert shape == ((Array("f32", (2,), (0,)), Array("bf16", (3,))), Array("u32", ()), ())
    assert [array.dtype for array in arrays(shape)] == ["f32", "bf16", "u32"]
    assert element(shape, (0, 1)).dtype == "bf16"


@pytest.mark.parametrize("text", ["f33[2]", "f32[2", "(f32[2]", "f32[a]", "f32[2] f32[3]"])
def test_an_unknown_spelling_is_refused(text):
    with pytest.raises(HloError):
        read_shape(text)
