"""Caches of many sequences: a place of each, pages, a window that moves on, and all layers' in one array."""

from compare.gallery.lesson_types.lesson import (
    ADVICE,
    COMPILER,
    LAW,
    SHARDY,
    TORCH,
    TORCH_SHARDY,
    Alone,
    Deviation,
    Lesson,
    Move,
)

_DP, _CP, _TP = {"dp": 4}, {"cp": 4}, {"tp": 4}
_ROWS = {"B": 8, "S": 512, "K": 8, "H": 128}
_POOL = {"P": 64, "S": 16, "W": 1024, "B": 8, "M": 4}
_REPLICAS = {"R": 4, "P": 16, "S": 128, "W": 1024, "M": 8}
_LOOP = {"L": 4, "B": 8, "S": 1024, "K": 8, "G": 2, "H": 128, "W": 1024}
_ROW_DTYPES = {"at": "s32"}

CACHES = (
    Lesson(
        name="rows-read",
        title="One position of each sequence",
        mesh=_DP,
        sizes={"B": 8, "S": 512, "D": 1024},
        takes={"x": "B S D", "at": "B"},
        gives={"y": "B D"},
        dtypes=_ROW_DTYPES,
        story="""
`x[arange(B), at]`: each sequence ends at another position, and of each its last one is wanted. Sequences are split
over `dp`, and so are their positions. Device 0 has sequences 0 and 1, and all their positions: it has what it needs.

But `arange(B)` is a list of all sequences like any other. Nothing in the program says that row b is picked by the
b-th number. A partitioner must see that the list is 0, 1, 2 … and split along with x. If it does not, it looks rows
up in a split table, as in embedding-ids.
""",
        alone=(Alone("y", "B D", ("dp", None)),),
        alone_words="own sequences, own positions",
        needs=(),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-gather@dp", "2·B·4", "sequence and position of each row"),
                    Move("all-reduce@dp", "B·D·2", "the rows, and zeros"),
                ),
                "The indices become one list of pairs (sequence, position), whole on every device, and each of them "
                "looks up what it has. `torch.gather` along S, whose first dim is the sequences', is free.",
            ),
        ),
        rule="A read at a position of each sequence is free over the axis of the sequences, if the sequence's own "
        "number is a batch dim of the program: `take_along_axis`, `torch.gather`, `vmap`.",
        standing=ADVICE,
        border="In JAX `x[arange(B), at]`, `take_along_axis` and a dynamic slice under `vmap` are free, with `at` "
        "split or whole; in PyTorch `torch.gather` and `take_along_dim` are, and `x[arange(B), at]` gathers. "
        "With S split JAX all-reduces B·D numbers in all three forms. A single position for all sequences is "
        "read-traced.",
        question="S is split instead of B. What is sent?",
        answer="One all-reduce of B·D numbers, in JAX in each of its forms: rows that a device has, and zeros, as in "
        "read-traced.",
    ),
    Lesson(
        name="rows-write",
        title="Writing one position of each sequence",
        mesh=_DP,
        sizes=_ROWS,
        takes={"cache": "B S K H", "new": "B K H", "at": "B"},
        gives={"y": "B S K H"},
        dtypes=_ROW_DTYPES,
        story="""
A server's sequences have different lengths, so each writes its new token at a position of its own:
`cache.at[arange(B), at].set(new)`. Sequences are split; a device has the cache, the token and the position of each of
its own.

It is rows-read the other way round, and the same question: is it seen that the list of sequences is split as the
cache is? If not, every device gets all tokens and all positions, and writes those that are its own.
""",
        alone=(Alone("y", "B S K H", ("dp", None, None, None)),),
        alone_words="own sequences, own tokens",
        needs=(),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-gather@dp", "2·B·4", "sequence and position of each token"),
                    Move("all-gather@dp", "B·K·H·2", "all tokens"),
                ),
                "`index_put` makes one list of pairs (sequence, position); it and the tokens go to every device.",
            ),
        ),
        rule="A write at a position of each sequence is free in JAX; PyTorch's `index_put` gathers positions and "
        "tokens, never the cache.",
        standing=COMPILER,
        border="In JAX `.at[arange(B), at].set` and `dynamic_update_slice` under `vmap` are free, over sequences, "
        "heads, or positions. In PyTorch `scatter` gathers tokens and positions as `index_put` does. With "
        "heads split instead of sequences `index_put` is free; as a mask, rows-write-masked, it is free with "
        "either.",
        question="Does it get worse with a longer cache?",
        answer="No: what travels has no S. It is one token of each sequence, in every layer.",
    ),
    Lesson(
        name="rows-write-masked",
        title="The same write, as a mask",
        mesh=_DP,
        sizes=_ROWS,
        takes={"cache": "B S K H", "new": "B K H", "at": "B"},
        gives={"y": "B S K H"},
        dtypes=_ROW_DTYPES,
        story="""
`where(arange(S) == at[:, None], new, cache)`. Each number of the result is made of the numbers at the same place: an
elementwise operation. Whatever splits the cache splits it too, and there is no place to look for.

The price is memory traffic: the whole cache is read and written, where a scatter touches one position of each
sequence.
""",
        alone=(Alone("y", "B S K H", ("dp", None, None, None)),),
        alone_words="own sequences, own tokens",
        needs=(),
        rule="A write by a mask is elementwise: free however the cache is split, in every framework.",
        standing=LAW,
        border="Compiled in JAX with sequences, heads, sequences and heads, or positions split: nothing is sent. An "
        "index instead of the mask is rows-write.",
        question="And if positions are split, too?",
        answer="Free as well: each device compares `at` with the positions that it has.",
    ),
    Lesson(
        name="pages-read",
        title="A paged cache, one pool for all",
        mesh=_DP,
        sizes=_POOL,
        takes={"pages": "P S W", "table": "B M"},
        gives={"y": "B M S W"},
        dtypes={"table": "s32"},
        story="""
A paged cache is a pool of P pages with S positions each, and a table says which pages a sequence has. Split the pool
over `dp`, and the sequences too. The pages of device 0's sequences can be anywhere in the pool.

So it is the lookup of embedding-ids, with a page for a row: the table is gathered, each device puts in the pages that
it has, zeros for the others, and a reduce-scatter brings each sequence's pages to its device.
""",
        alone=(Alone("y", "B M S W", (None, None, None, None), partial="dp"),),
        alone_words="with the whole table at hand: own pages, zeros elsewhere",
        needs=(
            Move("all-gather@dp", "B·M·4", "the table"),
            Move("reduce-scatter@dp", "B·M·S·W·2", "found pages, and zeros"),
        ),
        rule="A pool of pages split over the axis of the sequences sends all pages that are read, at every step.",
        standing=COMPILER,
        border="Compiled with P = 64, S = 128, W = 1,024: 8 and 32 pages read are reduce-scattered; 64, as many as the "
        "pool has, and the pool is gathered instead, P·S·W·2 (embedding-ids has the same border). If tables and "
        "results are whole, what was found is all-reduced. With the heads of the pages split instead of the pages: "
        "nothing. With a pool for each device, pages-replicas: nothing.",
        question="What does a paged cache cost whose heads are split, and whose pages are whole?",
        answer="Nothing: each device reads its own heads of any page.",
    ),
    Lesson(
        name="pages-write",
        title="A token into a page of one pool",
        mesh=_DP,
        sizes=_POOL,
        takes={"pages": "P S W", "new": "B W", "page": "B", "slot": "B"},
        gives={"y": "P S W"},
        dtypes={"page": "s32", "slot": "s32"},
        story="""
The write into the same pool: each sequence's token goes to a page and a slot in it. The page may be any device's.

A token must reach the device that has its page. Nobody knows which when the program is compiled, so all get all
tokens, with their places, and each device writes what is its own. This is small: one token of each sequence.
""",
        alone=(Alone("new", "B W", ("dp", None)),),
        alone_words="own tokens, for pages that may be anybody's",
        needs=(
            Move("all-gather@dp", "2·B·4", "page and slot of each token"),
            Move("all-gather@dp", "B·W·2", "the tokens"),
        ),
        rule="A write into a pool of pages gathers the tokens and their places, never the pages.",
        standing=COMPILER,
        border="With tokens and places whole: nothing. With heads split, and pages whole: nothing. With a dim for the "
        "replicas, pages-replicas-write: nothing in JAX.",
        question="The tokens are whole on all devices, and so are page and slot. What is sent?",
        answer="Nothing: each device writes what is its own.",
    ),
    Lesson(
        name="pages-replicas",
        title="A pool of pages for each device",
        mesh=_DP,
        sizes=_REPLICAS,
        takes={"pages": "R P S W", "table": "R M"},
        gives={"y": "R M S W"},
        dtypes={"table": "s32"},
        story="""
Give the pool a dim for the replicas, [R, P, …], split over `dp`, and let the table hold numbers *within* a replica's
own pool. Now no page of another device can be meant, and the program says so: R is a batch dim of the lookup.

In JAX that is `vmap` over R. In PyTorch it is `torch.gather` along P, whose indices have the dim R, too.
""",
        alone=(Alone("y", "R M S W", ("dp", None, None, None)),),
        alone_words="own table, own pool",
        needs=(),
        rule="Give a paged cache a dim for its replicas, and look up within it: then pages stay where they are.",
        standing=ADVICE,
        border="One pool for all, in pages-read: all pages that are read. In JAX `pages[arange(R)[:, None], table]` is "
        "free as well as `vmap`; in PyTorch only `gather` is shown to be: an index for R is rows-read.",
        question="What is lost against one pool for all?",
        answer="Balance: a full replica cannot use the free pages of another. A scheduler must place sequences so that "
        "the pools fill evenly.",
    ),
    Lesson(
        name="pages-replicas-write",
        title="A token into a replica's own page",
        mesh=_DP,
        sizes={"R": 4, "P": 16, "S": 128, "W": 1024, "B": 2},
        takes={"pages": "R P S W", "new": "R B W", "page": "R B", "slot": "R B"},
        gives={"y": "R P S W"},
        dtypes={"page": "s32", "slot": "s32"},
        story="""
The write into the replicas' pools: each replica has B tokens, and places within its own pool. `vmap` over R makes it
one scatter with a batch dim, which is split.

PyTorch's `index_put` has no batch dim: the replica's number is an index like page and slot, and the partitioner must
find out that it is 0, 1, 2, 3.
""",
        alone=(Alone("y", "R P S W", ("dp", None, None, None)),),
        alone_words="own tokens, own pool",
        needs=(),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-gather@dp", "3·R·B·4", "replica, page and slot of each token"),
                    Move("all-gather@dp", "R·B·W·2", "all tokens"),
                ),
                "One list of places for all replicas, and all tokens, on every device: as in pages-write.",
            ),
        ),
        rule="A write under `vmap` over a split dim is free; an index for that dim in `index_put` is not.",
        standing=COMPILER,
        border="In JAX an `arange` over R as the first index is free, too. One pool for all, in pages-write, gathers "
        "in both frameworks.",
        question="Is it worth a mask, as in rows-write-masked?",
        answer="Hardly: a mask reads and writes the whole pool, to save the bytes of a few tokens.",
    ),
    Lesson(
        name="slide-cat",
        title="A cache that moves on: cut the first, append the new",
        mesh=_CP,
        sizes={"B": 2, "S": 1024, "K": 8, "H": 128},
        takes={"cache": "B S K H", "new": "B 1 K H"},
        gives={"y": "B S K H"},
        story="""
A model with a sliding window keeps the last S tokens. `cat([cache[:, 1:], new])` drops the oldest. With positions
split over `cp`, each device hands its first position to the device before it, and the last one puts in the new token.

One permute of a single position, which three devices send. What it becomes depends on the partitioner: a
concatenation along a split dim is concat-split.
""",
        alone=(Alone("cache", "B S K H", (None, "cp", None, None)),),
        alone_words="own positions; the next device's first is missing",
        needs=(Move("collective-permute@cp", "B·K·H·2", "a position, to the device before", senders=3),),
        but=(
            Deviation(
                (SHARDY, TORCH_SHARDY),
                (
                    Move("collective-permute@cp", "B·K·H·2", "a position, to the device before", senders=3),
                    Move("all-to-all@cp", "B·S·K·H·2/cp", "the cache, to another split and back", times=2),
                ),
                "Shardy joins the two in another split, in which positions are whole, and goes back.",
            ),
        ),
        rule="A sliding cache by `cat` is one permute of one position under GSPMD; Shardy adds two exchanges of the "
        "whole cache.",
        standing=COMPILER,
        border="Two tensors that are both split, in concat-split, exchange under both partitioners. Here one of them "
        "is a single position, whole on every device. `jnp.roll` and a mask: one permute, which all four "
        "devices send. `torch.roll` is a cut and a join of two large pieces: two all-to-alls and two "
        "permutes, up to half the cache. A pad, a cut and a mask, in slide-masked: one permute.",
        question="How could the token be written without moving the others at all?",
        answer="As a ring: write at `t % S`, and remember where it begins. Then nothing is sent in JAX.",
    ),
    Lesson(
        name="slide-masked",
        title="The same, as a shift and a mask",
        mesh=_CP,
        sizes={"B": 2, "S": 1024, "K": 8, "H": 128},
        takes={"cache": "B S K H", "new": "B 1 K H"},
        gives={"y": "B S K H"},
        story="""
Shift by a pad and a cut, as pipeline-shift does, and put the new token in by a mask. The shift is the one permute that
is needed; the mask is elementwise.
""",
        alone=(Alone("cache", "B S K H", (None, "cp", None, None)),),
        alone_words="own positions; the next device's first is missing",
        needs=(Move("collective-permute@cp", "B·K·H·2", "a position, to the device before", senders=3),),
        rule="Write a shift along a split dim as pad and cut, and what comes in as a mask: one permute of what crosses "
        "a border.",
        standing=ADVICE,
        border="`cat` instead of the mask, in slide-cat: Shardy exchanges the cache twice.",
        question="The window moves on by 16 tokens at once. How many bytes does a permute carry?",
        answer="16 positions: 16·B·K·H·2. The cache itself still does not travel.",
    ),
    Lesson(
        name="cache-loop-index",
        title="All layers' caches in one array, written by index and then read",
        mesh=_TP,
        sizes=_LOOP,
        takes={"x": "B K G H", "cache": "L B S W", "at": ""},
        gives={"y": "B K G H", "kept": "L B S W"},
        dtypes=_ROW_DTYPES,
        story="""
A loop over the layers carries one cache of all of them. In each turn the token is written by its index
(`.at[].set`, `index_copy`), and what was written is read. Heads are split: nothing is sent, and all four programs
agree.

Yet something moves: in each turn libtpu **copies the cache of all layers, twice**. It writes in one order in memory
and reads in another, since W is K heads of H numbers: reading them as [K, H] wants another layout. The copy is in no
table of collectives; look for `copy` in the body of the loop. On big models it is most of a step.
""",
        alone=(Alone("kept", "L B S W", (None, None, None, "tp")),),
        alone_words="own heads of all layers",
        needs=(),
        rule="In a loop over layers do not read a cache after writing it by index, if heads and their numbers are "
        "one dim: all layers are copied in every turn.",
        standing=COMPILER,
        border="Compiled in JAX with 2 and 4 KV heads on a device, 1, 2 and 8 queries of each, B = 2 and 8, S = 128, "
        "1,024 and 4,096, L = 4 and 8: two copies of all layers in each turn; in PyTorch with 2 heads: two. "
        "An einsum with no dim for the queries of a group (`bkh,bskh->bks`) has none at H = 128, and two at H "
        "= 64. With *one* KV head on a device: none. With heads as a dim of their own, cache-loop-heads: "
        "none. Read by a mask, cache-loop-masked: none. Unrolled: none, but one of a layer for each. Written "
        "by a slice of the token and then read: none; but if cp splits the positions, two, and one with a "
        "mask before a slice: mask the write as well, and there is none.",
        question="Hugging Face's code writes its static cache by `index_copy`, too. Does it meet this?",
        answer="No: its layers are unrolled, each with a tensor of its own, and its heads have a dim of their own.",
    ),
    Lesson(
        name="cache-loop-masked",
        title="The same loop: read by a mask, then write a slice",
        mesh=_TP,
        sizes=_LOOP,
        takes={"x": "B K G H", "cache": "L B S W", "at": ""},
        gives={"y": "B K G H", "kept": "L B S W"},
        dtypes=_ROW_DTYPES,
        story="""
The old cache of a layer is read first, and the token put among what was read by a mask over the positions. Then the
token alone is written, as a slice. The result is the same.

Nothing is sent, as before; and no copy of all layers is left. One layer is copied to the layout in which it is read.
""",
        alone=(Alone("kept", "L B S W", (None, None, None, "tp")),),
        alone_words="own heads of all layers",
        needs=(),
        rule="In a loop over layers read a cache by a mask before the token's slice is written.",
        standing=ADVICE,
        border="Written by index and then read, in cache-loop-index: two copies of all layers. If cp splits the "
        "positions, the slice leaves one; there write the layer back with its mask, and none is left.",
        question="Does the mask not cost more than an index?",
        answer="It touches one layer, which is read anyway. The copies touch all L layers, in each of L turns.",
    ),
    Lesson(
        name="cache-loop-heads",
        title="The same loop, heads as a dim of their own",
        mesh=_TP,
        sizes=_LOOP,
        takes={"x": "B K G H", "cache": "L B K S H", "at": ""},
        gives={"y": "B K G H", "kept": "L B K S H"},
        dtypes=_ROW_DTYPES,
        story="""
Written by index and read afterwards, as in cache-loop-index; only the cache is [L, B, K, S, H], as Hugging Face's
static cache is for each layer. What is read has the dims of what was written, so both have one layout.

No copy of all layers is left, in any of the four programs.
""",
        alone=(Alone("kept", "L B K S H", (None, None, "tp", None, None)),),
        alone_words="own heads of all layers",
        needs=(),
        rule="Keep a cache's heads as a dim of their own: then writing and reading agree on its layout.",
        standing=COMPILER,
        border="W = K·H merged, in cache-loop-index: two. Compiled in JAX with 2 heads on a device, cache [L, B, K, "
        "S, H] and [L, B, S, K, H], written by index; and with positions split, written by a slice: none of "
        "all layers.",
        question="Why would anyone merge them?",
        answer="A tile of memory is 8 × 128 numbers or more. A dim of two heads next to the last one wastes most of a "
        "tile, if the layout puts it there.",
    ),
)
