"""`judge` and `contract_rows`: somebody else's program against a contract, and the scope map that names its parts."""

import json
import re
from dataclasses import replace

import pytest

from compare import collectives, contract_rows, judge
from compare.cli.hlo import main as hlo
from compare.cli.options.names_options import names_of
from compare.cli.plan import main as plan
from compare.contract.row import ContractRow
from compare.hlo.text.errors import HloError
from compare.user_program.saved_program import read_saved
from compare.verdict.verdict import judge as judge_rows
from tests.compare.verdict.toy_hlo import AXES, HEAD, OVER, program, wire

OUT = wire("all-reduce", "bf16[256,1024]", scope="block/self_attn/o_proj")
MIXED = wire("all-gather", "bf16[64,1024]", scope="block/self_attn", result="bf16[256,1024]")
TEXT = program(OUT, MIXED, OUT)
SCOPES = {"o_proj": "layer.attention.out", "self_attn": "layer.attention.core"}


def once(kind, axes, scope, payload, wire, **more):
    """A row of the contract that a step runs once."""
    sizes = {"payload_bytes": payload, "wire_bytes": wire, "step_wire_bytes": wire}
    return ContractRow(scope=scope, kind=kind, axes=axes, executions=1, **sizes, **more)


def summed(scope, *, axes="tensor"):
    """One sum of [256, 1024] bf16 over four: 524,288 B, of which 2·3/4 are sent."""
    return once("all-reduce", axes, scope, 524_288, 786_432)


CONTRACT = [summed("layer.attention.out"), summed("layer.mlp.down")]


def test_the_verdict_on_a_program_of_other_words_is_that_worked_out_by_hand():
    # One sum is the contract's; the gather of 524,288 B sends 3/4 of it for nothing; the second sum finds the row full;
    # the sum of the MLP is not there.
    judgement = judge(TEXT, CONTRACT, axes=AXES, scopes=SCOPES)
    split = [(row.inherent_bytes, row.inflated_bytes, row.induced_bytes, dict(row.causes)) for row in judgement.rows]
    assert split == [
        (786_432, 0, 0, {}),
        (0, 0, 393_216, {"activation-gather": 393_216}),
        (0, 786_432, 0, {"other": 786_432}),
    ]
    assert judgement.totals == {
        "required": 1_572_864,
        "wire_bytes": 1_966_080,
        "inherent": 786_432,
        "inflated": 786_432,
        "induced": 393_216,
        "missing": 786_432,
        "unserved": 786_432,
        "unknown_rows": 0,
        "upper_bound_rows": 0,
    }
    assert judgement.unserved == ((CONTRACT[1], 786_432),)
    assert judgement.emitted_over_inherent == 1.25
    assert [row.serves for row in judgement] == [(0,), (), (0,)]
    assert (len(judgement), judgement[1].collective.scope, judgement.without_scope) == (3, "layer.attention.core", ())


def test_it_is_printed_shown_and_a_frame():
    judgement = judge(TEXT.replace("model.py", "<b>.py"), CONTRACT, axes=AXES, scopes=SCOPES)
    printed = [line for line in str(judgement).splitlines() if line.startswith(("Emitted", "The contract", "Nothing"))]
    assert printed == [
        "Emitted 1,966,080 B a step, mean over devices: 786,432 B inherent, 786,432 B inflated, 393,216 B induced.",
        "The contract requires 1,572,864 B: emitted ÷ inherent 1.25 ×.",
        "Nothing serves all-reduce over tensor of layer.mlp.down, 1 ×: 786,432 B.",
    ]
    # `other` is a word of both tables: here it is the inflated one.
    words = " ".join(str(judgement).split())
    assert "other, inflated, 786,432 B: it satisfies the plan but sends more than the plan requires" in words
    assert words.index("activation-gather, induced, 393,216 B: ") > words.index("other, inflated")
    assert max(map(len, str(judgement).splitlines())) <= len(printed[0])
    assert "393,216 B induced, activation-gather" in str(judgement)
    html = judgement._repr_html_()
    assert html.count("<tr>") == 4
    assert "786,432 B inflated, other" in html
    assert "<b>.py" not in html
    frame = judgement.to_pandas()
    assert list(frame.induced_bytes) == [0, 393_216, 0]
    assert list(frame.serves) == [["layer.attention.out"], [], ["layer.attention.out"]]
    assert list(judge(program(), CONTRACT, axes=AXES).to_pandas().columns) == list(frame.columns)


