"""A program without collectives: is nothing split, or is it split well?"""

import pytest

from compare.hlo.collectives.replicated import replicated_notes
from compare.hlo.text.module import read
from tests.compare.split_programs import compile_split

NOTE = "nothing is split: each of the 8 devices has every argument whole, and does all of the work"


@pytest.mark.parametrize(
    ("x", "w", "y", "replicated"),
    [
        ((), (), (), True),
        pytest.param(("dp",), (), ("dp",), False, marks=pytest.mark.slow),  # split well: nothing has to be sent
        ((), (), ("dp",), False),  # each makes its own rows: their work is split, though no argument is
        pytest.param((None, "tp"), ("tp",), (), False, marks=pytest.mark.slow),
    ],
)
def test_what_is_split_is_seen(x, w, y, replicated):
    table = compile_split(lambda x, w: x @ w, [((64, 512), x), ((512, 2048), w)], y)
    assert (NOTE in table.notes) == replicated


@pytest.mark.slow
def test_a_lookup_in_a_whole_table_too():
    """libtpu writes a custom call of its own for its indices."""
    table = compile_split(lambda table, x: table[x.argmax(-1)], [((4096, 512), ()), ((64, 4096), ())], ())
    assert table.notes == (NOTE,)


TEXT = """HloModule m, is_scheduled=true, num_partitions=8

ENTRY main {
  p = f32[8]{0} parameter(0), sharding={replicated}
  ROOT r = f32[8]{0} add(p, p)
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("num_partitions=8", "num_partitions=1"),
        (", sharding={replicated}", ""),
        ("sharding={replicated}", "sharding={devices=[8]<=[8]}"),
        ("  ROOT", "  i = u32[] partition-id()\n  ROOT"),
        ("  ROOT", '  k = f32[8]{0} custom-call(p), custom_call_target="tpu_custom_call"\n  ROOT'),
        ("  ROOT", "  g = f32[8]{0} all-reduce(p), replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=a\n  ROOT"),
    ],
)
def test_it_is_not_said_where_it_is_not_proved(old, new):
    assert replicated_notes(read(TEXT)) == (NOTE,)
    assert replicated_notes(read(TEXT.replace(old, new))) == ()
