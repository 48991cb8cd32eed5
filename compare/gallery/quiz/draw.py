"""The question of a seed."""

from dataclasses import replace
from random import Random

from compare.gallery.quiz import blocks, matmuls, partitioner, pieces
from compare.gallery.quiz.question import Draw, Question

FAMILIES: tuple[Draw, ...] = (
    matmuls.ask_one_axis,
    matmuls.ask_two_axes,
    matmuls.ask_one_side,
    matmuls.ask_gradient,
    pieces.ask_move,
    pieces.ask_sum,
    pieces.ask_scatter,
    pieces.ask_mlp,
    pieces.ask_sequence_parallel,
    pieces.ask_embedding,
    pieces.ask_statistics,
    pieces.ask_position,
    blocks.ask_attention,
    blocks.ask_cache,
    blocks.ask_shape,
    blocks.ask_linear,
    blocks.ask_loop,
    blocks.ask_experts,
    blocks.ask_pipeline,
    partitioner.ask_wanted_split,
    partitioner.ask_wanted_whole,
    partitioner.ask_rule_order,
    partitioner.ask_size_border,
    partitioner.ask_token_block,
    partitioner.ask_lookahead,
    partitioner.ask_gated_mlp,
    partitioner.ask_axis_conflict,
    partitioner.ask_two_axis_sum,
    partitioner.ask_head_view,
    partitioner.ask_two_axes_by_gspmd,
    partitioner.ask_pieces_by_gspmd,
)

PAGE = range(1, 63)
"""Seeds of the page's questions."""


def draw_question(seed: int) -> Question:
    """The question of this seed, always the same; adjacent seeds are of different families."""
    # Chance of the seed alone; families go round, so that ten in a row are ten kinds.
    family = FAMILIES[seed * 7 % len(FAMILIES)]
    return replace(family(Random(seed)), seed=seed)
