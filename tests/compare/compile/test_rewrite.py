"""A remedy that is written into a program gives the program's numbers, and only where it was asked for."""

import numpy as np
import pytest

from compare import collectives
from compare.compile.errors import RefusedError
from compare.user_program.advice.advise import read_table

TIES = np.random.default_rng(7).integers(0, 9, (6, 64)).astype("int32")
"""So that the order of equal numbers tells."""


def lowered(function, *shapes, split=(None, "tp"), dtype="int32"):
    """On dp2tp4, of arrays that are split so."""
    import jax
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    sharding = NamedSharding(AbstractMesh((2, 4), ("dp", "tp")), PartitionSpec(*split))
    given = [jax.ShapeDtypeStruct(shape, dtype, sharding=sharding) for shape in shapes]
    return jax.jit(function).trace(*given).lower(lowering_platforms=("tpu",))


def rewritten(program, name, op_name="jit", axes=("tp",), parameters=()):
    """The module with the remedy in it, as text."""
    from compare.compile import compiler, rewrite

    module = compiler.parse_stablehlo(program.as_text(debug_info=True).encode())
    rewrite.apply(module, {"name": name, "op_names": [op_name], "axes": axes, "parameters": parameters})
    assert module.operation.verify()
    return module.operation.get_asm()


def numbers(program, name):
    """Of the function that takes an operation's place, where it is on one device."""
    import jax

    from compare.compile import compiler, rewrite

    class Unpinned(rewrite._Mesh):
        def pin(self, array, dims):
            return array

    module = compiler.parse_stablehlo(program.as_text(debug_info=True).encode())
    mesh = Unpinned("mesh", {"dp": 2, "tp": 4}, ("tp",))
    functions = {each.attributes["sym_name"].value: each for each in rewrite._functions(module)}
    operations = [operation for operation, _ in rewrite._walk(functions["main"], functions)]
    (function,) = [found[0] for each in operations if (found := rewrite._OPERATIONS[name](each, mesh))]
    return [np.asarray(each) for each in jax.tree.leaves(jax.jit(function)(TIES))]


def test_the_best_of_each_part_are_the_best():
    import jax

    best, ids = numbers(lowered(lambda x: jax.lax.top_k(x, 8), TIES.shape), "top-k")
    for row, chosen in zip(TIES, ids, strict=True):
        assert chosen.tolist() == sorted(range(64), key=lambda at: (-row[at], at))[:8]
    assert (best == np.take_along_axis(TIES, ids, 1)).all()


@pytest.mark.parametrize("dim", [0, 1])
def test_sums_of_parts_and_of_their_totals_are_cumulative(dim):
    import jax.numpy as jnp

    shape = TIES.shape if dim else TIES[:4].shape
    program = lowered(lambda x: jnp.cumsum(x, dim), shape)
    if dim:
        (sums,) = numbers(program, "cumulative-sum")
        assert (sums == np.cumsum(TIES, 1)).all()
    assert "remedy0_main" in rewritten(program, "cumulative-sum", "reduce-window.3")


def test_ascending_places_of_the_negated_are_descending():
    import jax.numpy as jnp

    (places,) = numbers(lowered(lambda x: jnp.argsort(x, descending=True), TIES.shape), "descending")
    for row, chosen in zip(TIES, places, strict=True):
        assert chosen.tolist() == sorted(range(64), key=lambda at: (-row[at], at))


def test_unsigned_places_are_left_as_they_are():
    import jax.numpy as jnp

    program = lowered(lambda x: jnp.argsort(x, descending=True), TIES.shape, dtype="uint32")
    with pytest.raises(RefusedError, match="no operation that descending is a remedy of"):
        rewritten(program, "descending")


def two_choices(x):
    import jax

    with jax.named_scope("router"):
        first = jax.lax.top_k(x, 2)[1]
    with jax.named_scope("sampling"):
        return first, jax.lax.top_k(x, 8)[1]


def test_only_the_operation_of_the_collective_is_written_anew():
    text = rewritten(lowered(two_choices, TIES.shape), "top-k", "jit(two_choices)/sampling/top_k")
    assert text.count("chlo.top_k(%arg0, k = 2)") == 1  # the router's, on the argument itself
    assert text.count("k = 8)") == 2  # of the parts, and of what is found


def test_an_argument_is_pinned_whole_before_all_uses():
    text = rewritten(lowered(lambda x, y: (x + 1, x * 2, y), (8, 8), (8, 8)), "pin-whole", parameters=[0])
    assert text.count("sdy.sharding_constraint %arg0 <@mesh, [{}, {}]>") == 1
    assert text.count("%arg0") == 2  # its definition, and the constraint


def test_layers_are_split_along_their_largest_dim_that_divides():
    text = rewritten(lowered(lambda x: x, (8, 6, 20), split=("tp",)), "split-layers", parameters=[0])
    assert '%arg0: tensor<8x6x20xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"tp"}]>' in text


@pytest.mark.parametrize(
    ("name", "shape", "split", "axes", "why"),
    [
        ("top-k", (6, 30), (None, None), ("tp",), "no operation that top-k is a remedy of"),
        ("descending", (6, 64), (None, "tp"), ("tp",), "no operation that descending is a remedy of"),
        ("split-layers", (6, 64), (None, "tp"), ("tp",), "no argument of the program can be split so"),
        ("pin-whole", (6, 64), (None, "tp"), ("data",), "the program's mesh has no axis data"),
    ],
)
def test_what_cannot_be_written_so_is_refused(name, shape, split, axes, why):
    import jax

    with pytest.raises(RefusedError, match=why):
        rewritten(lowered(lambda x: jax.lax.top_k(x, 8), shape, split=split), name, axes=axes, parameters=[0])


def test_each_remedy_of_the_advice_is_there_and_each_is_advised():
    from compare.compile.rewrite import REMEDIES

    assert {advice.remedy for advice in read_table()} - {""} == REMEDIES


@pytest.mark.slow
def test_the_note_says_what_the_program_sends_with_its_remedy():
    """Values and ids, 8 of each of 4 parts, of 8 rows: 2 · 3/4 · 4·8·8·4 B; without pins the parts are exchanged."""
    import jax

    def best(x):
        return jax.lax.top_k(x, 8)[1][:, -1]

    program = lowered(best, (8, 32000), dtype="float32")
    table = collectives(program, topology="v5e:2x4")
    (note,) = table.notes
    assert "; compiled so, the program sends 1,536 B a step in 2 collectives, and not " in note
    untried = collectives(program, topology="v5e:2x4", try_remedies=False)
    assert untried.notes == (note.partition("; compiled so")[0],)
