"""The lines that a remedy tells to write, run as they stand: they compute what the call did that they replace."""

import pytest

from meshes.variants import VARIANTS

BATCH, HEADS, KV_HEADS, SEQ, WIDTH = 4, 8, 2, 6, 16


@pytest.mark.parametrize("name", [name for name, row in VARIANTS.items() if row.site == "attention"])
@pytest.mark.parametrize("ways", [1, 2])
def test_attention_written_as_the_lines_say_is_the_call_that_they_replace(name, ways):
    torch = pytest.importorskip("torch")  # here: where tests are collected, each process would wait for it
    functional = torch.nn.functional
    q, k, v = (torch.randn(BATCH, heads, SEQ, WIDTH) for heads in (HEADS, KV_HEADS, KV_HEADS))
    expected = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
    names = {
        "torch": torch,
        "F": functional,
        "q": q,
        "k": k,
        "v": v,
        "mask": mask,
        "kv_heads": KV_HEADS,
        "groups": HEADS // KV_HEADS,
        "ways": ways,
    }
    exec(VARIANTS[name].code["torchxla"].replace("…", "is_causal=True, enable_gqa=True"), names)
    torch.testing.assert_close(names["mixed"], expected)
