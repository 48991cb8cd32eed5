"""A question of the quiz: a lesson's function with other sizes, another mesh, and other splits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from random import Random

from compare.gallery.lesson_types.lesson import SHARDY, TOPOLOGIES, Lesson, Move
from compare.gallery.lessons import find_lesson

Split = tuple[str | None, ...]

ONE = ("tp", "model", "mp")
TWO = (("dp", "tp"), ("data", "model"), ("fsdp", "tp"))
"""Names of axes, of meshes with one and with two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: a function, how its arrays are split, and what the lessons' rules require."""

    lesson: Lesson
    """Its function with the question's mesh, sizes and splits; `needs` is what the rule requires."""
    program: str
    """Arm and partitioner of its program: `jax/shardy`."""
    rules: tuple[str, ...]
    """Lessons whose rules give the answer."""
    seed: int = 0


Draw = Callable[[Random], Question]
"""One family of questions: from a source of chance to a question."""


def make_question(
    name: str,
    *,
    mesh: Mapping[str, int],
    sizes: Mapping[str, int],
    splits: Mapping[str, str],
    moves: tuple[Move, ...] = (),
    program: str = SHARDY,
    rules: tuple[str, ...] = (),
) -> Question:
    """A question on the function of lesson `name`.

    sizes: of letters that differ from the lesson's.
    splits: array -> the axis of each dim, with a space between; `-` is whole: `{"x": "dp -"}`.
    rules: lessons that answer it; without any, lesson `name`.
    """
    (lesson,) = find_lesson(name)
    assert prod(mesh.values()) in TOPOLOGIES, mesh
    axes = {array: tuple(None if axis == "-" else axis for axis in words.split()) for array, words in splits.items()}
    assert set(axes) == set(lesson.arrays), (name, axes)
    varied = replace(
        lesson, mesh=dict(mesh), sizes={**lesson.sizes, **sizes}, splits=axes, needs=moves, but=(), absent={}, alone=()
    )
    return Question(lesson=varied, program=program, rules=rules or (name,))


def one_axis(chance: Random) -> tuple[str, dict[str, int]]:
    """An axis of 4, and its mesh."""
    name = chance.choice(ONE)
    return name, {name: 4}


def two_axes(chance: Random) -> tuple[str, str, dict[str, int]]:
    """Two axes, and their mesh: of four devices, or of eight."""
    first, second = chance.choice(TWO)
    return first, second, {first: 2, second: chance.choice((2, 2, 4))}


def any_mesh(chance: Random) -> tuple[str, str, dict[str, int]]:
    """An axis to ask about, and one that only divides tokens: `-` where there is none."""
    if chance.random() < 0.5:
        name, mesh = one_axis(chance)
        return name, "-", mesh
    first, second, mesh = two_axes(chance)
    return second, first, mesh


def divide_formula(formula: str, *axes: str) -> str:
    """A formula divided by axes; `-` divides nothing."""
    return "/".join([formula, *(axis for axis in axes if axis != "-")])
