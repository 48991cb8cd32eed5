"""What is advised was seen to work: the advice is given for the program that communicates, and not for its remedy."""

import pytest

from compare.hlo.text.module import read
from compare.user_program.advice.advise import advise, match, read_table
from tests.compare.split_programs import compile_split
from tests.surprises.compile_examples import compile_examples
from tests.surprises.programs import EXAMPLES

ROOT = EXAMPLES.parents[1]
SURPRISES = "docs/surprises/"
ELSEWHERE = {"pytorch_matmul_torchax": "pytorch_matmul"}
"""Examples that show the same as another."""


def given(table):
    """The examples that are named to somebody with such a program."""
    return {advice.example for advice in match(table.rows, read(table.text))}


def test_each_entry_names_an_example_that_is_there():
    assert [advice.example for advice in read_table() if not (ROOT / advice.example).is_file()] == []


@pytest.mark.slow
def test_an_examples_surprise_is_advised_on_and_its_remedy_is_not(tmp_path_factory):
    tables = compile_examples(tmp_path_factory.mktemp("surprises"))
    advised = {advice.example for advice in read_table()}
    seen = set()
    for name, table in tables.items():
        example, _, program = name.partition(".")
        own = f"{SURPRISES}{ELSEWHERE.get(example, example)}.py"
        found = given(table)
        assert found <= {own}, f"{name} is taken for something else"
        assert not (found and program.startswith("instead")), name
        seen |= found
    assert seen == {each for each in advised if each.startswith(SURPRISES)}


def sampled(logits):
    import jax

    return jax.lax.top_k(logits, 8)[1][:, -1]


def best_of_each_part(logits):
    """On tp=4, of [8, 1024]: eight of each part, pinned whole, of which eight are chosen."""
    import jax
    from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

    mesh = AbstractMesh((2, 4), ("dp", "tp"))

    def pinned(array, *dims):
        return jax.lax.with_sharding_constraint(array, NamedSharding(mesh, PartitionSpec(*dims)))

    values, ids = jax.lax.top_k(pinned(logits.reshape(8, 4, 256), None, "tp"), 8)
    ids = ids + 256 * jax.numpy.arange(4)[:, None]
    values, ids = pinned(values.reshape(8, 32)), pinned(ids.reshape(8, 32))
    return jax.numpy.take_along_axis(ids, jax.lax.top_k(values, 8)[1], 1)[:, -1]


def descending(scores):
    import jax.numpy as jnp

    return jnp.argsort(scores, descending=True)


def ascending_negated(scores):
    import jax.numpy as jnp

    return jnp.argsort(-scores)


def halves(x, weight):
    import jax.numpy as jnp

    gate, up = jnp.split(x @ weight, 2, -1)
    return gate * up


def halves_apart(x, weight):
    import jax.numpy as jnp

    both = jnp.einsum("td,dcf->tcf", x, weight)
    return both[:, 0] * both[:, 1]


LOGITS = [((8, 1024), (None, "tp"))]
SCORES = [((64, 512), ("dp", "tp"))]
TOKENS = ((64, 256), ("dp", None))
LESSONS = [
    # libtpu takes seconds for a sort of any size.
    pytest.param(
        "docs/gallery/sample-top.html", sampled, best_of_each_part, LOGITS, LOGITS, (), marks=pytest.mark.slow
    ),
    pytest.param(
        "docs/gallery/sort-rows.html",
        descending,
        ascending_negated,
        SCORES,
        SCORES,
        ("dp", "tp"),
        marks=pytest.mark.slow,
    ),
    (
        "docs/surprises/fused_projections.py",
        halves,
        halves_apart,
        [TOKENS, ((256, 4096), (None, "tp"))],
        [TOKENS, ((256, 2, 2048), (None, None, "tp"))],
        ("dp", "tp"),
    ),
]


@pytest.mark.parametrize(("lesson", "surprising", "instead", "arrays", "arrays_instead", "out"), LESSONS)
def test_a_lessons_surprise_is_advised_on_and_its_remedy_is_not(
    lesson, surprising, instead, arrays, arrays_instead, out
):
    table, mended = compile_split(surprising, arrays, out), compile_split(instead, arrays_instead, out)
    assert given(table) == {lesson}
    assert given(mended) == set()
    assert mended.step_wire_bytes < table.step_wire_bytes
    assert any(lesson in note for note in table.notes)


def test_the_sentence_names_the_first_place_and_counts_the_others():
    table = compile_split(halves, *LESSONS[2][3:6:2])
    (words,) = advise(table.rows, read(table.text))
    line = halves.__code__.co_firstlineno + 3
    assert words.startswith(
        f"collective-permute over tp (test_advice.py:{line}) and 3 more: a split dim is cut into pieces"
    )
