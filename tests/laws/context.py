"""Laws of context parallelism: `cp` splits the positions of a prompt, and those of a cache.

Each rank's part of a cache has 128 places: its part of the 64 positions, and the new token, rounded up to 128s.
"""

from dataclasses import replace

from tests.laws.findings import MASKED, MERGED, SUMMED, Both, collect_law, sample_laws, sdpa_laws
from tests.laws.law import CLEAN, DENSE, JAX, MOE, SDPA, TORCHXLA, Law, Setting
from tests.laws.sequence import SMALL

NO_RING = "a program that GSPMD partitions cannot write a ring: k and v are gathered, with the wire bytes of the ring"
BF16 = "the plan adds the outputs up in float32, the twins in bf16, which is the model's"
IN_F32 = "SDPA adds the outputs up in float32"
ANY_KEY = (
    "SDPA checks for each query whether all its keys are masked. libtpu sums these bits as words of their padded tile: "
    "128 bytes for the query heads of each KV head"
)
JOINED = "SDPA's gathers, as in the first note; beside dp or pp they also join the parts of the sequence"
NO_PARTS = "after that every rank has the whole cache, and nothing is left to merge"

CORE = "layer.attention.core"


def spread_law(ids: str) -> Law:
    """In prefill the rank with the last part of a sequence chooses; in decode every rank does."""
    return Law("pipeline.collect", "all-reduce@cp", "step", ids, None, note=SUMMED)


def ring_law(hops: int, piece: str) -> Law:
    """Keys and values of each part, around the ring."""
    return Law(
        CORE, "collective-permute@cp", "layer", piece, None, programs=JAX, each=2 * hops, what="k and v of one part"
    )


def gather_laws(gathered: str) -> Law:
    """Keys and values of all parts."""
    return Law(
        CORE,
        "all-gather@cp",
        "layer",
        gathered,
        None,
        programs=TORCHXLA,
        each=2,
        what="k and v of all parts",
        note=NO_RING,
    )


def merge_laws(sums: str, output: str) -> tuple[Law, ...]:
    """The parts' softmax: the highest score and the sum of each head, in float32, and the weighted values."""
    return (
        Law(CORE, "all-reduce@cp", "layer", None, sums, programs=CLEAN, each=2, what="highest score; sum"),
        Law(CORE, "all-reduce@cp", "layer", None, output, programs=CLEAN, what="weighted values", note=BF16),
    )


def merge_laws_of_sdpa(sums: str, output: str, bits: str, *, note: str = MERGED) -> tuple[Law, ...]:
    """The same, of all heads, and what SDPA asks besides."""
    reduce = (CORE, "all-reduce@cp", "layer", None)
    return (
        Law(*reduce, sums, programs=(SDPA,), each=2, what="highest score; sum", note=note),
        Law(*reduce, output, programs=(SDPA,), what="weighted values", note=IN_F32),
        Law(*reduce, bits, programs=(SDPA,), what="is any key seen", finding=True, note=ANY_KEY),
    )


def join_laws(*, q: Both, k: Both, v: Both) -> tuple[Law, ...]:
    """SDPA beside dp or pp: in prefill q is made whole over cp, too, in decode the cache."""
    tp, both = "all-gather@tp", "all-gather@cp,tp"
    rows = (
        ("q", both, q[0], None),
        ("k", tp, k[0], None),
        ("v", tp, v[0], None),
        ("q", tp, None, q[1]),
        ("k", both, None, k[1]),
        ("v", both, None, v[1]),
    )
    return (
        *(
            Law(CORE, kind, "layer", prefill, decode, programs=(SDPA,), what=what, finding=True, note=JOINED)
            for what, kind, prefill, decode in rows
        ),
        Law(
            CORE,
            "all-reduce@cp",
            "layer",
            None,
            "0",
            programs=(SDPA,),
            each=0,
            what="softmax of the parts",
            finding=True,
            note=NO_PARTS,
        ),
    )


