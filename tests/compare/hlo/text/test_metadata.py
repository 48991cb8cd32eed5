"""Scopes and source lines, as the frameworks write them."""

import pytest

from compare.hlo.text.errors import HloError
from compare.hlo.text.metadata import SourceMetadata, SourceNames, scope_in
from compare.hlo.text.module import read


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("jit(f)/layer.mlp.down/dot_general", "layer.mlp.down"),
        ("jit(f)/vmap(layer.mlp.down)/dot_general", "layer.mlp.down"),
        ("jit(f)/transpose(jvp(layer.attention.core))/while/body", "layer.attention.core"),
        ("jit(f)/pipeline.shift/while/body/layer.mlp.up/dot_general", "layer.mlp.up"),  # the last one
        ("layer_0.1/layer.mlp.down.2/aten__einsum", "layer.mlp.down"),  # torch_xla numbers its scopes
        ("layer.moe.route.17", "layer.moe.route"),
        ("jit(f)/head/dot_general", "head"),
        ("layer.attention.core.27/aten__view;layer.attention.out.28/aten__einsum", "layer.attention.out"),
        ("aten__view;layer.attention.out.28/aten__einsum", "layer.attention.out"),
        ("layer.mlp.up.2;aten__view", "layer.mlp.up"),
        ("jit(f)/overhead/add", None),
        ("jit(f)/norm_3/add", None),
        ("jit(f)/layer.mlp/add", None),
        ("jit(f)/layer.mlp.downstream/add", None),
        ("params['embed']", None),
        ("", None),
    ],
)
def test_a_scope_is_a_whole_part_of_the_path(op_name, scope):
    assert scope_in(op_name) == scope


def test_of_joined_names_one_that_is_asked_for_goes_before_others():
    """As libtpu names an all-to-all on tpu7x: what asked for it first, then a pin that it merged with."""
    joined = "jit(f)/layer.moe.combine/sharding_constraint;jit(f)/layer.moe.experts/sharding_constraint"
    assert scope_in(joined) == "layer.moe.experts"
    assert scope_in(joined, frozenset({"layer.moe.dispatch", "layer.moe.combine"})) == "layer.moe.combine"
    assert scope_in(joined, frozenset({"sample"})) == "layer.moe.experts"
    # Within one path the last word counts, whatever is asked for.
    assert scope_in("jit(f)/head/sample/max", frozenset({"head"})) == "sample"


TABLES = """HloModule m

FileNames
1 "/site/lib/python3.11/site-packages/flax/nnx.py"
2 "model.py"
3 "<frozen runpy>"
4 "torch/nn/modules/module.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=2 function_name_id=1 line=31 end_line=31 column=1 end_column=2}
2 {file_name_id=1 function_name_id=1 line=99 end_line=99 column=1 end_column=2}
3 {file_name_id=3 function_name_id=1 line=1 end_line=1 column=1 end_column=2}
4 {file_name_id=4 function_name_id=1 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=3 parent_frame_id=1}
2 {file_location_id=1 parent_frame_id=2}
3 {file_location_id=2 parent_frame_id=3}
4 {file_location_id=4 parent_frame_id=4}
5 {file_location_id=4 parent_frame_id=2}

ENTRY main {
  ROOT p = f32[] parameter(0), metadata={%s}
}
"""


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        ("stack_frame_id=2", "model.py:31"),
        ("stack_frame_id=4", "model.py:31"),  # out of torch, out of flax, to the user's line
        ("stack_frame_id=5", None),  # nothing but packages
        ("stack_frame_id=1", None),
        ("stack_frame_id=77", None),
        ('op_name="x"', None),
        ('source_file="a/b.py" source_line=5', "a/b.py:5"),
        ('source_file="torch/functional.py" source_line=5 stack_frame_id=4', "model.py:31"),
        ('source_file="/x/site-packages/jax/a.py" source_line=5', None),
        ('source_file="torchax/ops/jtorch.py" source_line=5', None),
        ('source_file="/x/torchax/ops/jtorch.py" source_line=5', None),
        ('source_file="/x/torchax/tensor.py" source_line=5', None),
        ('source_file="/x/torchax/examples/train.py" source_line=5', "/x/torchax/examples/train.py:5"),
    ],
)
def test_the_source_line_is_the_users_innermost(metadata, line):
    module = read(TABLES % metadata)
    assert SourceMetadata(module).source_line(module.entry.root) == line


def test_parents_may_also_be_written_plainly():
    plain = TABLES.replace("parent_frame_id=1}", "parent_frame_id=0}").replace(
        "parent_frame_id=2}", "parent_frame_id=1}"
    )
    module = read(plain.replace("parent_frame_id=3}", "parent_frame_id=2}") % "stack_frame_id=3")
    assert SourceMetadata(module).source_line(module.entry.root) == "model.py:31"


def test_the_name_of_an_argument_is_no_scope():
    named = 'f32[] parameter(0), metadata={op_name="head"}'
    copied = 'f32[] copy(p), metadata={op_name="head"}'
    module = read(f"HloModule m\nENTRY main {{\n  p = {named}\n  ROOT c = {copied}\n}}\n")
    assert SourceMetadata(module).scope(module.entry.root) is None


def _scopes(*op_names, names=None):
    """The scope of each of some instructions of one program."""
    lines = [f'n{at} = f32[] negate(p), metadata={{op_name="{name}"}}' for at, name in enumerate(op_names)]
    text = "\n  ".join(["p = f32[] parameter(0)", *lines[:-1], "ROOT " + lines[-1]])
    module = read(f"HloModule m\nENTRY main {{\n  {text}\n}}\n")
    metadata = SourceMetadata(module, names)
    return [metadata.scope(item) for item in module.entry if item.name != "p"]


def test_everybodys_words_are_scopes_only_beside_a_word_that_is_ours_alone():
    assert _scopes("jit(f)/norm/mul", "jit(f)/head/dot_general") == [None, None]
    assert _scopes("jit(f)/norm/mul", "jit(f)/layer.mlp.down/dot_general") == ["norm", "layer.mlp.down"]


def test_a_map_says_what_a_foreign_path_is_and_the_first_row_that_fits_holds():
    names = SourceNames.of({r"self_attn/o_proj": "layer.attention.out", r"self_attn": "layer.attention.core"})
    found = _scopes("jit(f)/self_attn/o_proj/dot", "jit(f)/self_attn/bmm", "jit(f)/norm/mul", names=names)
    assert found == ["layer.attention.out", "layer.attention.core", None]


def test_a_map_with_a_broken_pattern_is_refused():
    with pytest.raises(HloError, match=r"'\(' *, which is no regular expression|'\('"):
        SourceNames.of({"(": "head"})


def test_a_package_that_is_named_is_the_users():
    metadata = 'source_file="/x/site-packages/transformers/models/llama.py" source_line=7'
    module = read(TABLES % metadata)
    root = module.entry.root
    assert SourceMetadata(module).source_line(root) is None
    named = SourceMetadata(module, SourceNames.of(owns="transformers/models/"))
    assert named.source_line(root) == "/x/site-packages/transformers/models/llama.py:7"
