"""Lookups, losses and statistics: what looks at places of a split dim, or sums over it."""

from compare.gallery.lesson_types.lesson import (
    ADVICE,
    COMPILER,
    GSPMD,
    JAX,
    LAW,
    PROGRAMS,
    TORCH,
    TORCH_SHARDY,
    Alone,
    Deviation,
    Lesson,
    Move,
)

_TP = {"tp": 4}
_LOGITS = {"T": 512, "V": 32000}

LOOKUPS = (
    Lesson(
        name="embedding-ids",
        title="A lookup whose table and ids share an axis",
        mesh=_TP,
        sizes={"T": 512, "V": 32000, "D": 1024},
        takes={"table": "V D", "ids": "T"},
        gives={"x": "T D"},
        dtypes={"ids": "s32"},
        story="""
The vocabulary of the table is split over `tp`, and so are the ids, since the tokens are (sequence parallelism).
Device 0 has words 0 to 7,999, and the first quarter of the ids; the words it must look up may be anywhere.

Ids are tiny. So all ids are gathered, 4 bytes each, and every device looks up those of its own words, zeros for the
others. These are partial sums of all of x, and x must be split by tokens: a reduce-scatter.
""",
        alone=(Alone("x", "T D", (None, None), partial="tp"),),
        alone_words="with all ids at hand: rows of own words, zeros elsewhere",
        needs=(
            Move("all-gather@tp", "T·4", "the ids"),
            Move("reduce-scatter@tp", "T·D·2", "found rows, and zeros"),
        ),
        rule="If one axis splits table rows and ids, the ids are gathered, and what was looked up is "
        "reduce-scattered; a table with no more rows than there are ids is gathered instead.",
        standing=COMPILER,
        border="Compiled with D = 1,024: V = 1,024 with T = 512 gathers the ids, V = 512 with T = 512 or more "
        "gathers the table (V·D·2) and then looks up for free. If the ids are whole, as in embedding-vocab, or "
        "split over another axis, it is the all-reduce, with any V. The split needs a reduce-scatter; libtpu emits "
        "one if a device's part of x is whole blocks of 16 × 128. With few tokens it all-reduces: see move-sum-few.",
        question="The ids are split over dp, the table's rows over tp. What is sent?",
        answer="Two axes, each by itself: dp splits only tokens, which is free; tp splits the looked-up dim: one "
        "all-reduce over tp of the device's own tokens, T·D·2/dp.",
    ),
    Lesson(
        name="read-traced",
        title="One position of a split dim, known only at run time",
        mesh=_TP,
        sizes={"B": 4, "S": 512, "D": 1024},
        takes={"x": "B S D", "at": ""},
        gives={"y": "B D"},
        dtypes={"at": "s32"},
        story="""
`x[:, at]`: the position is a number that the program gets as it runs. Positions are split, so one device has the row,
and which one is not known when the program is compiled. It suffices that each device asks "is it mine?" and takes its
row or zeros; an all-reduce of B·D numbers then brings the row to all.

Two ways to write it, two results. An index array (`index_select`, `jnp.take`) is a *gather* in the program, for which
partitioners know that trick. A *dynamic slice* (what JAX makes of `x[:, at]`) is taken for something that may start
anywhere: the dim is made whole first.
""",
        alone=(Alone("y", "B D", (None, None), partial="tp"),),
        alone_words="one device has the row; the others would add zeros",
        needs=(Move("all-reduce@tp", "B·D·2", "the row, and zeros"),),
        but=(
            Deviation(
                JAX,
                (Move("all-gather@tp", "B·S·D·2", "all positions of x"),),
                "`dynamic_index_in_dim`, `dynamic_slice` and plain `x[:, at]` become a dynamic slice, and a dynamic "
                "slice along a split dim gathers all of it. `jnp.take(x, at, axis=1)` all-reduces B·D numbers, as "
                "PyTorch's `index_select` does.",
            ),
        ),
        rule="To read at a traced position of a split dim, take the row with an index array (`jnp.take`, "
        "`index_select`), not with a dynamic slice.",
        standing=ADVICE,
        border="last-token reads a position that is a constant of the program: there the partitioner knows the "
        "device, and a permute and an all-reduce do. *Writing* at a traced position is the opposite: "
        "cache-write-positions is free as a dynamic slice, and gathers as `index_copy`.",
        question="The same read, with D split instead of S?",
        answer="Free, in either form: each device reads its own columns at that position.",
    ),
    Lesson(
        name="gather-along",
        title="One number of each row, along a split dim: gather",
        mesh=_TP,
        sizes=_LOGITS,
        takes={"logits": "T V", "labels": "T"},
        gives={"y": "T"},
        dtypes={"labels": "s32"},
        story="""
`torch.gather(logits, 1, labels)`, in JAX `take_along_axis`, picks the number at each row's label. The name says
*gather*, but nothing is all-gathered. The columns are split; each device has the numbers whose labels are in its own
part, and takes zeros for the others. One all-reduce of T numbers.

It is the embedding's lookup once more, with one number instead of a row.
""",
        alone=(Alone("y", "T", (None,), partial="tp"),),
        alone_words="own labels' numbers, zeros elsewhere",
        needs=(Move("all-reduce@tp", "T·2", "the numbers, and zeros"),),
        rule="A lookup along a split dim sends its result once, in an all-reduce to which the other devices add zeros.",
        standing=COMPILER,
        border="If the rows are split, of logits and labels alike, it is free. If tp splits the columns and also "
        "the labels, the labels are gathered first (T·4 bytes), as in embedding-ids.",
        question="Logits are [T/dp, V/tp], labels [T/dp]. What is sent?",
        answer="An all-reduce over tp of T·2/dp bytes; over dp nothing.",
    ),
    Lesson(
        name="cross-entropy",
        title="The loss over a split vocabulary, in bf16",
        mesh=_TP,
        sizes=_LOGITS,
        takes={"logits": "T V", "labels": "T"},
        gives={"loss": "T"},
        dtypes={"labels": "s32"},
        story="""
Cross-entropy is a softmax, its logarithm, and one number of each row. So it is what you know, three times: the
largest number of the row (all-reduce of maxima), the sum of the exps (all-reduce of sums), and the number at the
label (all-reduce with zeros). The logits, T·V numbers, stay where they are.

All three carry bf16 on the wire, 2 bytes a number, as the logits are.
""",
        alone=(
            Alone("max", "T 1", (None, None), partial="tp"),
            Alone("sum", "T 1", (None, None), partial="tp"),
            Alone("picked", "T 1", (None, None), partial="tp"),
        ),
        alone_words="own largest number (of those the largest counts), own sum, own labels' numbers",
        needs=(
            Move("all-reduce@tp", "T·2", "largest numbers"),
            Move("all-reduce@tp", "T·2", "sums of exps"),
            Move("all-reduce@tp", "T·2", "the numbers at the labels, and zeros"),
        ),
        rule="Cross-entropy over a split vocabulary is three all-reduces of one number a token; on the wire they "
        "have the logits' type.",
        standing=COMPILER,
        border="With float32 logits the same three carry 4 bytes a number. softmax-split has two, for it picks "
        "nothing. With the label's number taken by a product with `one_hot` it is three as well. If the tokens are "
        "split instead of the vocabulary, nothing is sent.",
        question="The *mean* over tokens, with tokens split over dp: what is sent in addition?",
        answer="One all-reduce over dp of a single float32, 4 bytes: each device has the mean of its own tokens. "
        "The three over tp then carry T/dp numbers.",
    ),
    Lesson(
        name="layernorm-width",
        title="LayerNorm over a split dim: one sum after the other, or both at once",
        mesh=_TP,
        sizes={"T": 512, "D": 1024},
        takes={"x": "T D", "scale": "D", "shift": "D"},
        gives={"y": "T D"},
        story="""
RMSNorm needed one sum a token. LayerNorm needs two: the mean, and the spread around it. Written as in the books, the
spread needs the mean first, so two all-reduces, one waiting for the other.

But the spread is also "mean of the squares, less the square of the mean". Then both sums can be taken in one pass,
and sent together: one all-reduce of two numbers a token.
""",
        alone=(Alone("mean", "T 1", (None, None), partial="tp"), Alone("spread", "T 1", (None, None), partial="tp")),
        alone_words="sums over own columns only",
        needs=(
            Move("all-reduce@tp", "T·4", "sums, float32"),
            Move("all-reduce@tp", "T·4", "sums of squares around the mean, float32"),
        ),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (Move("all-reduce@tp", "2·T·2", "sums and sums of squares, both in one, bf16"),),
                "`F.layer_norm` takes sum and sum of squares in one pass, and they go in one all-reduce; its type "
                "is that of x, bf16, so it is half the bytes and half the waiting. The JAX function says two "
                "passes, in float32.",
            ),
        ),
        rule="LayerNorm over a split dim is an all-reduce for each pass over the row: two as in the books, one if "
        "mean and mean of squares are taken together; never the row itself.",
        standing=COMPILER,
        border="In JAX with the spread as `mean(x²) − mean(x)²` it is one all-reduce of 2·T·4 bytes. If the tokens "
        "are split instead of the columns, nothing is sent.",
        question="scale and shift are split like x's columns. What if they were whole?",
        answer="Nothing is sent: each device cuts out its own quarter, which is free.",
    ),
    Lesson(
        name="split-three",
        title="A split dim, cut in three",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 2048, "G": 6144},
        takes={"x": "T D", "w": "D G"},
        gives={"y": "T F"},
        story="""
q, k and v from one glued weight, [D, 3·F], its columns split over 4 devices, and then `split` in three. A device's
part is 3/4 of one of them: device 0 has three quarters of q, device 1 the last of q and half of k, and so on. To
combine them, every device needs its own quarter of all three.

Four of the twelve quarters stay: q's first, k's second and third, v's last. Eight travel. Each device sends two and
gets two, so two permutes would do.
""",
        alone=(Alone("x·w", "T G", (None, "tp")),),
        alone_words="q on devices 0 and 1, k on 1 and 2, v on 2 and 3",
        needs=(Move("collective-permute@tp", "T·F·2/tp", "quarters, to where they belong", times=2, senders=4),),
        but=(
            Deviation(
                PROGRAMS,
                (
                    Move("collective-permute@tp", "T·F·2/tp", "a quarter of one of them", times=4, senders=1),
                    Move(
                        "collective-permute@tp", "T·F·2·2/tp", "halves of k and of its neighbours", times=2, senders=3
                    ),
                    Move("collective-permute@tp", "T·F·2·2/tp", "halves of q", senders=2),
                ),
                "Seven permutes. Three of them send two quarters where one is wanted, or to devices that keep none "
                "of it.",
            ),
        ),
        rule="Cutting a split dim into pieces that are not whole shards takes several permutes, and more bytes than "
        "by hand.",
        standing=COMPILER,
        border="Cut a dim that is whole, as fused-pairs does, and it is free. fused-halves is the cut in two: four "
        "permutes.",
        question="q has 8 heads, k and v have 2 each: [D, (8 + 2 + 2)·H]. Is a cut in [8·H, 2·H, 2·H] any better?",
        answer="No: the borders, at 8/12 and 10/12, are not borders of quarters either. Glue each device's own q, k "
        "and v together, or keep three weights.",
    ),
    Lesson(
        name="dispatch-sum",
        title="Experts on an axis that does not split the tokens",
        mesh={"dp": 2, "ep": 2},
        sizes={"T": 512, "D": 512, "E": 4, "C": 256, "F": 1024},
        takes={"x": "T D", "seats": "T E C", "w1": "E D F", "w2": "E F D"},
        gives={"y": "T D"},
        story="""
Tokens are split over `dp`, experts over `ep`; along ep every device has the same tokens. `sent =
einsum("tec,td->ecd")` puts tokens into the experts' boxes: T is summed over.

One axis at a time. `dp` splits T, which is summed over: partial boxes, an **all-reduce over dp** of the boxes that a
device's experts have. `ep` splits E, which `seats` has whole: free. Nothing is exchanged, for every device along ep
has the tokens already. On the way back E is summed over, and ep splits it: an **all-reduce over ep** of the tokens.
""",
        alone=(
            Alone("sent", "E C D", ("ep", None, None), partial="dp"),
            Alone("y", "T D", ("dp", None), partial="ep"),
        ),
        alone_words="boxes with own tokens only; then tokens of own experts only",
        needs=(
            Move("all-reduce@dp", "E·C·D·2/ep", "boxes, filled with each device's tokens"),
            Move("all-reduce@ep", "T·D·2/dp", "tokens, from each device's experts"),
        ),
        rule="Dispatch is an all-to-all only if the experts' axis splits the tokens, too. Else it is a sum: over "
        "the tokens' axis there, over the experts' axis back.",
        standing=LAW,
        border="expert-dispatch and moe-layer have groups of tokens split over ep: there the axis must leave one "
        "dim and take the other, an all-to-all. Here ep splits no dim of x.",
        question="Which of the two all-reduces goes away if there is no dp?",
        answer="The first: all tokens are on every device, and each fills its own experts' boxes. The one over ep "
        "stays.",
    ),
    Lesson(
        name="sort-rows",
        title="Rows in the order of a score",
        mesh={"dp": 4},
        sizes={"T": 512, "D": 1024},
        takes={"x": "T D", "scores": "T"},
        gives={"y": "T D"},
        story="""
`x[argsort(scores)]`: rows put in order, as a mixture of experts sorts its tokens by expert. Rows are split over `dp`,
and so are the scores.

A sort wants its whole dim: the scores are gathered, T numbers, and every device sorts them all. Then each device
looks up the rows of its own part of the order, which may be anybody's.
""",
        alone=(Alone("x", "T D", ("dp", None)),),
        alone_words="own rows; with all scores at hand, also the order of all",
        needs=(
            Move("all-gather@dp", "T·2", "the scores"),
            Move("all-gather@dp", "T·D·2", "the rows"),
        ),
        but=(
            Deviation(
                (GSPMD, TORCH),
                (
                    Move("all-gather@dp", "T·2", "the scores"),
                    Move("all-gather@dp", "T·4", "the numbers of the rows, which are sorted along"),
                    Move("all-gather@dp", "T·D·2", "the rows"),
                ),
                "`argsort` sorts the numbers 0, 1, 2 … by the scores. GSPMD splits them as the scores are, and gathers "
                "what every device could have counted.",
            ),
        ),
        rule="A sort along a split dim gathers what it sorts by; rows taken in that order are gathered.",
        standing=COMPILER,
        border="If the order is given, T numbers of s32, whole or split: the rows are gathered, and nothing else. If "
        "y is wanted whole, what each device found is all-reduced instead. If columns are split: nothing. A "
        "sort *along* a split dim, each row by itself, becomes three all-to-alls; along a whole dim it is "
        "free.",
        question="The columns of x are split instead of its rows, and scores are whole. What is sent?",
        answer="Nothing: every device sorts the same scores, and moves its own columns.",
    ),
)