def test_without_a_map_nothing_is_served_and_that_is_said():
    judgement = judge(TEXT, CONTRACT, axes=AXES)
    assert (judgement.totals["inherent"], judgement.totals["missing"]) == (0, 1_572_864)
    note = "3 collectives have no scope, and serve no row of the contract: give a scope map, {pattern: scope}, for"
    assert note in " ".join(str(judgement).split())
    assert "'jit(step)/block/self_attn/o_proj/dot_general'" in judgement._repr_html_().replace("&#39;", "'")
    part = judge(TEXT, CONTRACT, axes=AXES, scopes={"o_proj": "layer.attention.out"})
    # The gather's operand is named like the gather itself, which the map leaves out.
    assert [row.name for row in part.without_scope] == ["c1"]
    assert "1 collective has no scope, and serves no row of the contract: the scope map has no pattern for" in " ".join(
        str(part).split()
    )


GATHERED = f"""{HEAD}
ENTRY main {{
  p = bf16[64,1024] parameter(0)
  w = bf16[1024,128] parameter(1)
  x = bf16[64,1024] negate(p)
  g = bf16[256,1024] all-gather(x), channel_id=1, replica_groups={OVER["tensor"]}, dimensions={{0}}, \
use_global_device_ids=true, metadata={{op_name="jit(step)/down_proj/dot_general"}}
  ROOT d = bf16[256,128] dot(g, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, \
metadata={{op_name="jit(step)/down_proj/dot_general"}}
}}
"""


def test_the_program_is_read_again_with_the_contract():
    """A gather of a product's operand sums nothing up: only a reader that knows the contract looks for that."""
    table = collectives(GATHERED, mesh="dp2tp4", scopes={"down_proj": "layer.mlp.down"})
    assert not table[0].operands[0].feeds_product
    contract = [summed("layer.mlp.down", axes="tp")]
    assert judge_rows(table.rows, contract, axes=table.axes).verdicts[0].inherent_bytes == 393_216
    judgement = judge(table, contract)
    assert (judgement[0].inherent_bytes, judgement[0].induced_bytes, judgement.totals["missing"]) == (
        0,
        393_216,
        786_432,
    )


def test_what_an_output_takes_over_is_a_cache_and_other_floats_are_weights():
    text = program(MIXED).replace("(x0)", "(p0)")
    donated = text.replace("is_scheduled=true", "is_scheduled=true, input_output_alias={ {}: (0, {}, may-alias) }")
    for spelled, cause in ((text, "weight-gather"), (donated, "cache-gather")):
        assert dict(judge(spelled, [], axes=AXES, scopes=SCOPES)[0].causes) == {cause: 393_216}


