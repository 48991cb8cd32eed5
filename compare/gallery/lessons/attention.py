"""Attention and its cache."""

from compare.gallery.lesson_types.lesson import (
    ADVICE,
    COMPILER,
    LAW,
    PROGRAMS,
    TORCH,
    TORCH_SHARDY,
    Alone,
    Deviation,
    Lesson,
    Move,
)

_QKV = {"q": "B S N H", "k": "B S N H", "v": "B S N H"}
_TOKEN = {"q": "B N 1 H", "k": "B N S H", "v": "B N S H"}
_DECODE = {"B": 2, "N": 8, "S": 1024, "H": 128}
_CACHE = {"B": 2, "S": 1024, "K": 8, "H": 128}
_CP = {"cp": 4}
_CONTEXT = {"B": 1, "S": 1024, "N": 4, "H": 128}

ATTENTION = (
    Lesson(
        name="attention-heads",
        title="Attention with split heads",
        mesh={"tp": 4},
        sizes={"B": 2, "S": 512, "N": 8, "H": 128},
        takes=_QKV,
        gives={"y": "B S N H"},
        story="""
Attention is two matmuls with a softmax between them, once for each head, and heads know nothing of each other. N is
in every tensor, and is never summed over: the best dim to split.

q, k and v come out of column-parallel matmuls, already split by heads. The result goes into a row-parallel one, with
the block's only all-reduce. Attention itself sends nothing.
""",
        alone=(Alone("scores", "B N S S", (None, "tp", None, None)),),
        alone_words="each device: its own heads, all positions",
        needs=(),
        rule="Split attention by heads, and it sends nothing.",
        standing=LAW,
        question="B, the batch, is also in every tensor. Why not split that?",
        answer="One does, over dp: it is as free. But there must be enough sequences, and each device then needs all "
        "weights; splitting heads splits the weights, too.",
    ),
    Lesson(
        name="attention-merged",
        title="The same, with batch and heads merged into one dim",
        mesh={"dp": 2, "tp": 2},
        sizes={"B": 4, "N": 8, "S": 256, "H": 128},
        takes={"q": "B N S H", "k": "B N S H"},
        gives={"scores": "B N S S"},
        story="""
Libraries love *batched* matmuls with one batch dim: reshape [B, N, S, H] to [B·N, S, H], multiply, reshape back. On
one device that is free, and it is what `torch.bmm` and PyTorch's own attention do inside.

But B is split over `dp` and N over `tp`. In the merged dim, device 0 has heads 0 to 3 of sequences 0 and 1: rows 0 to
3 and 8 to 11. That is no contiguous block, and no "axis splits dim" can say it. A partitioner must see through both
reshapes, or give up one of the splits.
""",
        alone=(Alone("scores", "B N S S", ("dp", "tp", None, None)),),
        alone_words="without the merge: each device its own block",
        needs=(),
        but=(
            Deviation(
                PROGRAMS,
                (
                    Move("all-gather@tp", "B·N·S·H·2/dp", "all heads of q"),
                    Move("all-gather@tp", "B·N·S·H·2/dp", "all heads of k"),
                ),
                "The partitioner keeps the split of B, the outer dim, and gives up that of N: q and k are gathered "
                "over tp, and every device multiplies all heads, twice the work.",
            ),
        ),
        rule="Do not merge two split dims: keep them apart, as einsum does.",
        standing=ADVICE,
        border="Merged for a plain matmul, as `F.linear` does, it is undone by the compiler: linear-merged.",
        question="When is the merge harmless?",
        answer="Where only the outer one (here B) is split: the merged dim is then split in the same way. Or where B "
        "is 1 on every device, so that there is nothing to merge: attention-one-sequence.",
    ),
    Lesson(
        name="attention-matmul",
        title="PyTorch's matmul of 4-D tensors: a new token and its cache",
        mesh={"tp": 4},
        sizes=_DECODE,
        takes=_TOKEN,
        gives={"y": "B N 1 H"},
        story="""
A new token's queries meet all keys in the cache, and after a softmax their `shares` meet all values. Heads are
split, and know nothing of each other.

PyTorch decomposes a matmul of 4-D tensors into `expand`, `view`, `bmm` and `view`: it is attention-merged, without a
reshape in your source. In [B·N, S, H] head n of sequence b is row b·8 + n, so device 0, with heads 0 and 1, has rows
0, 1, 8 and 9 of 16: no contiguous block. `F.scaled_dot_product_attention` is made of the same two matmuls.

JAX's matmul, and both `einsum`s, become one `dot` with *two* batch dims, B and N: nothing is merged.
""",
        alone=(Alone("y", "B N 1 H", (None, "tp", None, None)),),
        alone_words="each device: its own heads",
        needs=(),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-gather@tp", "B·N·1·H·2", "all heads of q"),
                    Move("all-gather@tp", "B·N·S·H·2", "all keys in the cache"),
                    Move("all-gather@tp", "B·N·S·H·2", "all values in the cache"),
                ),
                "The whole cache is gathered for each new token, and every device multiplies all heads. Both "
                "partitioners do so: the dims are merged before either sees the program. torchax, which is PyTorch "
                "traced by JAX, takes the same decomposition and emits the same gathers "
                "(docs/surprises/pytorch_matmul_torchax.py).",
            ),
        ),
        rule="In PyTorch, write attention over split heads as `einsum`: a 4-D matmul merges batch and heads.",
        standing=ADVICE,
        border="Nothing is sent by `einsum` (attention-heads), with one sequence on each device "
        "(attention-one-sequence), for one sequence at a time (attention-per-sequence), or with the heads before the "
        "batch (attention-heads-first).",
        question="With grouped-query attention K and V have fewer heads. Is it enough not to repeat them for the "
        "queries of a group?",
        answer="No: the gathers are smaller, by the size of a group, but batch and KV heads are merged as before.",
    ),
    Lesson(
        name="attention-one-sequence",
        title="Batch and heads merged, with one sequence on each device",
        mesh={"dp": 2, "tp": 2},
        sizes={"B": 2, "N": 8, "S": 256, "H": 128},
        takes={"q": "B N S H", "k": "B N S H"},
        gives={"scores": "B N S S"},
        story="""
The program of attention-merged, line by line; only B is 2 instead of 4, so that each device has one sequence.

Now device 0 has heads 0 to 3 of sequence 0: rows 0 to 3 of the merged dim. Device 1 has rows 4 to 7, and so on: four
contiguous blocks, in the order of the devices. That can be said: dp and tp together split B·N.
""",
        alone=(Alone("scores", "B N S S", ("dp", "tp", None, None)),),
        alone_words="each device: four heads of its one sequence",
        needs=(),
        rule="Merging two split dims sends nothing where the outer one has size 1 on each device.",
        standing=COMPILER,
        border="B = 2 over dp = 2: nothing. B = 4, in attention-merged: two all-gathers.",
        question="A program was measured with one sequence on each device. Then the batch doubles. What happens on the "
        "wire?",
        answer="It goes from nothing to all of q and k, without a change of the source: attention-merged. Measure with "
        "the batch that you serve.",
    ),
    Lesson(
        name="attention-per-sequence",
        title="A matmul for each sequence",
        mesh={"tp": 4},
        sizes=_DECODE,
        takes=_TOKEN,
        gives={"y": "B N 1 H"},
        story="""
The token and the cache of attention-matmul, one sequence at a time. `q[i]` and `k[i]` are 3-D tensors,
[N, 1, H] and [N, S, H], and their product is a `bmm` whose only batch dim is N: it stays split over tp.

B is whole here. If dp splits it, `q[i]` picks from a split dim; reshape to [dp, B/dp, …] first, and pick from the
second.
""",
        alone=(Alone("y", "B N 1 H", (None, "tp", None, None)),),
        alone_words="each device: its own heads",
        needs=(),
        rule="A batched matmul whose only batch dim is the heads keeps their split.",
        standing=COMPILER,
        border="3-D tensors, once for each sequence: nothing. 4-D tensors, in attention-matmul: the whole cache, from "
        "PyTorch.",
        question="What does it cost?",
        answer="Two matmuls for each sequence instead of two: the program grows with the batch, and its matmuls are "
        "small.",
    ),
    Lesson(
        name="attention-heads-first",
        title="Merged, with the split dims first",
        mesh={"dp": 2, "tp": 2},
        sizes={"B": 4, "N": 8, "S": 256, "H": 128},
        takes={"q": "B N S H", "k": "B N S H"},
        gives={"scores": "B N S S"},
        story="""
attention-merged once more, with two sequences on each device. A merged dim can only be cut into contiguous blocks, so
make each device's part one block: cut B into [dp, B/dp], and put the heads between, [dp, N, B/dp].

Merged, head n of sequence 2·d + b is row (d·8 + n)·2 + b of 32. Device 0, with d = 0 and heads 0 to 3, has rows 0 to
7; device 1 has rows 8 to 15. The reshape and the transpose move data within a device only.
""",
        alone=(Alone("scores", "B N S S", ("dp", "tp", None, None)),),
        alone_words="each device: its own block",
        needs=(),
        rule="If dims must be merged, put the split ones first.",
        standing=COMPILER,
        border="[dp, N, B/dp]: nothing. [B, N], in attention-merged: two all-gathers.",
        question="Why is [N, B] not enough here?",
        answer="Without dp it is. With dp it has the old problem in the other order: B, now the inner dim, is split, "
        "and a device's sequences lie apart.",
    ),
    Lesson(
        name="gqa-few-heads",
        title="More devices than KV heads",
        mesh={"tp": 4},
        sizes={"T": 256, "D": 1024, "A": 1024, "C": 256, "N": 8, "S": 256},
        takes={"x": "T D", "wq": "D A", "wk": "D C"},
        gives={"scores": "S N T"},
        story="""
In grouped-query attention many query heads share few key heads: here 8 share 2, of 128 numbers each. The weights of
the keys, [D, 2·128], are split by columns over 4 devices, as those of the queries are. So each device makes *half* a
key head.

A device's two query heads need one whole key head. It has one half, and its neighbour the other. So halves must be
exchanged, in pairs: an all-gather in groups of two, {0, 1} and {2, 3}, which are *part* of an axis.
""",
        alone=(Alone("k", "T C", (None, "tp")),),
        alone_words="half a key head each: 256 columns for 2 heads, cut in 4",
        needs=(Move("all-gather@tp:sub", "T·C·2/2", "a whole key head, in each pair of devices", group=2),),
        rule="With more devices than KV heads, copy the KV heads' weights instead of cutting heads in pieces.",
        standing=ADVICE,
        question="What does the copy cost?",
        answer="Memory: each KV head's weights, and its part of the cache, are on 2 devices. Nothing on the wire.",
    ),
    Lesson(
        name="cache-write-heads",
        title="Writing to a cache that is split by heads",
        mesh={"tp": 4},
        sizes=_CACHE,
        takes={"cache": "B S K H", "new": "B 1 K H", "at": ""},
        gives={"y": "B S K H"},
        dtypes={"at": "s32"},
        story="""
When a model writes text, keys and values of earlier tokens are kept in a *cache*, and each new token adds one
position. The position is only known when the program runs.

If the heads are split, every device writes its own heads, all at the same position of its own part. No one has to ask
where the position is.
""",
        alone=(Alone("y", "B S K H", (None, None, "tp", None)),),
        alone_words="each device writes its own heads",
        needs=(),
        rule="An update along a dim that is whole is free, however the other dims are split.",
        standing=LAW,
        question="Why is the position a tensor, and not a number in the code?",
        answer="A number in the code is part of the program: each new token would be a new program, and a new compile.",
    ),
    Lesson(
        name="cache-write-positions",
        title="Writing to a cache that is split by positions",
        mesh=_CP,
        sizes=_CACHE,
        takes={"cache": "B S K H", "new": "B 1 K H", "at": ""},
        gives={"y": "B S K H"},
        dtypes={"at": "s32"},
        story="""
A long text may not fit on one device, so its positions are split (`cp`, context parallelism). Now the new token's
position is on one device only, and which one it is, is only known when the program runs.

Nothing needs to be sent: every device has the new keys. Each asks "is this position mine?", writes if it is, and else
keeps what it has. A partitioner can do just that. It can also fail to see it, and gather the cache.
""",
        alone=(Alone("y", "B S K H", (None, "cp", None, None)),),
        alone_words='each device asks: "is this position mine?"',
        needs=(),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (Move("all-gather@cp", "B·S·K·H·2", "the whole cache"),),
                "`index_copy` becomes a scatter along the split dim, and the partitioner brings the whole cache "
                "together to do it, for each new token. The JAX program updates a slice, for which the rule is known.",
            ),
        ),
        rule="An update at an unknown position of a split dim needs no data of others: each device asks whether the "
        "place is its own.",
        standing=LAW,
        question="How could you write it so that no partitioner can misunderstand?",
        answer="As `where((arange(S) == at)[:, None, None], new, cache)`: an operation on each number alone. It "
        "touches the whole cache, though, which a real update in place does not.",
    ),
    Lesson(
        name="cache-read-positions",
        title="Attention over a cache that is split by positions",
        mesh=_CP,
        sizes={"B": 2, "S": 1024, "N": 8, "H": 128},
        takes={"q": "B N H", "k": "B S N H", "v": "B S N H"},
        gives={"y": "B N H"},
        story="""
One new token attends to a cache whose positions are split. Each device scores its own positions. Then comes a softmax
over a split dim, which you know: a maximum and a sum, two small all-reduces. And then a matmul whose contracting dim
is S, the positions: a partial sum, and a third all-reduce, of the result.

So three collectives, and not one byte of the cache is sent. The larger the cache, the better the deal.
""",
        alone=(Alone("y", "B N H", (None, None, None), partial="cp"),),
        alone_words="each device has a maximum, a sum and a partial y of its own positions",
        needs=(
            Move("all-reduce@cp", "B·N·2", "largest scores, bf16"),
            Move("all-reduce@cp", "B·N·4", "sums of exps, float32"),
            Move("all-reduce@cp", "B·N·H·2", "partial sums of y"),
        ),
        rule="To read a cache that is split by positions, merge small results; never move the cache.",
        standing=ADVICE,
        question="What grows with the length of the text: the bytes on the wire, or the memory?",
        answer="The memory: each device has S/4 positions. On the wire nothing: no formula has an S.",
    ),
    Lesson(
        name="context-gather",
        title="A long prompt, split by positions: gather keys and values",
        mesh=_CP,
        sizes=_CONTEXT,
        takes=_QKV,
        gives={"y": "B S N H"},
        story="""
Reading a whole prompt, each position attends to all others. Positions are split over `cp`: each device has a quarter
of the queries, of the keys and of the values. A query needs all keys.

The simple way: gather keys and values, and let each device compute its own queries' rows. Llama 3 was trained like
this (arXiv 2407.21783). The price is memory: each device holds all keys and values for a while.
""",
        alone=(Alone("k", "B S N H", (None, "cp", None, None)),),
        alone_words="own queries, own keys: a quarter of what a query must see",
        needs=(Move("all-gather@cp", "B·S·N·H·2", "keys"), Move("all-gather@cp", "B·S·N·H·2", "values")),
        rule="With split positions the keys and values must come to the queries: two all-gathers.",
        standing=LAW,
        question="Why are keys and values gathered, and not the queries?",
        answer="Gathered queries would give partial results for all positions, which would then have to be summed up "
        "as well. And with grouped-query attention keys and values are several times smaller than queries.",
    ),
    Lesson(
        name="context-ring",
        title="The same as a ring: keys and values go round",
        mesh=_CP,
        sizes=_CONTEXT,
        takes=_QKV,
        gives={"y": "B S N H"},
        story="""
No device needs all keys *at once*. In ring attention (arXiv 2310.01889) each device works on the keys that it has,
then hands them to the next device and gets those of the one before: a **collective-permute**. After three hops
everybody has seen everything, and never held much more than a quarter.

The bytes are those of the all-gather: three hops of a quarter. The ring saves memory, and its hops can run while the
device computes. (Scores are not scaled here, and no maximum is kept: that would only hide the idea.)

This can't be written as "this tensor is split like that": it says what each device does. In JAX it is `shard_map`,
inside which every array is a device's own part, and every collective is written by hand.
""",
        alone=(Alone("k", "B S N H", (None, "cp", None, None)),),
        alone_words="own queries against own keys; then the keys move on",
        needs=(
            Move("collective-permute@cp", "B·S·N·H·2/cp", "keys, to the next device", times=3),
            Move("collective-permute@cp", "B·S·N·H·2/cp", "values, to the next device", times=3),
        ),
        rule="A ring moves what an all-gather moves, a part at a time: n − 1 permutes of 1/n.",
        standing=LAW,
        question="Why three hops, and not four, on four devices?",
        answer="The fourth would bring a device its own keys again. Some ring implementations do send them; a report "
        "of wirediff then names the cause `wrap`.",
        absent={
            "torchxla": "PyTorch/XLA's SPMD has no way to write a permute by hand (`xm.collective_permute` works in "
            "replica mode only): its programs gather, as in the lesson before."
        },
    ),
    Lesson(
        name="window-masked",
        title="A sliding window, as a mask over all positions",
        mesh=_CP,
        sizes=_CONTEXT,
        takes=_QKV,
        gives={"y": "B S N H"},
        story="""
Each position attends to itself and the 127 before it. Positions are split over `cp`, 256 a device. So a device needs
its own keys and values, and the last 127 of the device before: a **halo**.

Written as a mask over all scores, the program multiplies all queries by all keys, and a mask is numbers like any
other. No partitioner sees that most of them count for nothing: the positions are gathered, as in context-gather.
""",
        alone=(Alone("k", "B S N H", (None, "cp", None, None)),),
        alone_words="own positions; 127 of the device before are missing",
        needs=(
            Move("collective-permute@cp", "B·127·N·H·2", "the last keys, to the next device", senders=3),
            Move("collective-permute@cp", "B·127·N·H·2", "the last values, to the next device", senders=3),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-gather@cp", "B·S·N·H·2", "keys"), Move("all-gather@cp", "B·S·N·H·2", "values")),
                "All keys and all values, for scores that the mask throws away.",
            ),
        ),
        rule="A mask saves no communication: a window written as a mask gathers all positions.",
        standing=COMPILER,
        border="As blocks, in window-blocks: two permutes of a halo. Compiled with 1,024 positions on four devices, "
        "and a window of 128: both keys and values, whole.",
        question="Does a causal mask save half of the gather?",
        answer="No, for the same reason.",
    ),
    Lesson(
        name="window-blocks",
        title="A sliding window, in blocks: a halo",
        mesh=_CP,
        sizes=_CONTEXT,
        takes=_QKV,
        gives={"y": "B S N H"},
        story="""
Cut the positions into blocks as long as the window, 128. A query's window lies in its own block and the one before, so
each block attends to two. The blocks are split as the positions are: two a device.

"The one before" is a shift along a split dim, as in pipeline-shift: one block crosses each border between devices.
One permute of keys, one of values.
""",
        alone=(Alone("k", "B S N H", (None, "cp", None, None)),),
        alone_words="own blocks; one of the device before is missing",
        needs=(
            Move("collective-permute@cp", "B·128·N·H·2", "a block of keys, to the next device", senders=3),
            Move("collective-permute@cp", "B·128·N·H·2", "a block of values, to the next device", senders=3),
        ),
        rule="Write a window over split positions as blocks and a shift: only a halo travels, whatever the length.",
        standing=ADVICE,
        border="As a mask, in window-masked: all positions. A shift by a pad and a cut along the positions, without "
        "blocks: one permute of what crosses the border. A convolution along them (`conv_general_dilated`, width "
        "4): one permute of 3 positions; the same as four shifts that are added: five permutes.",
        question="The prompt is four times as long. What is sent?",
        answer="The same two permutes of one block: no formula has an S.",
    ),
)