CP = (
    Setting(
        mesh="cp4tp2",
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·16·256·2", "16·1·256·2"),
            ring_law(3, "16·16·4·32·2"),
            gather_laws("16·64·4·32·2"),
            *merge_laws("16·12·4", "16·12·32·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·16·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·16·256·2", "16·1·256·2"),
            *sample_laws("2·16·2", "2·16·4"),
            spread_law("16·4"),
            *sdpa_laws(
                q=("16·16·24·32·2", "16·1·24·32·2"),
                k=("16·64·24·32·2", "16·128·8·32·2"),
                v=("16·64·8·32·2", "16·128·8·32·2"),
            ),
            *merge_laws_of_sdpa("16·24·4", "16·24·32·4", "16·8·128"),
        ),
    ),
    Setting(
        mesh="dp2cp2tp2",
        laws=(
            Law("embed", "all-reduce@tp", "step", "8·32·256·2", "8·1·256·2"),
            ring_law(1, "8·32·4·32·2"),
            gather_laws("8·64·4·32·2"),
            *merge_laws("8·12·4", "8·12·32·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "8·32·256·2", "8·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "8·32·256·2", "8·1·256·2"),
            *sample_laws("2·8·2", "2·8·4"),
            spread_law("8·4"),
            *join_laws(
                q=("8·64·24·32·2", "8·1·24·32·2"),
                k=("8·64·24·32·2", "8·256·8·32·2"),
                v=("8·64·8·32·2", "8·256·8·32·2"),
            ),
        ),
    ),
    Setting(
        mesh="pp2cp2tp2",
        layers=3,
        ticks=5,
        laws=(
            Law("embed", "all-reduce@tp", "step", "4·4·32·256·2", "4·4·1·256·2"),
            Law("pipeline.shift", "collective-permute@pp", "tick", "4·32·256·2", "4·1·256·2"),
            ring_law(1, "4·32·4·32·2"),
            gather_laws("4·64·4·32·2"),
            *merge_laws("4·12·4", "4·12·32·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "4·32·256·2", "4·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "4·32·256·2", "4·1·256·2"),
            *sample_laws("2·16·2", "2·16·4"),
            collect_law("16·4"),
            spread_law("16·4"),
            *join_laws(
                q=("4·64·24·32·2", "4·1·24·32·2"),
                k=("4·64·24·32·2", "4·256·8·32·2"),
                v=("4·64·8·32·2", "4·256·8·32·2"),
            ),
        ),
    ),
    Setting(
        mesh="cp2ep4",
        model=MOE,
        laws=(
            ring_law(1, "4·32·8·32·2"),
            gather_laws("4·64·8·32·2"),
            *merge_laws("4·24·4", "4·24·32·2"),
            *merge_laws_of_sdpa("4·24·4", "4·24·32·4", "4·8·128", note=""),
            Law("layer.moe.dispatch", "all-to-all@ep", "layer", "4·8·10·256·2", "1·8·2·256·2"),
            Law("layer.moe.combine", "all-to-all@ep", "layer", "4·8·10·256·2", "1·8·2·256·2"),
            spread_law("4·4"),
        ),
    ),
    Setting(
        mesh="cp2tp4+sp",
        seq=128,
        laws=(
            Law("embed", "reduce-scatter@tp", "step", "16·64·256·2", None),
            Law("embed", "all-reduce@tp", "step", None, "16·1·256·2", note=SMALL),
            Law("layer.attention.qkv", "all-gather@tp", "layer", "16·64·256·2", "16·1·256·2"),
            ring_law(1, "16·64·2·32·2"),
            gather_laws("16·128·2·32·2"),
            *merge_laws("16·6·4", "16·6·32·2"),
            Law("layer.attention.out", "reduce-scatter@tp", "layer", "16·64·256·2", None),
            Law("layer.attention.out", "all-reduce@tp", "layer", None, "16·1·256·2", note=SMALL),
            Law("layer.mlp.up", "all-gather@tp", "layer", "16·64·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "reduce-scatter@tp", "layer", "16·64·256·2", None),
            Law("layer.mlp.down", "all-reduce@tp", "layer", None, "16·1·256·2", note=SMALL),
            Law("head", "all-reduce@tp", "step", "16·256·2", None, note=MASKED),
            Law("head", "all-gather@tp", "step", None, "16·256·2"),
            *sample_laws("4·16·2", "4·16·4"),
            spread_law("16·4"),
            *sdpa_laws(
                q=("16·64·24·32·2", "16·1·24·32·2"),
                k=("16·128·24·32·2", "16·128·8·32·2"),
                v=("16·128·8·32·2", "16·128·8·32·2"),
            ),
            *merge_laws_of_sdpa("16·24·4", "16·24·32·4", "16·8·128"),
        ),
    ),
    Setting(
        mesh="cp2tp4",
        model=replace(DENSE, name="2-kv-heads", family="qwen3", kv_heads=2, qk_norm=True),
        laws=(
            Law("embed", "all-reduce@tp", "step", "16·32·256·2", "16·1·256·2"),
            # 2 KV heads stand as 4, one for each shard: the copies go around the ring, too.
            ring_law(1, "16·32·1·32·2"),
            gather_laws("16·64·1·32·2"),
            *merge_laws("16·6·4", "16·6·32·2"),
            Law("layer.attention.out", "all-reduce@tp", "layer", "16·32·256·2", "16·1·256·2"),
            Law("layer.mlp.down", "all-reduce@tp", "layer", "16·32·256·2", "16·1·256·2"),
            *sample_laws("4·16·2", "4·16·4"),
            spread_law("16·4"),
            *sdpa_laws(
                q=("16·32·24·32·2", "16·1·24·32·2"),
                k=("16·64·24·32·2", "16·128·4·32·2"),
                v=("16·64·4·32·2", "16·128·4·32·2"),
            ),
            *merge_laws_of_sdpa("16·24·4", "16·24·32·4", "16·4·128"),
        ),
    ),
)
