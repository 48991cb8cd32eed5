"""What a plan says beside its rows, with the numbers worked out by hand."""

from compare.contract.notes import list_notes
from compare.report.plan import plan
from meshes.case import Case

QWEN = {"model_name": "qwen3-30b-a3b"}


def notes_of(mesh, phase="prefill", **options):
    return list_notes(Case.read(mesh, phases=(phase,), **options))


def test_a_dense_plan_of_whole_heads_needs_no_words():
    assert notes_of("tp4pp2") == notes_of("cp4tp2") == []
    assert plan(Case.read("tp4pp2")).phases["decode"].notes == ()


def test_a_merge_in_float32_says_why_programs_move_less():
    (note,) = notes_of("cp4tp2", "decode")
    assert note.startswith(
        "The parts of a softmax over cp4 are merged in float32; a program that sums its output in bf16"
    )
    assert notes_of("cp4tp2", "decode", dtype="f32") == []


def test_copies_of_kv_heads_say_what_the_cache_costs():
    # 48 layers · 2 · 8 sequences · 1152 positions · 1 head of 128 · 2 bytes = 226.5 MB a device, half of it copies
    (_, note) = notes_of("tp8", **QWEN)
    assert note == (
        "Each of the 4 KV heads is stored 2 times, so that every shard of tp8 has as many: the cache is 2 × as large, "
        "113.2 MB more per device; no collective carries them."
    )


def test_copies_of_kv_heads_go_around_the_ring():
    note = notes_of("cp2tp8", **QWEN)[-1]
    assert note.endswith(
        "the ring of layer.attention.core carries the copies, too, 2 × as many bytes; no other collective does."
    )
    assert notes_of("cp2tp8", "decode", **QWEN)[-1].endswith("no collective carries them.")


def test_sequence_parallelism_in_decode_says_whether_it_runs():
    assert notes_of("tp8+sp", "decode") == [
        "Sequence parallelism: with one position to a sequence, tp8 splits the sequences of the stream."
    ]
    # 8 sequences in 4 microbatches: 2, which four shards cannot share
    (note,) = notes_of("tp4pp2+sp", "decode")
    assert note.startswith("Sequence parallelism is not used in decode: 2 sequences of a microbatch cannot be divided")


def test_places_at_experts_are_counted():
    # ⌈1.25·8·1024/128⌉ = 80 places; 1024 tokens choose 8 each
    assert notes_of("dp2ep4", **QWEN) == [
        "Expert capacity: 80 slots per expert for each group of 1,024 tokens (10,240 slots for 8,192 routed tokens); "
        "tokens over capacity are dropped."
    ]
    assert notes_of("dp2ep4", **QWEN, capacity=None)[0].endswith(
        "(131,072 slots for 8,192 routed tokens); no token is dropped."
    )


def test_another_style_than_usual_is_said():
    assert list_notes(Case.read("tp8", phases=("decode",))) == []
    for style, what in (
        ("weights", "the partitioner splits the activations"),
        ("explicit", "written by hand"),
        ("typed", "in its type"),
    ):
        (line,) = list_notes(Case.read("tp8", phases=("decode",), style=style))
        assert line.startswith(f"Style {style}: ")
        assert what in line
