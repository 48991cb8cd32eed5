"""Weights: compressed, adapted, and their gradients."""

from compare.gallery.lesson_types.lesson import (
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

_DP, _TP, _GRID = {"dp": 4}, {"tp": 4}, {"dp": 2, "cp": 2}
_MATMUL = {"T": 512, "D": 1024, "F": 2048}
_INT8 = {"x": "T D", "w": "D F", "scale": "F"}
_LORA = {"T": 512, "D": 1024, "F": 2048, "R": 16}
_ADAPTED = {"x": "T D", "w": "D F", "a": "D R", "b": "R F"}
_GRADIENT = {"B": 4, "S": 512, "D": 1024, "F": 2048}

WEIGHTS = (
    Lesson(
        name="weight-int8",
        title="An int8 weight, the scale applied to the product",
        mesh=_DP,
        sizes=_MATMUL,
        takes=_INT8,
        gives={"y": "T F"},
        dtypes={"w": "s8"},
        story="""
FSDP splits the rows of w over the axis of the tokens, so w is gathered. Its numbers are int8, one byte each, with one
scale for each column. The matmul wants bf16. Does one byte a number travel, or two?

It depends on where the scale is. A scale of a *column* can wait until after the matmul: `(x @ w.astype(bf16)) *
scale`. Between w and the matmul stands only a conversion, and the compiler gathers what is behind it: int8.
""",
        alone=(Alone("w", "D F", ("dp", None)),),
        alone_words="own tokens against a quarter of the rows of w",
        needs=(Move("all-gather@dp", "D·F·1", "w, int8"),),
        rule="A gathered weight travels in the type that stands before a conversion: int8, if nothing else is done to "
        "it before the matmul.",
        standing=COMPILER,
        border="Scaled before the matmul, in weight-int8-scaled: bf16, twice the bytes. Rows or columns of w split: "
        "the same, but if columns are, the scale is split with them, and gathered, too: F·2 bytes. A "
        "conversion with no scale at all: int8. From float32 to bf16 it is bf16 that travels.",
        question="A weight is kept in float32 and converted to bf16 before the matmul. What travels?",
        answer="bf16, 2 bytes a number: a conversion to a *narrower* type is done first. Compiled, under both "
        "partitioners.",
    ),
    Lesson(
        name="weight-int8-scaled",
        title="An int8 weight, the scale applied before the matmul",
        mesh=_DP,
        sizes=_MATMUL,
        takes=_INT8,
        gives={"y": "T F"},
        dtypes={"w": "s8"},
        story="""
`x @ (w.astype(bf16) * scale)`: the same numbers, and the way many write it. Now an operation stands between the
conversion and the matmul. The partitioner gathers the matmul's input, which is the product with the scale: bf16.

Twice the bytes, for the same int8 weight on every device.
""",
        alone=(Alone("w", "D F", ("dp", None)),),
        alone_words="own tokens against a quarter of the rows of w",
        needs=(Move("all-gather@dp", "D·F·1", "w, int8"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-gather@dp", "D·F·2", "w, times its scale, bf16"),),
                "Each device scales its own rows, and bf16 is gathered.",
            ),
        ),
        rule="A scale between the conversion and the matmul dequantises first: bf16 travels.",
        standing=COMPILER,
        border="The scale after the matmul, in weight-int8: int8. A scale for each row, for each block of 128 rows, "
        "computed in float32, or in a loop over layers: bf16 in each. `pin(w, None, None)` on the int8 weight: "
        "int8, with rows split; with columns split the pin is undone for the product with the split scale, and bf16 "
        "travels.",
        question="Scales of blocks of 128 rows cannot wait until after the matmul. How can int8 travel all the same?",
        answer="Gather w by a pin before anything is done to it: `pin(w, None, None)`, then convert and scale.",
    ),
    Lesson(
        name="lora-columns",
        title="LoRA beside a column-parallel weight",
        mesh=_TP,
        sizes=_LORA,
        takes=_ADAPTED,
        gives={"y": "T F"},
        story="""
LoRA adds `(x @ a) @ b` to `x @ w`, with a rank R that is tiny. w is split by its output. Split b in the same way, and
leave a whole: every device makes all of `x @ a`, T·R numbers, and its own columns of the rest.

Nothing is sent. Each device repeats the first small matmul.
""",
        alone=(Alone("y", "T F", (None, "tp")),),
        alone_words="own columns of both products",
        needs=(),
        rule="Beside a column-parallel weight, leave a whole and split b by its output: nothing is sent.",
        standing=LAW,
        border="a split by its output, in lora-rank: a gather of T·R numbers, with b split by its output or whole. b "
        "whole and a whole: nothing. Tokens split over tp: x is gathered as without LoRA, and x·a with it, "
        "T·R numbers more.",
        question="What does it cost to have a whole on each device?",
        answer="D·R numbers of memory, and T·D·R multiplications that every device repeats.",
    ),
    Lesson(
        name="lora-rank",
        title="The same, with the rank split",
        mesh=_TP,
        sizes=_LORA,
        takes=_ADAPTED,
        gives={"y": "T F"},
        story="""
Split a by its output, as w is: what a rule "columns of every first weight over tp" does without being asked. Now
each device has a quarter of the rank of `x @ a`, and b's columns want all of it.

A gather of T·R numbers, which is small; but it stands between two matmuls, in each layer, and everybody waits for it.
""",
        alone=(Alone("x·a", "T R", (None, "tp")),),
        alone_words="own quarter of the rank",
        needs=(Move("all-gather@tp", "T·R·2", "x·a"),),
        rule="A rank that is split is gathered between a and b: T·R numbers.",
        standing=COMPILER,
        border="a whole, in lora-columns: nothing. b split by its input, [R/tp, F], where y is split by columns: "
        "partial sums of all of y, a reduce-scatter of T·F numbers.",
        question="b is split by its input, R/tp, instead. What then?",
        answer="Partial sums of all of y, T·F numbers: a reduce-scatter over tp that costs F/R times as much.",
    ),
    Lesson(
        name="lora-rows",
        title="LoRA beside a row-parallel weight",
        mesh=_TP,
        sizes=_LORA,
        takes=_ADAPTED,
        gives={"y": "T F"},
        story="""
w is split by its input, D, and so is a. Both products over D are partial sums: T·F numbers of y, and T·R of `x @ a`.

By hand one sum is enough. b is whole, so each device can multiply its *partial* `x @ a` by b, add it to its partial
`x @ w`, and sum once: T·F numbers.
""",
        alone=(Alone("y", "T F", (None, None), partial="tp"),),
        alone_words="partial sums of both products",
        needs=(Move("all-reduce@tp", "T·F·2", "the partial sums of y"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-reduce@tp", "T·F·2 + T·R·2", "both partial sums, in one"),),
                "`x @ a` is summed before b, and both sums go in one all-reduce: see sums-joined. T·R numbers more.",
            ),
        ),
        rule="Beside a row-parallel weight the sum of x·a rides along with the sum of the product.",
        standing=COMPILER,
        border="a whole instead of split by rows: the same all-reduce. b split by its output, [R, F/tp]: the sums, "
        "and a gather of T·F numbers behind them. Beside a column-parallel weight: lora-columns.",
        question="Is there a second wait?",
        answer="No: one all-reduce carries both.",
    ),
    Lesson(
        name="sums-joined",
        title="Two sums in one all-reduce",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 512, "G": 2048},
        takes={"x": "T D", "w1": "D F", "w2": "D G"},
        gives={"y1": "T F", "y2": "T G"},
        story="""
Two row-parallel matmuls of the same x: two partial sums, and neither waits for the other. One would count two
all-reduces.

The compiler joins them: one all-reduce of two tensors, whose payload is the sum of both. The bytes are the same, and
there is one wait. A count of collectives in a compiled program is therefore not the count of sums in its source.
""",
        alone=(Alone("y1", "T F", (None, None), partial="tp"), Alone("y2", "T G", (None, None), partial="tp")),
        alone_words="two partial sums",
        needs=(Move("all-reduce@tp", "T·F·2 + T·G·2", "both partial sums"),),
        rule="Sums over the same axis that do not wait for each other, of one type, go in one all-reduce.",
        standing=COMPILER,
        border="bf16 and float32: two all-reduces. Two sums of 134 MB each (T = F = G = 8,192): two. The second made "
        "of the first: two. Three gradients over dp, of different shapes: one; two of them wanted split: one "
        "reduce-scatter. Gathers are not joined.",
        question="Are all-gathers joined as well?",
        answer="No: two arrays that are wanted whole were two all-gathers, of 512 kB and 1 MB.",
    ),
    Lesson(
        name="gradient-scattered",
        title="ZeRO-1 beside a second axis that is summed",
        mesh=_GRID,
        sizes=_GRADIENT,
        takes={"x": "B S D", "g": "B S F"},
        gives={"dw": "D F"},
        story="""
A weight's gradient sums over sequences and positions: here B is split over `dp`, S over `cp`, so every device has a
partial sum of all of dw. ZeRO-1 keeps the optimizer's state split over `dp`: a device wants its half of the rows.

Two sums, and one of them may scatter. Scatter first: then the other sum has half as much to carry. All-reduce over cp
first, and it carries all.
""",
        alone=(Alone("dw", "D F", (None, None), partial="dp,cp"),),
        alone_words="own tokens' share of every row",
        needs=(
            Move("reduce-scatter@dp", "D·F·2", "partial sums over dp"),
            Move("all-reduce@cp", "D·F·2/dp", "own rows' partial sums over cp"),
        ),
        rule="Of two sums the one that scatters comes first; the other carries only what is left.",
        standing=COMPILER,
        border="Compiled with dp, cp = 2, 2 and 2, 4 and 4, 2; scattered over dp, or over cp with the sum over dp "
        "behind it: always the scatter first. If nothing is scattered, it is one all-reduce over both axes; "
        "if both axes scatter along one dim, one reduce-scatter over both. If they scatter along two dims: "
        "gradient-two-dims. With tp splitting F of g, no second sum is needed: a reduce-scatter over dp of "
        "D·F·2/tp.",
        question="With cp = 4 and dp = 2, in which order are fewer bytes sent, and how many?",
        answer="Scatter first: 1/2 of D·F·2, then 2·3/4 of half of that: 5/4 of D·F·2. The other order sends "
        "2·3/4 + 1/2, twice as much.",
    ),
    Lesson(
        name="gradient-two-dims",
        title="The gradient, scattered to two dims",
        mesh=_GRID,
        sizes=_GRADIENT,
        takes={"x": "B S D", "g": "B S F"},
        gives={"dw": "D F"},
        story="""
The same sums; now rows of dw are wanted split over dp, and columns over cp. By hand: a reduce-scatter over dp to rows,
then one over cp to columns of those.

Only one of the splits can be made in the sum, and here none is.
""",
        alone=(Alone("dw", "D F", (None, None), partial="dp,cp"),),
        alone_words="own tokens' share of every row",
        needs=(
            Move("reduce-scatter@dp", "D·F·2", "partial sums over dp"),
            Move("reduce-scatter@cp", "D·F·2/dp", "own rows' partial sums over cp"),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-reduce@dp,cp", "D·F·2", "all of dw, to everybody"),),
                "One all-reduce over both axes, after which each device cuts out its part: twice the bytes.",
            ),
        ),
        rule="Split a gradient that is summed over two axes along one dim, not two: a scatter to two dims becomes an "
        "all-reduce.",
        standing=COMPILER,
        border="Rows over dp only, in gradient-scattered: a reduce-scatter and an all-reduce of half. Rows over dp "
        "and cp together: one reduce-scatter over both.",
        question="Both axes shall split the optimizer's state. How?",
        answer="Both along D, [D/(dp, cp), F]: one reduce-scatter over both axes, 3/4 of D·F·2.",
    ),
    Lesson(
        name="embedding-gradient",
        title="The gradient of an embedding, batch and positions split",
        mesh=_GRID,
        sizes={"B": 4, "S": 512, "V": 8192, "D": 512},
        takes={"ids": "B S", "g": "B S D"},
        gives={"dt": "V D"},
        dtypes={"ids": "s32"},
        story="""
The gradient of a lookup adds each token's gradient to the row of its id. Each device adds its own tokens to a table of
zeros: a partial sum of the whole table. One all-reduce of V·D numbers.

PyTorch flattens ids to [B·S] first. B is split over dp and S over cp, and a device with two sequences has two pieces
of B·S that lie apart: the merge of attention-merged, in a scatter.
""",
        alone=(Alone("dt", "V D", (None, None), partial="dp,cp"),),
        alone_words="own tokens' rows, zeros elsewhere",
        needs=(Move("all-reduce@dp,cp", "V·D·2", "rows of own tokens, and zeros"),),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-gather@cp", "B·S·4/dp", "ids, twice", times=2),
                    Move("all-gather@cp", "B·S·1/dp", "which of them are valid"),
                    Move("all-gather@cp", "B·S·D·2/dp", "the tokens' gradients"),
                    Move("all-reduce@dp", "V·D·2", "rows of own sequences, and zeros"),
                ),
                "Merged, only the split over dp is left: what cp splits is gathered, and every device of a cp group "
                "adds up the same.",
            ),
        ),
        rule="An embedding's gradient is one all-reduce of the whole table over every axis that splits tokens; merge "
        "batch and positions, and one of the axes is gathered instead.",
        standing=COMPILER,
        border="In JAX with ids flattened to [B·S] the tokens' gradients are gathered over cp, too (without the valid "
        "ones). If dp alone splits tokens, all is one all-reduce over dp, in both frameworks. If cp alone does, "
        "PyTorch gathers, and nothing is summed. If the table's rows are wanted split over tp: an all-reduce over "
        "dp of V·D·2/tp.",
        question="Why is it the whole table, when a step has 2,048 tokens and the table 8,192 rows?",
        answer="Which rows are hit is known only at run time. By hand one could gather tokens and ids instead, "
        "B·S·D numbers.",
    ),
)