def test_a_table_that_was_saved_keeps_its_map_in_every_door(tmp_path, capsys):
    owned = TEXT.replace("model.py", "/x/site-packages/transformers/models/llama.py")
    table = collectives(owned, axes=AXES, scopes=SCOPES, owns="transformers/models/")
    assert table[0].source_line == "/x/site-packages/transformers/models/llama.py:7"
    table.save(tmp_path / "saved")
    assert read_saved(tmp_path / "saved").names.scope_map == SCOPES
    again = collectives(tmp_path / "saved")
    assert again.rows == table.rows
    assert [row.scope for row in again] == ["layer.attention.out", "layer.attention.core", "layer.attention.out"]
    assert hlo([str(tmp_path / "saved"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps([row.public() for row in table]))
    judgement = judge(tmp_path / "saved", CONTRACT)
    assert judgement.totals == judge(table, CONTRACT).totals
    assert judgement.totals["inherent"] == 786_432
    # A map that is given replaces the one that was saved; what is left out stays.
    other = collectives(tmp_path / "saved", scopes={".": "embed"})
    assert ({row.scope for row in other}, other[0].source_line) == ({"embed"}, table[0].source_line)


def test_a_folder_of_before_there_were_maps_is_read_and_a_damaged_one_refused(tmp_path):
    collectives(TEXT, axes=AXES).save(tmp_path / "saved")
    about = tmp_path / "saved/program.json"
    description = json.loads(about.read_text())
    for key in ("scopes", "owns"):
        del description[key]
    about.write_text(json.dumps(description))
    assert [row.scope for row in collectives(tmp_path / "saved")] == ["?", "?", "?"]
    for key, value, why in (
        ("scopes", {"(": "embed"}, "no regular expression"),
        ("scopes", [1], "and no list"),
        ("owns", [3], "owns has 3"),
        ("owns", 7, "owns is 7"),
    ):
        about.write_text(json.dumps(description | {key: value}))
        with pytest.raises(ValueError, match=why):
            collectives(tmp_path / "saved")


def test_the_command_takes_a_map_and_packages(tmp_path, capsys):
    (tmp_path / "program.hlo").write_text(TEXT.replace("model.py", "/x/site-packages/tunix/models/llama.py"))
    (tmp_path / "map.json").write_text(json.dumps(SCOPES))
    words = [str(tmp_path / "program.hlo"), "--mesh", "dp2tp4", "--json"]
    assert hlo(words) == 0
    plain = json.loads(capsys.readouterr().out)
    assert {(row["scope"], row["source_line"]) for row in plain} == {("?", None)}
    assert hlo([*words, "--scopes", str(tmp_path / "map.json"), "--owns", "transformers/models/,tunix/models/"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["scope"] for row in rows] == ["layer.attention.out", "layer.attention.core", "layer.attention.out"]
    assert {row["source_line"] for row in rows} == {"/x/site-packages/tunix/models/llama.py:7"}


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (None, "cannot read .*map.json: No such file"),
        ("{", "map.json is not JSON"),
        ("null", "map.json: a scope map is .*, and not null"),
        ('["o_proj"]', "map.json: a scope map is .*, and no list"),
        ('{"o_proj": 3}', "map.json: the scope map has 'o_proj': 3; both are text"),
        ('{"": "embed"}', "the scope map has '': 'embed'; both are text of 1 to 1,000 characters"),
        ('{"(o": "embed"}', r"the scope map has '\(o', which is no regular expression: "),
        (json.dumps({f"p{n}": "embed" for n in range(1001)}), "the scope map has 1,001 patterns; 1,000 are the most"),
    ],
)
def test_a_map_that_cannot_be_is_one_line(tmp_path, written, why):
    (tmp_path / "program.hlo").write_text(TEXT)
    if written is not None:
        (tmp_path / "map.json").write_text(written)
    with pytest.raises(ValueError, match=why) as refused:
        hlo([str(tmp_path / "program.hlo"), "--scopes", str(tmp_path / "map.json")])
    assert "\n" not in str(refused.value)


def test_an_empty_package_owns_nothing():
    class Asked:
        scopes, owns = None, "transformers/models/,"

    with pytest.raises(ValueError, match="owns has ''; write at most 1,000 parts of paths"):
        names_of(Asked())


def test_the_rows_of_a_case_are_those_of_the_plan(capsys):
    contract = contract_rows("dp2tp4", model="llama-3.2-1b", phase="prefill", batch=4, seq=256)
    words = ["--mesh", "dp2tp4", "--model", "llama-3.2-1b", "--phase", "prefill", "--batch", "4", "--seq", "256"]
    assert plan([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)["phases"]["prefill"]
    assert [row.step_wire_bytes for row in contract] == [row["step_wire_bytes"] for row in printed["inherent"]]
    assert (contract.step_wire_bytes, dict(contract.axes)) == (printed["total"], {"dp": 2, "tp": 4})
    assert [(row.scope, row.axes) for row in contract][:2] == [("layer.attention.out", "tp"), ("layer.mlp.down", "tp")]
    assert list(contract.to_pandas().scope) == [row.scope for row in contract]
    assert "all-reduce over tp" in str(contract)
    assert contract._repr_html_().count("layer.mlp.down") == 1
    assert plan(words) == 0
    assert capsys.readouterr().out.split() == str(contract).split()


def test_shapes_may_come_from_a_checkpoint_s_config(tmp_path):
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "head_dim": 16,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "vocab_size": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "max_position_embeddings": 64,
        "hidden_act": "silu",
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    contract = contract_rows("tp4", checkpoint=tmp_path, batch=2, seq=32)
    # Two layers sum [2, 64] bf16 of decode: 2·3/4 of 256 B each.
    assert (contract[0].executions, contract[0].step_wire_bytes) == (2, 2 * 384)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"mesh": "dp3q"}, "dp3q"),
        ({"mesh": 8}, "mesh is 8; write text"),
        ({"mesh": "tp4", "model": "llama-9"}, "llama-9"),
        ({"mesh": "tp4", "phase": "prefill,decode"}, "phases is"),
        ({"mesh": "tp4", "batch": 0}, "batch is 0"),
        ({"mesh": "tp4", "model": "llama-3.2-1b", "checkpoint": "x"}, "the shapes are named twice"),
        ({"mesh": "tp4", "checkpoint": "nowhere"}, "nowhere"),
        ({"mesh": "tp4", "checkpoint": 7}, "checkpoint is 7; write the path"),
        ({"mesh": "tp4", "capacity": "full"}, "capacity is 'full'; write a factor"),
        ({"mesh": "tp4", "model": ""}, "model"),
    ],
)
def test_a_case_that_cannot_be_is_one_line(arguments, why):
    with pytest.raises(ValueError, match=why) as refused:
        contract_rows(arguments.pop("mesh"), **arguments)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("contract", "options", "why"),
    [
        (
            contract_rows("dp2tp4"),
            {"axes": AXES},
            "of the axes dp=2,tp=4, and the program was read with data=2,tensor=4",
        ),
        (contract_rows("tp8"), {"mesh": "dp2tp4"}, "of the axes tp=8, and the program was read with dp=2,tp=4"),
        ([summed("layer.mlp.down", axes="tp")], {"axes": AXES}, "is over 'tp'; .* are data=2,tensor=4"),
        ([summed("layer.mlp.down", axes="tensor,data")], {"axes": AXES}, "over 'tensor,data'"),
        ([summed("layer.mlp.down")], {}, "are none; read it with axes="),
        ([summed("?")], {"axes": AXES}, r"has the scope '\?'; name the part"),
        (["all-reduce"], {"axes": AXES}, "row 0 of the contract is 'all-reduce', and no ContractRow"),
        ([replace(CONTRACT[0], wire_bytes=1.5)], {"axes": AXES}, "row 0 of the contract has the wire_bytes 1.5; write"),
        (
            [CONTRACT[0], summed("embed", axes=("tensor",))],
            {"axes": AXES},
            r"row 1 of the contract is over \('tensor',\)",
        ),
        (7, {"axes": AXES}, "a contract is rows, .* and no int"),
        (CONTRACT, {"axes": AXES, "scopes": {"o": "layer.mlp.dwn"}}, "did you mean 'layer.mlp.down'"),
        (CONTRACT, {"axes": AXES, "scopes": "o_proj"}, "and no str"),
        (CONTRACT, {"axes": AXES, "mesh": "tp8"}, "the axes are named twice"),
    ],
)
def test_what_cannot_be_judged_is_one_line(contract, options, why):
    with pytest.raises(ValueError, match=why) as refused:
        judge(TEXT, contract, **options)
    assert "\n" not in str(refused.value)


