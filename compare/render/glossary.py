"""The glossary of the page: each term of a report in a sentence."""

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("inherent", "Bytes that the plan requires: up to what its reference algorithm moves."),
    ("inflated", "Bytes of a required collective beyond what its reference algorithm moves."),
    ("induced", "Bytes of collectives that the plan does not require."),
    ("overhead", "Inflated and induced bytes together: what a program moves beyond the plan."),
    ("emitted / inherent", "All bytes of a program divided by all that the plan requires. The divisor is the plan's "
     "total, not the program's column inherent, which is smaller where bytes are missing."),
    ("count", "How often a collective runs in one step, on one device; also written 240 ×."),
    ("the plan, the contract", "The bytes that the named reference algorithm of each split moves, from the sizes of "
    "the case alone. It is not a lower bound: a program may move less, and that shows as missing or unserved."),
    ("common", "Inflated and induced bytes that every arm has at the same scope and axes."),
    ("framework-induced", "An arm's inflated and induced bytes beyond the common ones, between programs that the "
     "same partitioner made."),
    ("missing, unserved", "Missing: bytes of contract rows that no collective of the program satisfies. Unserved also "
     "counts the rest of rows that are satisfied in part. A ratio with the mark ¹ is of such a program."),
    ("arm", "One framework's twin of the model: JAX (Flax NNX) or TorchXLA (PyTorch/XLA SPMD)."),
    ("cell", "How an arm's program was written and compiled. tpu is the default; tpu+gspmd has PyTorch/XLA's "
     "partitioner, tpu+einsum has attention written as einsum: controls that show what one change removes."),
    ("axis", "A dimension of the mesh: dp (data), pp (pipeline stages), cp (context), ep (experts) or tp (tensor)."),
    ("sequence parallelism (+sp)", "Between the blocks tp splits the tokens, too: each all-reduce becomes a "
     "reduce-scatter after one block and an all-gather before the next."),
    ("capacity", "Expert capacity factor: slots of an expert for the tokens of one group, as a multiple of its even "
     "share. Every slot is sent, filled or not; a token without a slot is dropped, and full never drops one."),
    ("KV copies", "Where tp does not divide the KV heads, several shards hold each head: the cache is larger, and "
     "only a ring over cp sends more."),
    ("scope", "The part of the model that a collective belongs to."),
    ("step", "One run of the program: a prefill of the whole batch, or one decoded token for every sequence."),
    ("payload", "Bytes that one execution hands to the collective, on one device, without padding; for an "
    "all-gather, the bytes of the result."),
    ("on the wire", "Bytes that a device sends for that payload under a bandwidth-optimal algorithm, mean over the "
     "devices; times the executions, the bytes per step. MB is a million bytes."),
    ("tick", "One step of the pipeline schedule: every stage runs its layers on one microbatch, then shifts. There "
     "are m + pp − 1 ticks, and in pp − 1 of them a given stage is idle: the bubble."),
    ("communication, exposed, hidden", "The execution of a collective on a device, from start to done. Hidden is the "
     "part in which the same device computes, exposed the rest. The exposed time of inflated and induced bytes is "
     "avoidable."),
    ("modelled, measured", "Modelled: from the compiled schedule, by a model of the chip and its links. Measured: from "
     "a profile of a run. Every figure says which, and the two never mix."),
    ("all-reduce", "Sums over a group, and leaves the sum on every member: 2(n−1)/n of the payload on the wire."),
    ("all-gather", "Puts the parts of a group together on every member: (n−1)/n of the result."),
    ("reduce-scatter", "Sums over a group, and leaves each member its part: (n−1)/n of the payload."),
    ("all-to-all", "Each member sends a different part to each other: (n−1)/n of the payload."),
    ("collective-permute", "Sends from device to device in given pairs: the payload."),
    ("exact, at most, at least", "Executions are exact where loops and branches could be counted. In a branch that "
     "could not, the bytes are an upper bound (at most); a loop of unknown trip count leaves its "
     "bytes out (at least)."),
)  # fmt: skip
