"""Which question a seed asks."""

from dataclasses import replace
from random import Random

from compare.gallery.quiz import blocks, matmuls, partitioner, pieces
from compare.gallery.quiz.question import Draw, Question

FAMILIES: tuple[Draw, ...] = (
    matmuls.one,
    matmuls.two,
    matmuls.one_side,
    matmuls.gradient,
    pieces.move,
    pieces.add_up,
    pieces.scatter,
    pieces.block,
    pieces.stream,
    pieces.lookup,
    pieces.statistics,
    pieces.place,
    blocks.attention,
    blocks.cache,
    blocks.shape,
    blocks.linear,
    blocks.loop,
    blocks.experts,
    blocks.pipeline,
    partitioner.wanted,
    partitioner.whole,
    partitioner.order,
    partitioner.compare,
    partitioner.tokens,
    partitioner.ahead,
    partitioner.gated,
    partitioner.first,
    partitioner.both,
    partitioner.view,
    partitioner.two_by_gspmd,
    partitioner.pieces_by_gspmd,
)

PAGE = range(1, 63)
"""Seeds of the page's questions."""


def draw(seed: int) -> Question:
    """The question of this seed, always the same; neighbours are of different families."""
    # Chance of the seed alone; families go round, so that ten in a row are ten kinds.
    family = FAMILIES[seed * 7 % len(FAMILIES)]
    return replace(family(Random(seed)), seed=seed)
