"""The words of a report, each in a sentence: the page's glossary."""

GLOSSARY: tuple[tuple[str, str], ...] = (
    ("inherent", "Bytes that serve the plan, up to what its reference algorithm moves."),
    ("inflated", "Bytes that serve the plan, beyond what its reference algorithm moves."),
    ("induced", "Bytes that serve nothing in the plan."),
    ("the plan, the contract", "What the named reference algorithm of each split moves, from the sizes of the case "
     "alone. It is not a lower bound: a program may move less, and that shows as missing or unserved."),
    ("common", "Inflated and induced bytes that every arm has at the same scope and axes."),
    ("framework-induced", "An arm's inflated and induced bytes beyond the common ones, between programs that the "
     "same partitioner made."),
    ("missing, unserved", "Bytes of contract rows that nothing in the program serves; unserved counts what is left of "
     "rows that are served in part, too. A ratio with the mark ¹ is of a program that leaves some."),
    ("arm", "One framework's twin of the model: JAX (Flax NNX) or TorchXLA (PyTorch/XLA SPMD)."),
    ("cell", "How an arm's program was made and compiled. tpu is the default; tpu+gspmd has PyTorch/XLA's "
     "partitioner, tpu+einsum has attention written as einsum: controls that show what goes away with one change."),
    ("axis", "Of the mesh: dp (data), pp (pipeline stages), cp (context), ep (experts), tp (tensor)."),
    ("sequence parallelism (+sp)", "Between the blocks tp splits the tokens, too: each all-reduce becomes a "
     "reduce-scatter behind one block and an all-gather before the next."),
    ("capacity", "Places that an expert has for the tokens of one group: so many times its even share. Every place "
     "travels, taken or not; a token that finds none is dropped, and with capacity full none is."),
    ("KV copies", "Where tp is no divisor of the KV heads, each is held by several shards: the cache is larger, and "
     "only a ring over cp sends more."),
    ("scope", "The part of the model that asked for a collective."),
    ("step", "One run of the program: a prefill of the whole batch, or one decoded token for every sequence."),
    ("payload", "Bytes that one execution hands to the collective, on one device, without padding; of an "
     "all-gather those that come out."),
    ("on the wire", "What a bandwidth-optimal algorithm makes a device send for that payload, mean over the devices; "
     "times the executions it is the bytes of a step. MB is a million bytes."),
    ("tick", "One beat of the pipeline: every stage runs its layers on one microbatch, then hands on. There are "
     "m + pp − 1 of them, and in pp − 1 of them a given stage has nothing to do: the bubble."),
    ("communication, exposed, hidden", "The execution of a collective on a device, from start to done. Hidden is the "
     "part in which the same device computes, exposed the rest: time that the step waits."),
    ("modelled, measured", "Modelled: from the compiled schedule, by a model of the chip and its links. Measured: from "
     "a profile of a run. Every figure says which, and the two never mix."),
    ("all-reduce", "Sums over a group, and leaves the sum on every member: 2(n−1)/n of the payload on the wire."),
    ("all-gather", "Puts the parts of a group together on every member: (n−1)/n of the result."),
    ("reduce-scatter", "Sums over a group, and leaves each member its part: (n−1)/n of the payload."),
    ("all-to-all", "Each member sends a different part to each other: (n−1)/n of the payload."),
    ("collective-permute", "Sends from device to device in given pairs: the payload."),
    ("exact, at most, at least", "Executions are exact where loops and branches could be counted. In a branch that "
     "could not, the bytes are counted at most; a loop that could not be counted leaves its bytes out: at least."),
)  # fmt: skip