def test_a_table_has_its_axes_and_a_program_those_of_the_case():
    with pytest.raises(ValueError, match="a table has its axes"):
        judge(collectives(TEXT, axes=AXES), CONTRACT, axes=AXES)
    rows = contract_rows("dp2tp4", model="llama-3.2-1b")
    assert judge(TEXT, rows, scopes=SCOPES).axes == {"dp": 2, "tp": 4}


BY_DATA, BY_TENSOR = (
    "{devices=[2,1,4]<=[8] last_tile_dim_replicate}",
    "{devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
)


def weight_gather(*, over="data", sharding=BY_DATA):
    """A gather of a parameter's two halves, or of its four quarters."""
    shape = "bf16[128,1024]"
    result = "bf16[256,1024]" if over == "data" else "bf16[512,1024]"
    text = program(wire("all-gather", shape, over=over, scope="x/down_proj", result=result)).replace("(x0)", "(p0)")
    return text.replace(f"{shape} parameter(0)", f"{shape} parameter(0), sharding={sharding}")


def test_a_row_of_weights_is_served_by_a_gather_of_weights_from_anywhere_and_by_nothing_else():
    # [256, 1024] bf16 are 524,288 B, of which each of two members sends half.
    row = once("all-gather", "data", "weights", 600_000, 300_000, of_weights=True)
    judgement = judge(weight_gather(), [row], axes=AXES)
    assert (judgement[0].inherent_bytes, judgement[0].causes, judgement.unserved) == (262_144, {}, ((row, 37_856),))
    twice = program(*[wire("all-gather", "bf16[128,1024]", over="data", result="bf16[256,1024]")] * 2)
    again = judge(twice.replace("(x0)", "(p0)").replace("(x1)", "(p1)"), [row], axes=AXES)
    assert [(each.inherent_bytes, dict(each.causes)) for each in again] == [(262_144, {}), (37_856, {"other": 224_288})]
    # A gather of an activation is none of weights.
    assert dict(judge(twice, [row], axes=AXES)[0].causes) == {"activation-gather": 262_144}


