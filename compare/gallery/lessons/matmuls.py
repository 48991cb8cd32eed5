"""One matmul, cut in each way."""

from functools import partial

from compare.gallery.lesson_types.lesson import COMPILER, LAW, Alone, Lesson, Move

_TP = {"tp": 4}
_SIZES = {"T": 512, "D": 1024, "F": 2048}
_XW = {"x": "T D", "w": "D F"}
_Y = {"y": "T F"}
_matmul = partial(Lesson, mesh=_TP, sizes=_SIZES, takes=_XW, gives=_Y)
_on_two_axes = partial(Lesson, mesh={"dp": 2, "tp": 2}, sizes=_SIZES, takes=_XW, gives=_Y)

MATMULS = (
    _matmul(
        name="matmul-rows",
        title="Case 1: the rows of x are split",
        story="""
`y = x @ w`: a row of y is made of one row of x and all of w. If device i has its rows of x and a copy of w, it makes
its own rows of y and needs nobody. T may be the tokens of a batch: this is **data parallelism**.

The price is memory, not communication: w is stored on every device.
""",
        alone=(Alone("y", "T F", ("tp", None)),),
        alone_words="each device makes its own rows",
        needs=(),
        rule="A dim that is in one input and in the output may be split for free.",
        standing=LAW,
        question="Which matrix would you rather not copy to every device: 512 × 1024 activations or 1024 × 2048 "
        "weights?",
        answer="The larger one. With many tokens, copying w is fine (split the tokens); with few tokens and a huge w, "
        "as when a language model writes one token at a time, w must be split: see the next lesson.",
    ),
    _matmul(
        name="matmul-columns",
        title="Case 1 again: the columns of w are split",
        story="""
A column of y is made of all of x and one column of w. So w can be split by columns: *column-parallel*. Every device
reads all of x, makes its own columns of y, and y comes out split by columns.

Again nothing is sent. But mind the result: y is now split, and the next operation has to live with that.
""",
        alone=(Alone("y", "T F", (None, "tp")),),
        alone_words="each device makes its own columns",
        needs=(),
        rule="Column-parallel: split the columns of w, and the columns of y come out split, for free.",
        standing=LAW,
        question="How much of the work of the matmul does each device do?",
        answer="A quarter: 2·T·D·F/4 floating-point operations. That is the point of it all.",
    ),
    _matmul(
        name="matmul-one-side",
        title="Case 2: only one input has the contracting dim split",
        story="""
The dim D is in x and in w and not in y: it is summed over, the *contracting* dim. Here x has it split, and w is
whole. Two ways lead on. One: **all-gather** x, so that D is whole everywhere, and multiply: every device then does
all of the work. Two: every device cuts its own rows out of w (free!) and multiplies, a quarter of the work, and one
**all-reduce** of y adds the partial sums up.

Which one? Nothing in the code says so: the partitioner decides. Compare the payloads: x is T·D·2, y is T·F·2. It moves
the smaller one, although an all-reduce sends twice as many bytes for its payload as an all-gather.
""",
        alone=(Alone("x", "T D", (None, "tp")),),
        alone_words="a quarter of x's columns, and all rows of w: they do not fit",
        needs=(Move("all-gather@tp", "T·D·2", "the columns of x"),),
        rule="If only one input has its contracting dim split, and y must be whole, the smaller of that input and y "
        "travels: the input by an all-gather, or y by an all-reduce (the other input is cut, for free). If both have "
        "the same size, the input travels.",
        standing=COMPILER,
        border="Compiled with T = 512, D = 1,024: x split over tp is gathered with F = 1,024 (x as large as y), "
        "1,536 and 2,048; y is all-reduced with F = 512 and 128. With w split instead of x: y is all-reduced with T "
        "= 512 (w is larger than y), w is gathered with T = 1,024 (equal), 2,048 and 8,192; D = 1,024, F = 2,048.",
        question="How would you force the second way?",
        answer='Pin w to the split: `w = pin(w, "tp", None)`. Cutting w is free, and then it is Case 3, the next '
        "lesson.",
    ),
    _matmul(
        name="matmul-contracting",
        title="Case 3: the dim that is summed over is split in both",
        story="""
Now both have the contracting dim split: device i has the i-th quarter of x's columns and the i-th quarter of w's
rows. They fit together: it can multiply them. But what it gets is only a quarter of the sum: a **partial sum** of
*all* of y.

To get y, the four partial sums are added up: one **all-reduce**. This is *row-parallel*, the second half of
Megatron's feed-forward block.
""",
        alone=(Alone("y", "T F", (None, None), partial="tp"),),
        alone_words="four matrices of y's shape, to be added up",
        needs=(Move("all-reduce@tp", "T·F·2", "the partial sums of y"),),
        rule="Row-parallel: split the contracting dim in both inputs, and pay one all-reduce of the output.",
        standing=LAW,
        question="D doubles. What happens to the bytes on the wire?",
        answer="Nothing. Only the size of the output is in the formula T·F·2. The longer the sum, the cheaper the "
        "all-reduce is in proportion.",
    ),
    _matmul(
        name="matmul-scattered",
        title="Case 3 with a split result: reduce-scatter",
        story="""
The same split of x and w, but now y shall stay split by rows. The partial sums are added up, and each device gets the
sum of its own rows only: a **reduce-scatter**, half the bytes of the all-reduce.

Where every token is later treated on its own (a norm, a residual), nobody needs all rows. That is the idea of
*sequence parallelism*.
""",
        alone=(Alone("y", "T F", (None, None), partial="tp"),),
        alone_words="the same partial sums as before",
        needs=(Move("reduce-scatter@tp", "T·F·2", "the partial sums of y"),),
        rule="A row-parallel matmul whose output stays split needs a reduce-scatter, half of the all-reduce.",
        standing=LAW,
        border="The split needs a reduce-scatter; whether libtpu emits one depends on the shape of the parts: "
        "move-sum-few has the rule, for rows and for columns. Compiled here, y by rows: T = 64 and 512 scatter, 48 "
        "and 96 are padded (a reduce-scatter and a permute), 32 all-reduces. y by columns: F = 1,024, 2,048 and "
        "3,072 scatter (F = 1,024 with T = 8, 16, 64 and 512), with T = 4 they all-reduce; parts of 128, 384 and 640 "
        "columns (F = 512, 1,536, 2,560) all-reduce with T = 512. Unlike in a plain sum, narrow parts of many rows "
        "scatter: 32, 64 and 192 columns (F = 128, 256, 768) with T = 512; of 64 columns T = 128 scatters and T = 64 "
        "all-reduces.",
        question="When is this no saving at all?",
        answer="When the very next operation needs all rows: then an all-gather follows, and both together are the "
        "all-reduce again.",
    ),
    _matmul(
        name="matmul-same-axis",
        title="Case 4: one axis splits rows and columns",
        story="""
x is split by rows, w by columns, both over the *same* axis. Device 1 has the second quarter of the rows of x and of
the columns of w: it can only make the one block of y where they cross. An axis can't split both dims of y: with 4
devices we would have 4 blocks on the diagonal, and 12 that nobody made.

So one input must be gathered. Here y must be split by rows, so the weights are gathered, used, and thrown away.
Training with *fully sharded data parallelism* (FSDP, ZeRO-3) does just this in every layer.
""",
        alone=(Alone("w", "D F", (None, "tp")),),
        alone_words="rows i times columns i is one block of 16: not enough",
        needs=(Move("all-gather@tp", "D·F·2", "the weights"),),
        rule="An axis can split only one dim of a tensor. If two inputs use it for two dims of the result, one of "
        "them must travel.",
        standing=LAW,
        border="The law is only that one must travel. *Which one* is this compiler's choice: it keeps the input that "
        "is split as y is wanted (decide-wanted-rows, decide-wanted-columns), so with y by rows w is gathered, with y "
        "by columns x is, whatever their sizes. If nothing says how y is split, the smaller is gathered: "
        "sequence-unpinned (T below F) and sequence-weights (T from F on).",
        question="FSDP gathers 4 MB of weights for every layer. When is that cheap?",
        answer="When many tokens share it: the gather costs the same for 500 tokens as for 500,000. For a single "
        "token it costs far too much, which is why FSDP is for training and not for decoding.",
    ),
    _on_two_axes(
        name="matmul-two-axes",
        title="Two axes: rows over one, columns over the other",
        story="""
A mesh can have two axes: `dp` and `tp`, 2 × 2. Device 0 is at (0, 0), device 1 at (0, 1), device 2 at (1, 0), device
3 at (1, 1). Now x is split by rows over `dp`, and w by columns over `tp`. Each device makes its own block of y, and
the four blocks are all of y.

An array that an axis does not split is copied along that axis: x's upper half is on devices 0 and 1, w's left half on
devices 0 and 2.
""",
        alone=(Alone("y", "T F", ("dp", "tp")),),
        alone_words="each device makes one block, and nobody makes the same one",
        needs=(),
        rule="Different axes may split different dims at once: a matmul over dp × tp sends nothing.",
        standing=LAW,
        question="What if both dims were split over tp alone, on 4 devices?",
        answer="That was Case 4: an all-gather.",
    ),
    Lesson(
        name="matmul-gradient",
        title="Why training with dp needs an all-reduce",
        mesh={"dp": 4},
        sizes=_SIZES,
        takes={"x": "T D", "g": "T F"},
        gives={"dw": "D F"},
        dtypes={},
        story="""
Data parallelism is free in the forward pass: tokens are split, weights are whole. The gradient of the weights is also
a matmul: `dw = x.T @ g`, where g is the gradient of the output. Look at the dims: [D, **T**] · [**T**, F]. What is
summed over is T, the tokens, and T is what `dp` splits.

So this is Case 3 once more: partial sums, one for each device's tokens, and an all-reduce of the size of the weights.
""",
        alone=(Alone("dw", "D F", (None, None), partial="dp"),),
        alone_words="each device has the gradient of its own tokens",
        needs=(Move("all-reduce@dp", "D·F·2", "the gradients of each device's tokens"),),
        rule="With data parallelism the forward pass sends nothing, and each weight's gradient is all-reduced once.",
        standing=LAW,
        border="With tensor parallelism besides, tp splits D or F, a dim that dw keeps: that is free, and each "
        "device all-reduces its own part over dp, D·F·2/tp bytes. An all-reduce over one axis is not affected by how "
        "another axis splits a kept dim; the borders of move-sum-few are those of the reduce-scatter only, which is "
        "needed if dw stays split over dp.",
        question="Does the all-reduce grow with the number of tokens?",
        answer="No: D·F·2 has no T in it. More tokens on each device make data parallelism cheaper in proportion.",
    ),
    _on_two_axes(
        name="matmul-both-agree",
        title="Both axes on both inputs, the contracting dim split alike",
        story="""
x is split by both axes, and so is w: `x[T/dp, D/tp]` and `w[D/tp, F/dp]`. Take one axis at a time, as if the other
were not there.

`tp`: it splits D in both. That is Case 3: partial sums, an all-reduce over tp. `dp`: it splits the rows of x and the
columns of w. That is Case 4: one of them must be gathered over dp, and the output says which. y must be split by
rows over dp, so x stays and w is gathered. Only over dp: each device needs its own half of D, [D/tp, F], and no more.
""",
        alone=(Alone("w", "D F", ("tp", "dp")),),
        alone_words="D fits, over tp; of the columns half are missing, over dp",
        needs=(
            Move("all-gather@dp", "D·F·2/tp", "the other columns of w, of the own half of D"),
            Move("all-reduce@tp", "T·F·2/dp", "the partial sums of the own rows of y"),
        ),
        rule="Take each axis by itself: it makes one of the four cases. What the other axis splits makes the "
        "payload smaller.",
        standing=LAW,
        border="The output decides which input is gathered over dp, not the size. With `y[T/tp, F/dp]` it is x that "
        "is gathered over dp, and the sum over tp becomes a reduce-scatter. Compiled with T = 64, 512 and 4,096: "
        "the same each time.",
        question="And if y were split by both, `y[T/dp, F/tp]`?",
        answer="The gather of w over dp stays. Over tp the partial sums of y stay split, so the all-reduce becomes a "
        "reduce-scatter of T·F·2/dp bytes.",
    ),
    _on_two_axes(
        name="matmul-both-axes",
        title="Both axes on both inputs, crosswise",
        story="""
Now `x[T/dp, D/tp]` and `w[D/dp, F/tp]`: every array is split by both axes, in the same order of dims. It looks tidy,
and nothing fits: D is split over tp in x, and over dp in w. Device 0 has the same half of D of both; device 1 has the
second half of x's D and the first of w's.

One axis at a time. `dp`: it splits T of x, D of w, and T of y. T may stay, so w's rows are gathered over dp. `tp`: it
splits D of x, F of w, and F of y. F may stay, so x's columns are gathered over tp. Two all-gathers, no sum.
""",
        alone=(Alone("x", "T D", ("dp", "tp")), Alone("w", "D F", ("dp", "tp"))),
        alone_words="half of D each, but not always the same half",
        needs=(
            Move("all-gather@dp", "D·F·2/tp", "the other rows of w, of the own columns"),
            Move("all-gather@tp", "T·D·2/dp", "the other columns of x, of the own rows"),
        ),
        rule="If an axis splits D in one input, and in the other input a dim that stays split in y, the input whose "
        "D is split is gathered over that axis.",
        standing=COMPILER,
        border="Compiled with T = 64, 512 and 4,096, the same each time: here the required split of y decides, not "
        "the size. If tp splits D of x and nothing of w or y, the size decides: matmul-one-side.",
        question="Where does this layout come from?",
        answer="From weights that are split twice to save memory (FSDP and TP together: layers-fsdp-tp) and a "
        "stream of activations that is split in its width, too. If x has D whole, the second gather goes away.",
    ),
)
