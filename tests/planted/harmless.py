"""Changes that cost nothing: pins that only say what follows, and other ways to write the same."""

from tests.planted.defect import CP_TP, DP_TP, EP_TP, TP_PP, Defect, Setting, Site
from tests.planted.pins import READ_JAX, READ_TORCH
from tests.planted.weights import DOWN_JAX


def _harmless(
    name: str, what: str, *, setting: Setting = DP_TP, phase: str = "prefill", **sites: tuple[str, str, str]
) -> Defect:
    return Defect(
        name=name,
        chapter="Harmless",
        what=what,
        setting=setting,
        phase=phase,
        sites={arm: Site(*words) for arm, words in sites.items()},
    )


DEFECTS = (
    _harmless(
        "no-pin-of-sums", "what a block adds to the stream is not pinned",
        jax=("sharding/layout.py", "return self.place(x, STREAM)", "return x"),
        torchxla=("sharding/layout.py", "return self.place(x, STREAM)", "return x"),
    ),
    _harmless(
        "no-pin-of-mixed", "what attention gives is not pinned",
        jax=("decoder/attention.py", "attn_out = layout.place(attn_out, HEADS)", "attn_out = attn_out * 1"),
        torchxla=("decoder/attention.py", "attn_out = layout.place(attn_out, HEADS)", "attn_out = attn_out * 1"),
    ),
    _harmless(
        "no-pin-of-hidden", "the hidden activations are not pinned",
        jax=("decoder/layers.py", 'hidden = layout.place(jax.nn.silu(gate) * up, f"stages batch seq {self.ffn}")',
             "hidden = jax.nn.silu(gate) * up"),
        torchxla=("decoder/layers.py", 'hidden = layout.place(F.silu(gate) * up, f"stages batch seq {self.ffn}")',
                  "hidden = F.silu(gate) * up"),
    ),
    _harmless(
        "no-pin-of-logits", "the logits are not pinned",
        jax=("decoder/model.py",
             'return layout.place(jnp.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")',
             'return jnp.einsum("mzbpd,dv->mzbpv", x, table)'),
        torchxla=("decoder/model.py",
                  'return layout.place(torch.einsum("mzbpd,dv->mzbpv", x, table), "slots stages batch parts vocab")',
                  'return torch.einsum("mzbpd,dv->mzbpv", x, table)'),
    ),
    _harmless(
        "no-pin-of-state", "the state of a tick is not pinned", setting=TP_PP,
        jax=("decoder/pipeline.py", "state = layout.place(state, STREAM)", "state = state * 1"),
        torchxla=("decoder/pipeline.py", "state = layout.place(state, STREAM)", "state = state * 1"),
    ),
    _harmless(
        "no-pin-of-read", "what is read from the cache is not pinned", phase="decode",
        jax=("decoder/cache.py", READ_JAX[1], "return keys"),
        torchxla=("decoder/cache.py", READ_TORCH[1], "return layer.unflatten(-1, like.shape[3:])"),
    ),
    _harmless(
        "pinned-twice", "the hidden activations are pinned twice",
        jax=("decoder/layers.py", 'hidden = layout.place(jax.nn.silu(gate) * up, f"stages batch seq {self.ffn}")',
             'hidden = layout.place(layout.place(jax.nn.silu(gate), f"stages batch seq {self.ffn}") * up, '
             'f"stages batch seq {self.ffn}")'),
    ),
    _harmless(
        "gelu", "another activation function",
        jax=("decoder/layers.py", 'hidden = layout.place(jax.nn.silu(gate) * up, f"stages batch seq {self.ffn}")',
             'hidden = layout.place(jax.nn.gelu(gate) * up, f"stages batch seq {self.ffn}")'),
        torchxla=("decoder/layers.py", 'hidden = layout.place(F.silu(gate) * up, f"stages batch seq {self.ffn}")',
                  'hidden = layout.place(F.gelu(gate) * up, f"stages batch seq {self.ffn}")'),
    ),
    _harmless(
        "norm-by-division", "the norm divides by a square root", setting=EP_TP,
        jax=("decoder/norm.py",
             "normed = (wide * jax.lax.rsqrt(mean + self.layout.case.model.norm_eps)).astype(x.dtype)",
             "normed = (wide / jnp.sqrt(mean + self.layout.case.model.norm_eps)).astype(x.dtype)"),
        torchxla=("decoder/norm.py",
                  "normed = (wide * torch.rsqrt(mean + self.layout.case.model.norm_eps)).to(x.dtype)",
                  "normed = (wide / torch.sqrt(mean + self.layout.case.model.norm_eps)).to(x.dtype)"),
    ),
    _harmless(
        "rope-in-the-model-s-dtype", "positions are turned in bf16", setting=CP_TP,
        jax=("decoder/attention.py", "left, right = jnp.split(x.astype(jnp.float32), 2, axis=-1)",
             "left, right = jnp.split(x, 2, axis=-1)"),
        torchxla=("decoder/attention.py",
                  "left, right = x.float().chunk(2, dim=-1)", "left, right = x.chunk(2, dim=-1)"),
    ),
    _harmless(
        "residual-first", "the residual is added in another order", setting=TP_PP, phase="decode",
        jax=("decoder/layers.py", "x = x + attn_out", "x = attn_out + x"),
        torchxla=("decoder/layers.py", "x = x + attn_out", "x = attn_out + x"),
    ),
    _harmless(
        "scores-scaled-first", "queries are scaled before the scores are made", setting=CP_TP, phase="decode",
        jax=("decoder/attention.py", "groups = q.reshape(*q.shape[:3], k.shape[3], -1, q.shape[4])",
             "groups = (q * 2).reshape(*q.shape[:3], k.shape[3], -1, q.shape[4])"),
        torchxla=("decoder/attention.py", "groups = q.unflatten(3, (k.shape[3], -1))",
                  "groups = (q * 2).unflatten(3, (k.shape[3], -1))"),
    ),
    _harmless(
        "wide-sums", "what a block adds to the stream is made wider and narrow again",
        jax=("sharding/layout.py", "return self.place(x, STREAM)",
             "return self.place(x.astype(jnp.float32), STREAM).astype(x.dtype)"),
    ),
    _harmless(
        "down-whole", "`mlp.down` is pinned whole; the compiler takes gather and slice away",
        jax=("decoder/layers.py",
             DOWN_JAX[1],
             'out = jnp.einsum("zbsf,zfd->zbsd", hidden, layout.place(self.down[...], "stages _ embed"))'),
    ),
    _harmless(
        "hidden-whole-jax", "the hidden activations are pinned whole; here the compiler takes gather and slice away",
        jax=("decoder/layers.py", 'hidden = layout.place(jax.nn.silu(gate) * up, f"stages batch seq {self.ffn}")',
             'hidden = layout.place(jax.nn.silu(gate) * up, "stages batch seq _")'),
    ),
    _harmless(
        "keys-and-values-whole-jax", "keys and values are pinned whole; here, too, gathers and slices are taken away",
        jax=("decoder/attention.py", 'KV_HEADS = "stages batch seq kv_heads head_dim"',
             'KV_HEADS = "stages batch seq _ head_dim"'),
    ),
    _harmless(
        "stream-whole-over-dp", "the pin of what a block adds names no axis for the batch; the next pin does",
        jax=("sharding/layout.py", "return self.place(x, STREAM)", 'return self.place(x, "stages _ stream_seq embed")'),
        torchxla=("sharding/layout.py",
                  "return self.place(x, STREAM)", 'return self.place(x, "stages _ stream_seq embed")'),
    ),
    _harmless(
        "queries-whole-over-cp", "the queries are gathered with keys and values over cp; that gather is taken away",
        setting=CP_TP,
        torchxla=("decoder/attention.py",
                  'k, v = (layout.place(each, KV_HEADS.replace("seq", "_")) for each in (k, v))',
                  'q, k, v = (layout.place(each, KV_HEADS.replace("seq", "_")) for each in (q, k, v))'),
    ),
    _harmless(
        "wide-ring", "keys and values go around the ring in float32; libtpu sends them before it widens them",
        setting=CP_TP,
        jax=("decoder/attention.py",
             "return layout.ring(partial(_ring, layout.case.mesh.cp), takes=(HEADS, KV_HEADS, KV_HEADS), gives=HEADS)"
             "(q, k, v)",
             "return layout.ring(partial(_ring, layout.case.mesh.cp), takes=(HEADS, KV_HEADS, KV_HEADS), gives=HEADS)"
             "(q, k.astype(jnp.float32), v.astype(jnp.float32))"),
    ),
    _harmless(
        "no-pin-of-shift", "the shifted state is pinned once, not twice", setting=TP_PP,
        torchxla=("sharding/layout.py",
                  "moved = torch.where(first[:, None, None, None], taken, self.place(moved, STREAM))",
                  "moved = torch.where(first[:, None, None, None], taken, moved)"),
        jax=("sharding/layout.py", "moved = jnp.where(first[:, None, None, None], taken, self.place(moved, STREAM))",
             "moved = jnp.where(first[:, None, None, None], taken, moved)"),
    ),
)  # fmt: skip
