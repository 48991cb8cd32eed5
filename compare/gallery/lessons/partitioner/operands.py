"""One matmul: which of its tensors moves, and in which order the partitioner tries its cases."""

from functools import partial

from compare.gallery.lesson_types.lesson import (
    COMPILER,
    GSPMD,
    PROGRAMS,
    TORCH,
    TORCH_SHARDY,
    Alone,
    Deviation,
    Lesson,
    Move,
)

_TP = {"tp": 4}
_XW = {"x": "T D", "w": "D F"}
_Y = {"y": "T F"}
_DECODE = {"T": 8, "D": 1024, "F": 2048}
_ORDER = {"T": 64, "D": 1024, "F": 2048}
_WEIGHTS = Move("all-gather@tp", "D·F·2", "the weights")
_decode = partial(Lesson, mesh=_TP, sizes=_DECODE, takes=_XW, gives=_Y)
_order = partial(Lesson, mesh=_TP, sizes=_ORDER, takes=_XW, gives=_Y)

OPERANDS = (
    _decode(
        name="decide-wanted-rows",
        title="Rows are required: all weights come, for eight tokens",
        story="""
Eight tokens, two on each device, and w split by columns: rows and columns want the same axis, Case 4 of the second
chapter. Here the result is not left open: y must be split by rows. Rows of y are made of rows of x and *all* of w. So
w is gathered: 4 MB, for the sake of eight tokens.

No size is looked at. A few bytes of x could be gathered, and a few of y exchanged, 170 times less. But a split that is
required is an order: the matmul is done in it, and whatever is missing for that is sent.
""",
        alone=(Alone("w", "D F", (None, "tp")),),
        alone_words="two rows of x each, and a quarter of w's columns",
        needs=(
            Move("all-gather@tp", "T·D·2", "the eight tokens"),
            Move("all-to-all@tp", "T·F·2/tp", "y, from split columns to split rows"),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (_WEIGHTS,),
                "y is required by rows, and x has its rows split in the same way. So x stays, and the other input "
                "comes.",
            ),
        ),
        rule="The input that is split as the result is required stays where it is; the other one is gathered, however "
        "large it is.",
        standing=COMPILER,
        question="How would you get the cheap way?",
        answer='Pin the product to columns: `y = pin(x @ w, None, "tp")`. What is required of the matmul is then the '
        "columns, and its small result is exchanged. We compiled it: 16 kB and 8 kB of payload.",
    ),
    _decode(
        name="decide-wanted-columns",
        title="Columns are required: the eight tokens come",
        story="""
The same inputs, and y is required by columns. w's columns are split in the same way: w stays, and x is gathered: 16
kB instead of 4 MB. The two programs differ in one word, the split of their result, and by a factor of 256 in what
they send.
""",
        alone=(Alone("x", "T D", ("tp", None)),),
        alone_words="own columns of w, and two rows of x each",
        needs=(Move("all-gather@tp", "T·D·2", "the eight tokens"),),
        rule="Weights stay where a matmul's result is required by their columns, activations where it is required by "
        "their rows.",
        standing=COMPILER,
        question="A gather can be cut into permutes that run beside pieces of the matmul, a *windowed einsum*. When is "
        "that done?",
        answer="Not on these four chips: we tried 512 to 32,768 tokens, D up to 8,192 and F up to 28,672. Over 8 chips "
        "of v5e (2x4) it does from about F = 4,200 on, whatever T and D are: bytes and work both grow with T·D, and "
        "only F sets them against each other.",
    ),
    _decode(
        name="decide-wanted-whole",
        title="The whole product is required: all weights come",
        story="""
Column-parallel, with eight tokens that everybody has, and now everybody wants all of y. One would let each device
make its own columns, and gather y: 32 kB.

"Whole" is a split that is required, too, and an order for the matmul itself where it stands on the matmul's own result:
a matmul that is required whole is done whole. Then its inputs have to be whole, and w is gathered: 4 MB. This happens
under GSPMD, and wherever the product is *pinned* whole, as every result is in the PyTorch programs of this gallery.
Only JAX under Shardy keeps the two apart, the product and the program's result (`out_shardings`), and gathers in
between.
""",
        alone=(Alone("y", "T F", (None, "tp")),),
        alone_words="each device could make its own columns",
        needs=(Move("all-gather@tp", "T·F·2", "the columns of y"),),
        but=(
            Deviation(
                (GSPMD, TORCH, TORCH_SHARDY),
                (_WEIGHTS,),
                "The required whole stands on the matmul itself: both inputs are made whole, and each device does "
                "all of the work.",
            ),
        ),
        rule="If the product itself is pinned whole, or GSPMD partitions the program, a matmul that is required "
        "whole gathers its split input, not its result. Under Shardy an `out_shardings` alone is no pin: the result "
        "is gathered.",
        standing=COMPILER,
        question="What does `pin(x @ w, None, None)` do in JAX under Shardy?",
        answer="It gathers w: the pin stands on the product. We compiled it, at 8 and at 512 tokens.",
        border="Compiled with T = 512, D = 1,024, F = 2,048 and F = 128, w's columns split or x's rows. JAX under "
        "Shardy with `out_shardings` only gathers y; JAX under GSPMD with the same, and PyTorch, whose results "
        "are pinned, under both partitioners, gather the split input, x or w, though y is smaller (with F = 128 an "
        "eighth of x). With any operation between product and result: decide-wanted-later.",
    ),
    _decode(
        name="decide-wanted-later",
        title="Required whole one operation later: the product is gathered",
        story="""
The same, and a tanh behind the matmul. Now the required whole stands on the result of tanh, and the product is a tensor
in the middle, whose split is left open. "Whole" is not propagated: a tensor whose split is left open takes any
split that it can get, and here that is w's columns.

So each device makes its own columns, tanh does not mind, and the small result is gathered: in all four programs.
""",
        alone=(Alone("x·w", "T F", (None, "tp")),),
        alone_words="each device makes its own columns",
        needs=(Move("all-gather@tp", "T·F·2", "the columns of y"),),
        rule="Propagation carries splits, never wholeness: only what is itself pinned whole is made whole.",
        standing=COMPILER,
        question="How do you make the program of the last lesson cheap everywhere?",
        answer='Pin twice: `pin(pin(x @ w, None, "tp"), None, None)`. The first says how the product is made, the '
        "second what becomes of it. We compiled it: 32 kB under both partitioners.",
    ),
    _order(
        name="decide-order-kept",
        title="The order of steps: first what can stay",
        story="""
When all splits are known, a matmul is done by the first of these steps that fits. **Batch**: a batch dim is split in
both inputs and in the result; nothing moves. **Stay**: the result is split along a dim that one input has, and that
input is split so; it stays, and the other one is gathered. **Sum**: the contracting dim is split in both; partial sums
are added up.

If none of these fits, something has to be split anew. **Bring**: the result is split; the input that has the dim is
brought to that split, and the other one is gathered. **Compare**: the result is whole, and one input's contracting dim
is split; sizes are compared. Else both inputs are gathered, and each device does all.

Here x has its rows split, and y wants them: *stay*. That w is split along the contracting dim is no help: it
is gathered.
""",
        alone=(Alone("x", "T D", ("tp", None)),),
        alone_words="whole rows of x, but only a quarter of w's rows",
        needs=(
            Move("all-to-all@tp", "T·D·2/tp", "x, from split rows to split columns"),
            Move("reduce-scatter@tp", "T·F·2", "the partial sums of y"),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (_WEIGHTS,),
                "x's rows are split as those of y must be: that fits, and comes before anything else. The cheap way "
                "would be to exchange x, so that both have the contracting dim split.",
            ),
        ),
        rule="The steps of a matmul have a fixed order: batch, stay, sum, bring, compare. Sizes count in the last one "
        "only.",
        standing=COMPILER,
        question="T = 4,096 instead of 64: is it still the wrong way?",
        answer="No. The gather of w stays at 4 MB, and the sums of y would be T·F·2 = 16 MB.",
    ),
    _order(
        name="decide-order-summed",
        title="Second, what can be summed",
        story="""
The same w and the same y, but x has its columns split: the contracting dim. No input has what y wants, so nothing can
*stay*. But they can be *summed*: both have the contracting dim split, each device multiplies what it has, and the
partial sums are added up and scattered to rows.
""",
        alone=(Alone("y", "T F", (None, None), partial="tp"),),
        alone_words="partial sums of all of y",
        needs=(Move("reduce-scatter@tp", "T·F·2", "the partial sums of y"),),
        rule="If no input is split as the result is required, and both have the contracting dim split, results are "
        "summed, not inputs gathered.",
        standing=COMPILER,
        question="y required by columns instead: what changes?",
        answer="Only which quarter a device keeps of the sum: still one reduce-scatter of T·F·2.",
    ),
    _order(
        name="decide-order-moved",
        title="Third, what can be brought to the result",
        story="""
Now w is whole. No input has y's split, and the contracting dim is split in x only: nothing stays, nothing is summed.
*Bring*: y wants rows, rows come from x, so x is brought from split columns to split rows: an all-to-all, the cheapest
of the three. w is whole, and need not move.
""",
        alone=(Alone("x", "T D", (None, "tp")),),
        alone_words="a quarter of x's columns, where its rows are required",
        needs=(Move("all-to-all@tp", "T·D·2/tp", "x, from split columns to split rows"),),
        rule="A result that is required split brings its input to that split before the matmul; the result is not "
        "moved afterwards.",
        standing=COMPILER,
        question="y required by columns, w whole as here: what is sent?",
        answer="x is gathered, T·D·2: columns of y need all of x. From w each device cuts its columns for free.",
    ),
    Lesson(
        name="decide-sum-narrow",
        title="One contracting dim split: a narrow result is summed",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 896},
        takes=_XW,
        gives=_Y,
        story="""
Case 2 of the second chapter, and the step *compare*: only x has the contracting dim split, and y is required whole.
Gather x and multiply, or cut w for free and sum up y?

This is the only place where sizes of *this* matmul are compared, and the comparison is simple: has x more numbers than
y? x has T·D, y has T·F, so it is D against F. Here D = 1,024 and F = 896: y is the smaller one, and is summed.

An all-reduce sends twice as much as an all-gather of its payload. That is not in the comparison: between F = D/2 and
F = D the sum sends more than the gather would. It saves work, though: each device multiplies a quarter.
""",
        alone=(Alone("y", "T F", (None, None), partial="tp"),),
        alone_words="own columns of x against the same rows of w",
        needs=(Move("all-gather@tp", "T·D·2", "the columns of x"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-reduce@tp", "T·F·2", "the partial sums of y"),),
                "y has fewer numbers than x, so w is cut and y is summed. Counted on the wire the gather would be "
                "cheaper, until F is less than half of D.",
            ),
        ),
        rule="If only one input's contracting dim is split and the result is required whole, the result is summed if "
        "it has fewer numbers than that input; else the input is gathered.",
        standing=COMPILER,
        question="Does the number of tokens matter?",
        answer="No: T is in both, and falls out. If w has the contracting dim split instead of x, it is T against D, "
        "in the same way: the result is summed while T < D.",
    ),
    Lesson(
        name="decide-sum-wide",
        title="A result as wide as the input: the input is gathered",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 1024},
        takes=_XW,
        gives=_Y,
        story="""
The same with F = 1,024 = D. y is no longer smaller than x, so x is gathered, and every device does all of the work. We
compiled F = 1,023 and F = 1,024: the first sums, the second gathers.

On the wire the gather is better by a factor of two. But each device computes four times as much.
""",
        alone=(Alone("x", "T D", (None, "tp")),),
        alone_words="a quarter of x's columns, and all of w",
        needs=(Move("all-gather@tp", "T·D·2", "the columns of x"),),
        rule="At D = F it turns: from there on the input is gathered, and every device does the whole matmul.",
        standing=COMPILER,
        question="Which of the two would you rather have on a chip that is busy computing?",
        answer='The sum: a quarter of the work. Pin w to rows, `w = pin(w, "tp", None)`, and it is Case 3.',
    ),
    Lesson(
        name="decide-sum-made",
        title="An input that was made, not given: summed again",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 1024},
        takes=_XW,
        gives=_Y,
        story="""
The same sizes, where x was gathered. But w is multiplied by 2 first. And now y is summed.

A parameter has the split that you gave it: w is whole, and stays so. `w * 2` is a tensor in the middle, whose split
is left open. Propagation goes through matmuls, too, and sideways: x's contracting dim is split, so that of its
partner becomes split. When the matmul is done, both have it split: *sum*. It never comes to *compare*.
""",
        alone=(Alone("w · 2", "D F", ("tp", None)), Alone("y", "T F", (None, None), partial="tp")),
        alone_words="own rows of w · 2, and partial sums of y",
        needs=(Move("all-gather@tp", "T·D·2", "the columns of x"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-reduce@tp", "T·F·2", "the partial sums of y"),),
                "`w * 2` takes the split of its partner's contracting dim. Twice the bytes of a gather, and a quarter "
                "of the work.",
            ),
        ),
        rule="Inputs of the program keep the split that you gave them; what is made from them is split to fit.",
        standing=COMPILER,
        question="Weights are stored as int8 and scaled when they are used. Which of the two is that?",
        answer="Made: the scaled weights are a tensor in the middle, and take a split from the activations. Pin them.",
    ),
)
