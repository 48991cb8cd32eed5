"""Where a cache keeps the positions of a sequence: by hand, and by writing a sequence into it."""

import numpy as np
import pytest

from meshes.case import Case
from meshes.twins.positions import NEVER, cache_positions, place_shift


def test_one_rank_keeps_every_position_at_its_own_place():
    case = Case.read("tp8", seq=32)
    assert cache_positions(case).tolist() == list(range(128))
    assert place_shift(case) == 0


def test_each_rank_keeps_its_part_at_the_head_of_its_part_of_the_cache():
    case = Case.read("cp4tp2", seq=32)  # 8 positions a rank, 128 places a rank
    positions = cache_positions(case).reshape(4, 128)
    assert positions[:, :8].tolist() == [
        [0, 1, 2, 3, 4, 5, 6, 7],
        [8, 9, 10, 11, 12, 13, 14, 15],
        [16, 17, 18, 19, 20, 21, 22, 23],
        [24, 25, 26, 27, 28, 29, 30, 31],
    ]
    assert (positions[:3, 8:] == NEVER).all()
    assert positions[3, 8:].tolist() == list(range(32, 32 + 120))  # the new ones


@pytest.mark.parametrize("mesh", ["tp8", "cp2tp4", "cp4tp2", "cp8"])
def test_a_prompt_and_new_tokens_are_each_held_once_and_found_again(mesh):
    case = Case.read(mesh, seq=512, room=200)
    ranks, part = case.mesh.cp, 512 // case.mesh.cp
    cache = np.full((ranks, case.cache_length // ranks), -1)
    cache[:, :part] = np.arange(512).reshape(ranks, part)
    cache = cache.reshape(-1)
    for position in range(512, 712):
        cache[position + place_shift(case)] = position
    filled = cache >= 0
    assert sorted(cache[filled]) == list(range(712))
    assert (cache_positions(case)[filled] == cache[filled]).all()
    # What is masked by "held no later than the query" is what was written.
    assert ((cache_positions(case) <= 711) == filled).all()
