"""Matrix work that devices repeat, against arithmetic by hand."""

import pytest

from compare import collectives
from compare.hlo.text.module import read
from compare.user_program.repeated_work import count_by_line

LAYERS, TOKENS, WIDTH, OUT = 6, 64, 128, 512


def table(head_split):
    """On dp2tp4: a scan of six layers whose weights are split over tp, and a head that is split so."""
    import jax
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((2, 4), ("dp", "tp"))

    def split(*dims):
        return NamedSharding(mesh, PartitionSpec(*dims))

    def given(shape, *dims):
        return jax.ShapeDtypeStruct(shape, "bfloat16", sharding=split(*dims))

    def layer(x, weight):
        return jax.lax.with_sharding_constraint(jax.nn.relu(x @ weight), split("dp")), None

    def step(x, weights, head):
        return jax.lax.scan(layer, x, weights)[0] @ head

    arrays = (
        given((TOKENS, WIDTH), "dp"),
        given((LAYERS, WIDTH, WIDTH), None, None, "tp"),
        given((WIDTH, OUT), *head_split),
    )
    lowered = jax.jit(step, out_shardings=split("dp")).trace(*arrays).lower(lowering_platforms=("tpu",))
    return collectives(lowered, topology="v5e:2x4")


def test_a_whole_head_is_multiplied_by_each_of_four_devices():
    """Six layers of W·W and a head of 4·W·W: 10 parts of work, of which 4 are done four times, so that 22 are."""
    (note,) = table(()).notes
    assert note.startswith(
        "the 8 devices together do 2.20 × the program's matrix FLOPs: 4.00 × (not split over tp) at "
    )
    assert note.endswith(f"test_repeated_work.py:{table.__code__.co_firstlineno + 17}")


@pytest.mark.slow
def test_what_is_split_everywhere_is_done_once():
    assert table((None, "tp")).notes == ()


def test_work_in_loops_and_calls_is_counted_by_line():
    meta = 'metadata={source_file="m.py" source_line='
    text = f"""HloModule m
inner {{
  a = f32[4,8] parameter(0)
  b = f32[8,16] parameter(1)
  ROOT d = f32[4,16] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {meta}3}}
}}
body {{
  c = (s32[], f32[4,8], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[4,8] get-tuple-element(c), index=1
  y = f32[8,16] get-tuple-element(c), index=2
  r = f32[4,16] call(x, y), to_apply=inner
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], f32[4,8], f32[8,16]) tuple(next, x, y)
}}
cond {{
  c = (s32[], f32[4,8], f32[8,16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  most = s32[] constant(5)
  ROOT p = pred[] compare(i, most), direction=LT
}}
ENTRY main {{
  x = f32[4,8] parameter(0)
  y = f32[8,16] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[4,8], f32[8,16]) tuple(zero, x, y)
  w = (s32[], f32[4,8], f32[8,16]) while(t), condition=cond, body=body
  k = f32[4,8] get-tuple-element(w), index=1
  ROOT e = f32[4,16] dot(k, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, {meta}9}}
}}
"""
    once = 2 * 4 * 8 * 16
    assert count_by_line(read(text)) == {"m.py:3": 5 * once, "m.py:9": once}
