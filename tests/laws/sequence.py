"""Laws of sequence parallelism: between the blocks `tp` splits the tokens, in decode the sequences."""

from tests.laws.findings import MASKED, collect_law, sample_laws, sdpa_laws
from tests.laws.law import Law, Setting

SMALL = (
    "the plan scatters; libtpu, which decides by shapes, writes this one as an all-reduce and cuts each device's part "
    "out: twice the wire bytes. (It kept the reduce-scatters of layers with 16 tokens or 8 sequences a device; in "
    "decode with stages it kept none, up to 32)"
)

SP = (
    Setting(
        mesh="tp8+sp",
        seq=128,
        phases=("prefill",),
        laws=(
            Law("embed", "reduce-scatter@tp", "step", "16·128·256·2", None),
            Law("layer.attention.qkv", "all-gather@tp", "layer", "16·128·256·2", None),
            Law("layer.attention.out", "reduce-scatter@tp", "layer", "16·128·256·2", None),
            Law("layer.mlp.up", "all-gather@tp", "layer", "16·128·256·2", None),
            Law("layer.mlp.down", "reduce-scatter@tp", "layer", "16·128·256·2", None),
            Law("head", "all-reduce@tp", "step", "16·256·2", None, note=MASKED),
            *sample_laws("8·16·2", "8·16·4"),
            *sdpa_laws(q=("16·128·24·32·2", None), k=("16·128·24·32·2", None), v=("16·128·8·32·2", None)),
        ),
    ),
    Setting(
        mesh="tp8+sp",
        # 8 sequences for each device.
        batch=64,
        phases=("decode",),
        laws=(
            Law("embed", "all-reduce@tp", "step", None, "64·1·256·2", note=SMALL),
            Law("layer.attention.qkv", "all-gather@tp", "layer", None, "64·1·256·2"),
            Law("layer.attention.out", "reduce-scatter@tp", "layer", None, "64·1·256·2"),
            Law("layer.mlp.up", "all-gather@tp", "layer", None, "64·1·256·2"),
            Law("layer.mlp.down", "reduce-scatter@tp", "layer", None, "64·1·256·2"),
            Law("head", "all-gather@tp", "step", None, "64·256·2"),
            *sample_laws("8·64·2", "8·64·4"),
            *sdpa_laws(q=(None, "64·1·24·32·2"), k=(None, "64·128·8·32·2"), v=(None, "64·128·8·32·2")),
        ),
    ),
    Setting(
        mesh="tp4pp2+sp",
        layers=3,
        ticks=5,
        laws=(
            Law("embed", "reduce-scatter@tp", "step", "4·4·64·256·2", None),
            Law("embed", "all-reduce@tp", "step", None, "4·4·1·256·2", note=SMALL),
            # tp splits the state that goes on: 64/4 tokens of 4 sequences, in decode 4/4 sequences.
            Law("pipeline.shift", "collective-permute@pp", "tick", "4·16·256·2", "1·1·256·2"),
            Law("layer.attention.qkv", "all-gather@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "reduce-scatter@tp", "layer", "4·64·256·2", None),
            Law("layer.attention.out", "all-reduce@tp", "layer", None, "4·1·256·2", note=SMALL),
            Law("layer.mlp.up", "all-gather@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.mlp.down", "reduce-scatter@tp", "layer", "4·64·256·2", None),
            Law("layer.mlp.down", "all-reduce@tp", "layer", None, "4·1·256·2", note=SMALL),
            Law("head", "all-reduce@tp", "step", "16·256·2", None, note=MASKED),
            Law("head", "all-gather@tp", "step", None, "16·256·2"),
            *sample_laws("4·16·2", "4·16·4"),
            collect_law("16·4"),
            *sdpa_laws(
                q=("4·64·24·32·2", "4·1·24·32·2"),
                k=("4·64·24·32·2", "4·128·8·32·2"),
                v=("4·64·8·32·2", "4·128·8·32·2"),
            ),
        ),
    ),
)
