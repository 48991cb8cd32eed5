"""Laws of tensor parallelism, of data parallelism and pipelines with it, of rules switched off, of copied KV heads.

The numbers: 16 sequences of 64 tokens, embed 256, 24 heads of 32 and 8 KV heads, 6 layers, 2 bytes an element.  A cache
has 128 places for each sequence: 64, and the new token, rounded up to 128s.
"""

from dataclasses import replace

from tests.laws.findings import collect_law, sample_laws, sdpa_laws
from tests.laws.law import DENSE, SDPA, SHARDY, Law, Setting

WHOLE_BATCH = sdpa_laws(
    q=("16·64·24·32·2", "16·1·24·32·2"), k=("16·64·24·32·2", "16·128·8·32·2"), v=("16·64·8·32·2", "16·128·8·32·2")
)

TP = (
    Setting(
        mesh="tp8",
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·64·256·2", "16·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            *sample_laws("8·16·2", "8·16·4"),
            *WHOLE_BATCH,
        ),
    ),
)

DP = (
    Setting(
        mesh="dp2tp4",
        laws=(
            Law("embed", "all-reduce@tp", "step", "8·64·256·2", "8·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "8·64·256·2", "8·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "8·64·256·2", "8·1·256·2"),
            *sample_laws("4·8·2", "4·8·4"),
            *sdpa_laws(
                q=("8·64·24·32·2", "8·1·24·32·2"),
                k=("8·64·24·32·2", "8·128·8·32·2"),
                v=("8·64·8·32·2", "8·128·8·32·2"),
            ),
        ),
    ),
)

RULES = (
    Setting(
        mesh="tp8",
        programs=(SHARDY, SDPA),
        off=("vocab",),
        laws=(
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            *WHOLE_BATCH,
        ),
    ),
    Setting(
        mesh="tp8",
        programs=(SHARDY, SDPA),
        off=("heads", "kv_heads"),
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·64·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            *sample_laws("8·16·2", "8·16·4"),
        ),
    ),
    Setting(
        mesh="tp8",
        programs=(SHARDY, SDPA),
        off=("ffn",),
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·64·256·2", "16·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            *sample_laws("8·16·2", "8·16·4"),
            *WHOLE_BATCH,
        ),
    ),
)

PP = (
    Setting(
        mesh="tp4pp2",
        layers=3,
        ticks=5,
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·4·64·256·2", "4·4·1·256·2"),
            Law("pipeline.shift", "collective-permute@pp", "tick", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            *sample_laws("4·16·2", "4·16·4"),
            collect_law("16·4"),
            *sdpa_laws(
                q=("4·64·24·32·2", "4·1·24·32·2"),
                k=("4·64·24·32·2", "4·128·8·32·2"),
                v=("4·64·8·32·2", "4·128·8·32·2"),
            ),
        ),
    ),
    Setting(
        mesh="dp2pp2tp2",
        layers=3,
        ticks=5,
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·2·64·256·2", "4·2·1·256·2"),
            Law("pipeline.shift", "collective-permute@pp", "tick", "2·64·256·2", "2·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "2·64·256·2", "2·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "2·64·256·2", "2·1·256·2"),
            *sample_laws("2·8·2", "2·8·4"),
            collect_law("8·4"),
            *sdpa_laws(
                q=("2·64·24·32·2", "2·1·24·32·2"),
                k=("2·64·24·32·2", "2·128·8·32·2"),
                v=("2·64·8·32·2", "2·128·8·32·2"),
            ),
        ),
    ),
)

COPIES = (
    Setting(
        mesh="tp8",
        model=replace(DENSE, name="4-kv-heads", family="qwen3", kv_heads=4, qk_norm=True),
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·64·256·2", "16·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·64·256·2", "16·1·256·2"),
            *sample_laws("8·16·2", "8·16·4"),
            # 4 KV heads stand as 8, each twice: what moves k and v moves the copies, too.
            *WHOLE_BATCH,
        ),
    ),
)
