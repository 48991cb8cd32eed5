"""Laws at the size of a real model, and of another compiler."""

from meshes.models import model
from tests.laws.findings import MASKED, collect_law, sample_laws, sdpa_laws
from tests.laws.law import EINSUM, MOE, SDPA, SHARDY, Law, Setting

REAL = (
    Setting(
        mesh="tp8",
        model=model("llama-3.1-8b"),
        batch=8,
        seq=1024,
        layers=32,
        phases=("prefill",),
        programs=(SHARDY,),
        laws=(
            Law("embed", "all-reduce@tp", "step", "8·1024·4096·2", None),
            Law("layer.attention.out", "all-reduce@tp", "layer", "8·1024·4096·2", None),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "8·1024·4096·2", None),
            *sample_laws("8·8·2", "8·8·4"),
        ),
    ),
    Setting(
        mesh="tp4pp2",
        model=model("llama-3.1-8b"),
        batch=8,
        seq=1024,
        layers=16,
        ticks=5,
        programs=(SHARDY, SDPA),
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·2·1024·4096·2", "4·2·1·4096·2"),
            Law("pipeline.shift", "collective-permute@pp", "tick", "2·1024·4096·2", "2·1·4096·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "2·1024·4096·2", "2·1·4096·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "2·1024·4096·2", "2·1·4096·2"),
            *sample_laws("4·8·2", "4·8·4"),
            collect_law("8·4"),
            *sdpa_laws(
                q=("2·1024·32·128·2", "2·1·32·128·2"),
                k=("2·1024·32·128·2", "2·1152·8·128·2"),
                v=("2·1024·8·128·2", "2·1152·8·128·2"),
            ),
        ),
    ),
)

WIDE = "on the CPU bf16 travels as float32"
NO_SCATTER = f"{WIDE}, and a reduce-scatter is written as an all-reduce, of which each device cuts its part out"
IN_PIECES = f"{WIDE}; an all-to-all has an operand for each device of its group"

TOP_K = "JAX's top_k becomes a custom call for the CPU, and the partitioner gives it all tokens"


def wide_law(
    block: str, collective: str, per: str, size: str, *, note: str = WIDE, each: int = 1, what: str = ""
) -> Law:
    """In prefill."""
    return Law(block, collective, per, size, None, each=each, what=what, note=note)


CPU = (
    Setting(
        mesh="tp8+sp",
        backend="cpu",
        seq=128,
        phases=("prefill",),
        programs=(SHARDY, EINSUM),
        laws=(
            wide_law("embed", "all-reduce@tp", "step", "16·128·256·4", note=NO_SCATTER),
            wide_law("layer.attention.qkv", "all-gather@tp", "layer", "16·128·256·4"),
            wide_law("layer.attention.out", "all-reduce@tp", "layer", "16·128·256·4", note=NO_SCATTER),
            wide_law("layer.mlp.up", "all-gather@tp", "layer", "16·128·256·4"),
            wide_law("layer.mlp.down", "all-reduce@tp", "layer", "16·128·256·4", note=NO_SCATTER),
            wide_law("head", "all-reduce@tp", "step", "16·256·4", note=MASKED),
            wide_law("sample", "all-gather@tp", "step", "8·16·4", what="the best value of each shard"),
            wide_law("sample", "all-gather@tp", "step", "8·16·4", note="", what="its id"),
        ),
    ),
    Setting(
        mesh="tp2ep4",
        model=MOE,
        backend="cpu",
        phases=("prefill",),
        programs=(SHARDY, EINSUM),
        laws=(
            wide_law("embed", "all-reduce@tp", "step", "4·64·256·4"),
            wide_law("layer.attention.out", "all-reduce@tp", "layer", "4·64·256·4"),
            Law(
                "layer.moe.route",
                "all-gather@ep",
                "layer",
                "16·64·8·4",
                None,
                programs=(SHARDY,),
                what="shares of the experts",
                finding=True,
                note=TOP_K,
            ),
            wide_law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·2·20·256·4", each=4, note=IN_PIECES),
            wide_law("layer.moe.combine", "all-to-all@ep", "layer", "4·2·20·256·4", each=4, note=IN_PIECES),
            wide_law("layer.moe.combine", "all-reduce@tp", "layer", "4·64·256·4"),
            wide_law("sample", "all-gather@tp", "step", "2·4·4", what="the best value of each shard"),
            wide_law("sample", "all-gather@tp", "step", "2·4·4", note="", what="its id"),
        ),
    ),
)
