"""The compiler's spellings of how it carries a collective out, as libtpu 0.0.42.1 wrote them."""

import pytest

from compare.schedule.compiler_algorithm import BLOCK, DIRECT, RING, Algorithm, read_algorithm


def config(emitter: str, strategy: str = "", debug: str = "") -> str:
    words = [f'"emitter":"{emitter}"', *([f'"strategy":"{strategy}"'] if strategy else []), f'"debug":"{debug}"']
    return f'all-reduce(x), backend_config={{"collective_algorithm_config":{{{",".join(words)}}}}}'


ND = "StrategyND{colors:2 phases:2 cores:{8 4},{4 8} nophase0:0 num_dims:2 dim_sizes:8,4 dim_used:{0 1},{1 0}"
LINES = [
    ("all-reduce", config("RotatedPincerEmitter", "UniDirection1DRingStrategy", "{colors:2 phases:1 cores:{4},{4}}"),
     Algorithm(RING)),
    ("all-reduce", config("RotatedPincerEmitter", "StrategyND", ND + "}"),
     Algorithm(BLOCK, orders=((0, 1), (1, 0)), sizes=((0, 8), (1, 4)))),
    ("all-reduce", config("RotatedPincerShortEmitter", "StrategyND", ND + "},is_multistep:1,0"),
     Algorithm(BLOCK, orders=((0, 1), (1, 0)), sizes=((0, 8), (1, 4)), one_shot=(False, True))),
    ("all-reduce", config("RotatedPincerShortEmitter", "StrategyRing", "{colors:1 phases:1 cores:{4}},is_multistep:0"),
     Algorithm(RING, one_shot=(True,))),
    ("all-reduce", config("SinglePhaseRingSumEmitter"), Algorithm(RING, one_shot=(True,))),
    # Two devices a chip: the first phase of each order counts both.
    ("all-reduce", config("RotatedPincerEmitter", "UniDirectionNDRingStrategy",
                          "{colors:4 phases:2 cores:{4 2},{4 2},{4 2},{4 2} dim_used:{0 1},{1 0},{0 1},{1 0}}"),
     Algorithm(BLOCK, orders=((0, 1), (1, 0), (0, 1), (1, 0)), sizes=((0, 2), (1, 2)))),
    ("reduce-scatter", config("SingleInputAllReduceScatterFusion", "StrategyRing"), Algorithm(RING)),
    ("all-gather", config("1DAllGatherNonMajorDimImbalanced"), Algorithm(RING)),
    ("all-gather", config("2DAllGatherOnMajorDim"), Algorithm(BLOCK)),
    ("all-gather", config("AllGatherWithNetRouterEmitter"), Algorithm(DIRECT)),
    ("all-to-all", config("AllToAllEmitter"), Algorithm(DIRECT)),
    ("collective-permute", "collective-permute(x), source_target_pairs={{0,1}}", Algorithm(DIRECT)),
    ("all-reduce", "all-reduce(x)", Algorithm(RING)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "line", "expected"), LINES)
def test_a_spelling_is_read(kind, line, expected):
    assert read_algorithm(kind, line) == expected


def test_a_sparse_core_names_its_rings_by_side():
    ring = '{{"ring_type":"ICI_RING_TYPE_UNIDIR_{}","explicit_strategy_ring_dim":"ICI_RING_DIM_{}_MESH"}}'
    parts = [("CW", "XY"), ("CCW", "XY"), ("CW", "YX"), ("CCW", "YX")]
    colors = ",".join(
        '{"phase_rings":[' + ",".join(ring.format(way, side) for side in sides) + "]}" for way, sides in parts
    )
    line = '"collective_offload_config":{"all_gather_offload_config":{"color_strategies":[' + colors + "]}}"
    assert read_algorithm("all-gather", line) == Algorithm(BLOCK, orders=((0, 1), (1, 0)))


def test_one_ring_of_a_sparse_core_is_a_ring():
    line = '"collective_offload_config":{"color_strategies":[{"phase_rings":[{"ring_dim":"ICI_RING_DIM_Z_MESH"}]}]}'
    assert read_algorithm("all-reduce", line) == Algorithm(RING)


def test_the_emitter_of_a_product_beside_it_is_not_its_own():
    line = '"collective_algorithm_config":{"emitter":"1DAllGatherOnMajorDim"},"x":{"emitter":"EmitAllBatchInSublanes"}'
    assert read_algorithm("all-gather", line) == Algorithm(RING)
    assert (
        read_algorithm("all-gather", '"convolution_algorithm_config":{"emitter":"EmitAllBatchInSublanes"}').note == ""
    )


def test_an_unknown_word_is_a_ring_and_says_so():
    assert read_algorithm("all-reduce", config("QuantumEmitter")).note == (
        "the emitter 'QuantumEmitter' is not known: taken for a ring"
    )
    assert read_algorithm("all-reduce", config("RotatedPincerEmitter", "StrategyH")) == Algorithm(
        RING, note="the strategy 'StrategyH' is not known: taken for a ring"
    )
    assert read_algorithm("all-to-all", config("QuantumEmitter")).note.endswith("taken for messages to each target")
