"""Laws of expert parallelism: 8 experts, 2 for each token, split over `ep`, which also splits the batch.

C, the places that an expert has for a group of G tokens, is 1.25 of their even share: ⌈1.25·2·G/8⌉.  In prefill a group
is a device's part of one sequence: of 64 tokens C = 20, of 32 C = 10.  In decode it is all of a device's sequences in a
microbatch: of 4 C = ⌈1.25⌉ = 2, of 2 and of 1 C = 1.
"""

from dataclasses import replace

from tests.laws.findings import MASKED, collect_law, sample_laws, sdpa_laws
from tests.laws.law import MOE, Law, Setting
from tests.laws.sequence import SMALL

FOUR_SEQUENCES = sdpa_laws(
    q=("4·64·24·32·2", "4·1·24·32·2"), k=("4·64·24·32·2", "4·128·8·32·2"), v=("4·64·8·32·2", "4·128·8·32·2")
)

EP = (
    Setting(
        mesh="dp2ep4",
        model=MOE,
        laws=(
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "2·8·20·256·2", "1·8·1·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "2·8·20·256·2", "1·8·1·256·2"),
        ),
    ),
    Setting(
        mesh="tp2ep4",
        model=MOE,
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            *sample_laws("2·4·2", "2·4·4"),
            *FOUR_SEQUENCES,
        ),
    ),
    Setting(
        mesh="pp2ep4",
        model=MOE,
        layers=3,
        ticks=5,
        laws=(
            Law("pipeline.shift", "collective-permute@pp", "tick", "1·64·256·2", "1·1·256·2"),
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "1·8·20·256·2", "1·8·1·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "1·8·20·256·2", "1·8·1·256·2"),
            collect_law("4·4"),
        ),
    ),
    Setting(
        mesh="ep4tp2+sp",
        model=MOE,
        laws=(
            Law("embed", "reduce-scatter@tp", "step", "4·64·256·2", None),
            Law("embed", "all-reduce@tp", "step", None, "4·1·256·2", note=SMALL),
            Law("layer.attention.qkv", "all-gather@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "reduce-scatter@tp", "layer", "4·64·256·2", None),
            Law("layer.attention.out", "all-reduce@tp", "layer", None, "4·1·256·2", note=SMALL),
            Law("layer.moe.route", "all-gather@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "reduce-scatter@tp", "layer", "4·64·256·2", None),
            Law("layer.moe.combine", "all-reduce@tp", "layer", None, "4·1·256·2", note=SMALL),
            Law("head", "all-reduce@tp", "step", "4·256·2", None, note=MASKED),
            Law("head", "all-gather@tp", "step", None, "4·256·2"),
            *sample_laws("2·4·2", "2·4·4"),
            *FOUR_SEQUENCES,
        ),
    ),
    Setting(
        mesh="tp2ep4",
        model=MOE,
        off=("ffn",),
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            # Each expert is whole on a device: there are no partial sums.
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            *sample_laws("2·4·2", "2·4·4"),
            *FOUR_SEQUENCES,
        ),
    ),
    Setting(
        mesh="tp2ep4",
        model=replace(MOE, name="shared-expert", family="qwen2_moe", shared_ffn=512, qkv_bias=True, renormalized=False),
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·64·256·2", "4·1·256·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "4·8·20·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "4·64·256·2", "4·1·256·2"),
            *sample_laws("2·4·2", "2·4·4"),
            *FOUR_SEQUENCES,
        ),
    ),
)