def test_weights_of_a_size_of_a_table_serve_the_table():
    table, layers = (
        once("all-gather", "data", scope, size, size // 2, of_weights=True)
        for scope, size in (("head", 524_288), ("weights", 600_000))
    )
    assert judge(weight_gather(), [layers, table], axes=AXES)[0].serves == (1,)
    # A neighbour's scope does not make a table of a weight.
    smaller = weight_gather().replace("256,1024", "128,1024").replace("[128,1024] parameter", "[64,1024] parameter")
    named = judge(smaller, [layers, table], axes=AXES, scopes={"down_proj": "head"})
    assert named[0].serves == (0,)


def test_rows_by_hand_are_left_as_they_are_and_a_note_says_which_weights_are_split():
    judgement = judge(weight_gather(), CONTRACT, axes=AXES, scopes=SCOPES)
    assert dict(judgement[0].causes) == {"weight-gather": 262_144}
    words = " ".join(str(judgement).split())
    assert "Note: the program keeps 1 weight split over data, where the contract requires nothing: if that is" in words
    assert "the remedy of weight-gather is none" in words
    # Over tensor the contract has its own rows: a gather of tensor's weights is the usual mistake.
    over_tensor = judge(weight_gather(over="tensor", sharding=BY_TENSOR), CONTRACT, axes=AXES, scopes=SCOPES)
    assert dict(over_tensor[0].causes) == {"weight-gather": 786_432}
    assert "the program keeps" not in str(over_tensor)


def test_weights_that_a_case_splits_are_in_its_contract_in_both_phases():
    for phase in ("prefill", "decode"):
        whole = contract_rows("dp2tp4", model="llama-3.2-1b", phase=phase)
        split = contract_rows("dp2tp4", model="llama-3.2-1b", phase=phase, weights_over="fsdp")
        assert dict(split.axes) == {"fsdp": 2, "tp": 4}
        assert split[: len(whole)] == whole.rows
        weights, embed, head = split[len(whole) :]
        # q and o of 32 heads of 64, k and v of 8, gate, up and down of 8192, of 2048: a quarter each, half sent.
        layer = 2048 * (2 * 64 * (32 + 8) + 3 * 8192) // 4 * 2
        assert (weights.executions, weights.payload_bytes, weights.step_wire_bytes) == (16, layer, 16 * layer // 2)
        assert (embed.payload_bytes, head.payload_bytes) == (128_256 * 2048 // 4 * 2,) * 2
        assert {row.axes for row in (weights, embed, head)} == {"fsdp"}
        assert "all-gather over fsdp" in str(split)
        assert "arXiv:1910.02054" in weights.source


def test_weights_of_stages_and_experts_are_counted_by_device():
    # Mixtral: 32 layers in two stages; 8 experts over ep2; 4096 wide, ffn 14336 over tp2; heads 32 and 8 of 128.
    weights, embed, head = contract_rows("dp2pp2ep2tp2@v5e:4x4", model="mixtral-8x7b", batch=16, weights_over="dp")[-3:]
    layer = 4096 * (2 * 128 * (16 + 4) + 4 * 3 * 7168) * 2
    assert (weights.executions, weights.payload_bytes, weights.wire_bytes) == (16, layer, layer // 2)
    table = 32_000 * 4096 // 2 * 2
    # On one of the two stages: half of half of it, mean over devices.
    assert (embed.payload_bytes, embed.step_wire_bytes, head.step_wire_bytes) == (table, table // 4, table // 4)


@pytest.mark.parametrize(
    ("mesh", "over", "why"),
    [
        ("tp8", "fsdp", "mesh tp8 has no dp over which weights could be split"),
        ("dp2tp4", "tp", "weights_over is 'tp', over which the plan splits matrices by itself; write 'dp', or what"),
        ("dp2tp4", 2, "weights_over is 2; write text"),
    ],
)
def test_weights_over_what_is_no_such_axis_are_refused(mesh, over, why):
    with pytest.raises(ValueError, match=why):
        contract_rows(mesh, weights_over=over)


SCALED = f"""{HEAD}
ENTRY main {{
  w = bf16[64,1024] parameter(0), metadata={{op_name="weights['up']"}}
  x = bf16[64,1024] parameter(1), metadata={{op_name="x"}}
  scaled = bf16[64,1024] add(w, w)
  tokens = bf16[64,1024] multiply(x, w)
  g = bf16[256,1024] all-gather(scaled), channel_id=1, replica_groups={OVER["tensor"]}, dimensions={{0}}, \
use_global_device_ids=true, metadata={{op_name="jit(step)/up/mul"}}
  h = bf16[256,1024] all-gather(tokens), channel_id=2, replica_groups={OVER["tensor"]}, dimensions={{0}}, \
use_global_device_ids=true, metadata={{op_name="jit(step)/up/mul"}}
  ROOT d = bf16[256,1024] add(g, h)
}}
"""
GATHER = once("all-gather", "tensor", "layer.mlp.up", 524_288, 393_216)


@pytest.mark.parametrize("roles", [{"^weights": "weight", "x": "input"}, {0: "weight", 1: "input"}])
def test_a_scaled_weight_is_a_weight_where_the_roles_of_parameters_are_given(roles):
    """Two gathers of 524,288 B, 3/4 of them sent: the first is of a weight and fills no row of tokens."""
    options = {"axes": AXES, "scopes": {"up": "layer.mlp.up"}}
    judged = judge(SCALED, [GATHER], roles=roles, **options)
    assert [(row.inherent_bytes, dict(row.causes)) for row in judged] == [
        (0, {"weight-gather": 393_216}),
        (393_216, {}),
    ]
    unnamed = judge(SCALED, [GATHER], **options)
    assert [row.inherent_bytes for row in unnamed] == [393_216, 0]
    (note,) = unnamed.notes
    assert note.startswith(
        "2 all-gathers serve a row of the contract, but depend on no parameter besides weights['up'], x; if all"
    )


def test_a_gather_that_depends_on_ids_or_caches_needs_no_word_on_roles():
    """The scaled value is added to a cache, or to a number of the token ids: no weight, whatever the floats are."""
    options = {"axes": AXES, "scopes": {"up": "layer.mlp.up"}}
    of_ids = SCALED
    for old, new in (
        ("x = bf16[64,1024] parameter(1)", "x = s32[64,1024] parameter(1)"),
        ("  scaled", "  t = bf16[64,1024] convert(x)\n  scaled"),
        ("add(w, w)", "add(w, t)"),
        ("multiply(x, w)", "multiply(t, w)"),
    ):
        of_ids = of_ids.replace(old, new)
    of_cache = SCALED.replace("add(w, w)", "add(w, x)").replace(
        "num_partitions=8", "num_partitions=8, input_output_alias={ {}: (1, {}, may-alias) }"
    )
    for text in (of_ids, of_cache):
        judged = judge(text, [GATHER], **options)
        assert [row.inherent_bytes for row in judged] == [393_216, 0]
        assert judged.notes == ()


def test_narrow_integers_are_weights_where_no_role_is_given():
    """An s8 weight of 64 × 1024 a device, gathered over 4: 3 × 65,536 B sent.  Token ids have more than 8 bits."""
    gathered = f"""{HEAD}
ENTRY main {{
  w = s8[64,1024] parameter(0)
  g = s8[256,1024] all-gather(w), channel_id=1, replica_groups={OVER["tensor"]}, dimensions={{0}}, \
use_global_device_ids=true, metadata={{op_name="jit(step)/up/mul"}}
  ROOT d = s8[256,1024] add(g, g)
}}
"""
    options = {"axes": AXES, "scopes": {"up": "layer.mlp.up"}}
    for dtype, cause in (("s8", "weight-gather"), ("s32", "activation-gather")):
        (row,) = judge(gathered.replace("s8", dtype), [], **options)
        assert dict(row.causes) == {cause: 196_608 * (4 if dtype == "s32" else 1)}


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        ({"weights": "wieght"}, "roles have 'weights': 'wieght'; a parameter is weight, cache or input"),
        (
            {"wieghts": "weight"},
            "roles have 'wieghts', which no parameter fits; the first are 0 \"weights['up']\", 1 'x'",
        ),
        ({7: "weight"}, "roles have 7, which no parameter fits"),
        ({"(": "weight"}, "roles have '(', which is no regular expression"),
        ({1.5: "weight"}, "roles have 1.5; write a pattern of a parameter's name, or its number"),
        (["w"], "roles are {pattern of a parameter's name, or its number: role}, and no list"),
    ],
)
def test_roles_that_fit_nothing_say_what_would_be_right(roles, said):
    with pytest.raises(HloError, match=f"^{re.escape(said)}") as error:
        judge(SCALED, [GATHER], roles=roles, axes=AXES)
    assert "\n" not in str(error.value)
