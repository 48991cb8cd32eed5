"""Rules: which axes split which dim, by name, and what no twin can express."""

import pytest

from meshes.case import Case
from meshes.dims import MEGATRON, SEQUENCE_PARALLEL, axes_of, is_sequence_parallel, rules
from meshes.mesh_argument import read_mesh
from meshes.process.errors import MeshError


def test_a_tensor_is_split_by_the_names_of_its_dims():
    assert axes_of("stages batch seq ffn _", rules=MEGATRON) == ("pp", ("dp", "ep"), "cp", "tp", None)
    assert axes_of("stream_batch stream_seq embed", rules=SEQUENCE_PARALLEL) == (("dp", "ep"), ("cp", "tp"), None)
    with pytest.raises(MeshError, match="a tensor names the dims width; the dims are batch, seq"):
        axes_of("batch width", rules=MEGATRON)


def test_sequence_parallelism_splits_the_stream_and_nothing_else():
    assert {dim for dim in MEGATRON if MEGATRON[dim] != SEQUENCE_PARALLEL[dim]} == {"stream_seq"}
    assert read_mesh("tp8+sp").rules == rules({"seq": "tp"}) == SEQUENCE_PARALLEL
    assert is_sequence_parallel(SEQUENCE_PARALLEL)
    assert not is_sequence_parallel(MEGATRON)


def test_a_wide_feed_forward_that_is_whole_is_whole_in_experts_too():
    table = rules({"ffn": None})
    assert (table["ffn"], table["expert_ffn"], table["shared_ffn"], table["heads"]) == (None, None, None, "tp")


def test_a_case_of_before_ep_and_cp_says_the_same():
    assert rules({"batch": "dp", "seq": None}) == MEGATRON


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"width": "tp"}, "rules name the dim 'width'; the dims are batch"),
        ({"ffn": "dp"}, "rules split ffn over 'dp'; offered is 'tp' or 'none'"),
        ({"seq": "dp"}, "rules split seq over 'dp'; offered is 'cp' or 'tp'"),
        ({"experts": None}, "rules split experts over 'none'; offered is 'ep'"),
        ({"heads": None}, "rules split one of heads and kv_heads"),
        ({"seq": "tp", "ffn": None}, "rules split seq over 'tp', but not heads and ffn"),
    ],
)
def test_what_no_twin_can_express_is_refused(changes, says):
    with pytest.raises(MeshError, match=says):
        rules(changes)


def test_in_decode_nothing_splits_the_one_position():
    decode = Case.read("cp2tp4", phases=("decode",)).rules
    assert [decode[dim] for dim in ("seq", "stream_seq", "parts")] == [None, None, None]
    assert decode["positions"] == "cp"  # of the cache
    prefill = Case.read("cp2tp4", phases=("prefill",)).rules
    assert [prefill[dim] for dim in ("seq", "stream_seq", "parts", "positions")] == ["cp"] * 4


@pytest.mark.parametrize(
    ("mesh", "batch", "stream"),
    [
        ("tp8+sp", 8, "dp,ep,tp"),  # a sequence for each of 8 shards
        ("tp8+sp", 4, "dp,ep"),  # fewer sequences than shards: Megatron's all-reduce
        ("tp4pp2+sp", 16, "dp,ep,tp"),  # 4 in each of 4 microbatches
        ("tp4pp2+sp", 8, "dp,ep"),
        ("tp8", 8, "dp,ep"),
    ],
)
def test_in_decode_sequence_parallelism_splits_the_sequences_where_it_can(mesh, batch, stream):
    case = Case.read(mesh, batch=batch)
    assert case.at(phases=("decode",)).rules["stream_batch"] == stream
    assert case.at(phases=("prefill",)).rules["stream_batch"] == "dp,ep"


@pytest.mark.parametrize(
    ("mesh", "words", "phase", "tokens", "groups", "slots"),
    [
        # Mixtral: 8 experts, 2 a token. 1024 tokens: 1.25 · 1024 · 2 / 8 = 320 places.
        ("ep4tp2", {}, "prefill", 1024, 8, 320),
        ("ep4tp2", {"capacity": 2.0}, "prefill", 1024, 8, 512),
        ("ep4tp2", {"capacity": None}, "prefill", 1024, 8, 1024),
        ("ep4tp2", {"capacity": 100.0}, "prefill", 1024, 8, 1024),  # never more than there are tokens
        ("cp2ep4", {}, "prefill", 512, 16, 160),  # each sequence is two groups
        ("pp2ep4", {"batch": 16}, "prefill", 1024, 4, 320),  # 4 sequences in each of 4 microbatches
        # decode: 8 sequences / 4 = 2 tokens a device; 1.25 · 2 · 2 / 8 = 0.6, at least 1.
        ("ep4tp2", {}, "decode", 2, 4, 1),
        ("dp2ep4", {"batch": 64}, "decode", 8, 8, 3),  # 2.5, rounded up
    ],
)
def test_groups_of_tokens_and_their_places_at_an_expert_by_hand(mesh, words, phase, tokens, groups, slots):
    case = Case.read(mesh, model_name="mixtral-8x7b", phases=(phase,), **words)
    assert (case.group_tokens, case.num_groups, case.expert_slots) == (tokens, groups, slots)
