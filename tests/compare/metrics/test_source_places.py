"""Where an operation comes from: the line that tells it from others, and the part of the model."""

import pytest

from compare.metrics.source_places import find_line, find_part, shorten

TORCH = "/env/lib/python3.12/site-packages/torch/nn/modules/module.py"


@pytest.mark.parametrize(
    ("source", "stack", "line"),
    [
        ("", "", ("?", "")),
        ("/w/model.py:7", "", ("/w/model.py:7", "")),
        (
            f"{TORCH}:1775",
            f"{TORCH}:1775:3\n{TORCH}:1786:9\n/w/qwen.py:106:2\n/w/run.py:1:1\n",
            ("/w/qwen.py:106", f"{TORCH}:1775"),
        ),
        ("/w/model.py:7", "<embedded '_launcher'>:153:2\n/w/run.py:49:2\n/w/model.py:7:1\n", ("/w/model.py:7", "")),
        (f"{TORCH}:1775", f"{TORCH}:1775:3\n{TORCH}:1786:9", (f"{TORCH}:1775", "")),
    ],
    ids=["none", "no frames", "a library innermost", "outermost first", "libraries alone"],
)
def test_the_innermost_line_of_the_users_own_is_named(source, stack, line):
    """Traits: vLLM's traces have the innermost frame first, a JAX script's under a launcher the outermost."""
    assert find_line(source, stack) == line


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("jit(step)/jit(main)/transpose(jvp(decoder))/layers_3/mlp/dot_general:", "decoder/layers_*/mlp"),
        (
            "jit(step_fun)/QKVParallelLinear/shard_map/jit(kernel)/matmul_512_5120/pallas_call:",
            "QKVParallelLinear/matmul_512_5120",
        ),
        ("params['model.layers.0.attn.qkv.scale']:", "params['model.layers.*.attn.qkv.scale']"),
        ("jit(f)/layer.mlp.down/psum", "layer.mlp.down"),
        ("jit(f)/while/body/closed_call/add", "?"),
        ("jit(broadcast_in_dim)/jit(main)/broadcast_in_dim:", "?"),
        ("jit(f)/a/mul;jit(f)/b/add", "a"),
    ],
)
def test_a_path_without_what_every_path_has_is_the_part_of_the_model(path, part):
    assert find_part(path) == part


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (f"{TORCH}:1775", "torch/nn/modules/module.py:1775"),
        ("/data/me/work/repository/pkg/model.py:7", "work/repository/pkg/model.py:7"),
        ("model.py:7", "model.py:7"),
        (f"/a/{'b' * 60}.py:1", f"{'b' * 60}.py:1"),
    ],
)
def test_a_path_is_shown_from_its_package_on(line, short):
    assert shorten(line) == short
