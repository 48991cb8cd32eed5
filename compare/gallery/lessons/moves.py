"""One tensor, moved from one split to another."""

from functools import partial

from compare.gallery.lesson_types.lesson import COMPILER, LAW, PROGRAMS, Alone, Deviation, Lesson, Move

_TP = {"tp": 4}
_SIZES = {"T": 512, "D": 1024}
_one_array = partial(Lesson, mesh=_TP, sizes=_SIZES, takes={"x": "T D"}, gives={"y": "T D"})

MOVES = (
    _one_array(
        name="move-slice",
        title="From whole to split: every device keeps its own part",
        story="""
A **mesh** is a grid of devices with named axes. Ours has one axis, `tp`, of 4 devices: 0, 1, 2, 3. To *split* a dim
over `tp` is to cut it into 4 equal parts and to give part i to device i. A dim that no axis splits is *whole*: every
device has all of it.

Here `x` is whole on every device, so it is stored four times. We want `y = 2x` split by columns. (Doubling is only
there so that there is something to compute.) Each device already has the columns that it needs; it cuts them out, and
works on these alone.
""",
        needs=(),
        rule="Splitting a whole tensor costs nothing: each device already has its own part.",
        standing=LAW,
        question="x is whole on 4 devices and y is split over them. How much memory does y take on each?",
        answer="A quarter of what x takes: 512·1024·2/4 = 262,144 bytes. No byte has travelled.",
    ),
    _one_array(
        name="move-gather",
        title="From split to whole: all-gather",
        story="""
Now the other way: `y = 2x` again. Each device has a quarter of the columns of x, and all of them shall have all columns
of y. No device can compute what it never had: three quarters must come from the others. The collective that does it is
the **all-gather**.

The word *payload* below is, for an all-gather, the size of what comes out, on one device. *On the wire* is what a
device must send for it: a good algorithm passes the four parts around a ring, and each device sends three parts of
four.
""",
        alone=(Alone("x", "T D", (None, "tp")),),
        alone_words="alone, a device can do nothing: three quarters are on the others",
        needs=(Move("all-gather@tp", "T·D·2", "the parts of x"),),
        rule="From split to whole over an axis of n is one all-gather: a device sends (n−1)/n of the result.",
        standing=LAW,
        question="Over 8 devices instead of 4: is more sent, and by whom?",
        answer="Each device sends 7/8 of the result instead of 3/4: a little more. All of them together send more "
        "than twice as much, because there are twice as many devices that must become whole.",
    ),
    _one_array(
        name="move-exchange",
        title="From rows to columns: all-to-all",
        story="""
`x` is split by rows, and `y = 2x` must be split by columns. Device 0 has the upper quarter of every column; it may
keep the part of it that lies in its own columns, and must give the three others away, one to each other device. All
do the same at once: an **all-to-all**.

Nothing grows here: before and after, each device has a quarter. So the payload is a quarter of the tensor, and an
all-to-all is much cheaper than gathering everything and cutting again.
""",
        alone=(Alone("x", "T D", ("tp", None)),),
        alone_words="of its rows, each device may keep one quarter",
        needs=(Move("all-to-all@tp", "T·D·2/tp", "the part that each has for each other"),),
        rule="Changing which dim an axis splits takes one all-to-all: each device sends (n−1)/n of what it has.",
        standing=LAW,
        question="How many times cheaper is it than an all-gather of x on 4 devices?",
        answer="4 times. The all-gather's payload is the whole tensor, the all-to-all's is a device's quarter, and "
        "both send 3/4 of their payload.",
    ),
    Lesson(
        name="move-sum",
        title="A sum over a split dim: all-reduce",
        mesh=_TP,
        sizes=_SIZES,
        takes={"x": "T D"},
        gives={"y": "D"},
        story="""
`y = x.sum(0)`: the rows are added up, and the rows are split. Each device adds up the rows that it has. What it then
holds has the right *shape*, but the wrong *numbers*: a **partial sum**. Adding the four partial sums up, and giving
the result to everybody, is the **all-reduce**.

This is the most important picture of the gallery: whenever an operation sums over a dim that an axis splits, the
devices are left with partial sums.
""",
        alone=(Alone("y", "D", (None,), partial="tp"),),
        alone_words="each device has a y of the right shape that is only its part of the sum",
        needs=(Move("all-reduce@tp", "D·2", "the partial sums of y"),),
        rule="A sum over a dim that an axis splits leaves partial sums; one all-reduce over that axis makes them "
        "whole.",
        standing=LAW,
        question="Why does an all-reduce put twice as much on the wire as an all-gather of the same payload?",
        answer="Because it is two things: first every device must get its own part of the sum (a reduce-scatter), "
        "then everybody must get all parts (an all-gather). Each sends (n−1)/n.",
    ),
    Lesson(
        name="move-sum-scatter",
        title="A sum whose result stays split: reduce-scatter",
        mesh=_TP,
        sizes={"S": 8, **_SIZES},
        takes={"x": "S T D"},
        gives={"y": "T D"},
        story="""
A sum again, now of 8 matrices, two on each device. But nobody needs all of `y`: device i shall have the i-th quarter
of its rows. Then only the first half of the all-reduce is needed, the **reduce-scatter**: each device sends away the
three quarters of its partial sum that others own, and adds up what comes in for its own.

That is what the split needs. What the compiler emits depends on the shape of the parts: the next lesson has the
border.
""",
        alone=(Alone("y", "T D", (None, None), partial="tp"),),
        alone_words="each device has added up its own two matrices",
        needs=(Move("reduce-scatter@tp", "T·D·2", "the partial sums of y"),),
        rule="A partial sum whose result stays split needs a reduce-scatter: half of an all-reduce.",
        standing=LAW,
        border="libtpu writes a reduce-scatter where the parts are whole tiles, as here (128 × 1,024), and an "
        "all-reduce where they are not: move-sum-few, the next lesson, has parts of 8 × 1,024.",
        question="What do a reduce-scatter and the all-gather of its result make together?",
        answer="An all-reduce. That is how it is counted, too: 2·(n−1)/n is (n−1)/n twice.",
    ),
    Lesson(
        name="move-sum-few",
        title="The same sum, in parts that are not whole tiles",
        mesh=_TP,
        sizes={"S": 8, "T": 32, "D": 1024},
        takes={"x": "S T D"},
        gives={"y": "T D"},
        story="""
The same sum with 32 rows instead of 512. Each device shall have 8 of them: a reduce-scatter of 65,536 bytes is
all that it needs.

A TPU keeps a matrix in *tiles*. libtpu scatters bf16 in pairs of tiles, 16 rows × 128 columns, and a part of 8 rows is
half of a pair. So it sums up everything for every device, and each device cuts out its own part: an **all-reduce**,
twice the bytes.
""",
        alone=(Alone("y", "T D", (None, None), partial="tp"),),
        alone_words="each device has added up its own two matrices",
        needs=(Move("reduce-scatter@tp", "T·D·2", "the partial sums of y"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-reduce@tp", "T·D·2", "the partial sums of y, of which each device keeps 8 rows"),),
                "A part of 8 × 1,024 is no whole number of 16 × 128 blocks. The partitioner asks for a reduce-scatter; "
                "libtpu's pass `reduce-scatter-decomposer` writes it as an all-reduce and a slice.",
            ),
        ),
        rule="In short: parts of 16 × 256 or more, in whole blocks of 16 rows × 128 columns, are reduce-scattered. "
        "In detail: if the result is split by rows, a part must be two or more such blocks, or become so when its "
        "rows are rounded up to a multiple of 16, which may add about half (a permute then puts the rows right). If "
        "it is split by columns, a part must be 256 columns wide or a multiple of that, and have 5 rows or more. Any "
        "other part is all-reduced, and so is a vector.",
        standing=COMPILER,
        border="Compiled with this sum on four chips of v5e: tp = 4, bf16, D = 1,024 unless said otherwise. "
        "*Split by rows.* Scattered: parts of 16, 32, 48 and 128 rows. Padded: parts of 11 to 15 rows to 16, of 21 to "
        "24, 26 and 28 to 32, of 36, 38 and 40 to 48; the program has a reduce-scatter of the padded sum and a "
        "collective-permute (two at 21 rows) that puts the rows right: with 12 rows 64·D·2 and 12·D·2 bytes, with 24 "
        "rows 128·D·2 and 24·D·2. All-reduced: parts of 8, 9, 10, 18 and 20 rows, to which padding would add 60% or "
        "more. Narrow parts: 16 × 256 and 32 × 128 scatter, 16 × 128 and 12 × 128 all-reduce. Where D is no multiple "
        "of 128 there is no rule: 16 × 192 scatters, 32 × 192 and 16 × 320 all-reduce. "
        "*Split by columns.* Scattered: parts of 256 columns with 5, 6, 7, 8, 12, 20, 24, 64 and 512 rows, of 512 "
        "columns with 8 rows, of 768 with 8 and 64. All-reduced: 1 to 4 rows, and parts of 32, 64, 128, 192, 384 and "
        "640 columns. A matmul's sum is like this one by rows, and differs by columns where parts are narrow: "
        "matmul-scattered. "
        "*Vectors* of 2 kB to 128 kB all-reduce. "
        "*Other groups of devices* have other borders: around eight chips (tp = 8) parts of 8 × 512 scatter, too; "
        "within half of a mesh (dp = 2) a matmul's [B, S, D] with S split scatters if a device has two sequences (16 "
        "rows of each and more), and all-reduces if it has one.",
        question="Decoding: 8 sequences, one token each, a row-parallel matmul, and its result split over 4 devices. "
        "Reduce-scatter or all-reduce?",
        answer="By rows a part has 2: an all-reduce. Split by columns, [8, 2048/tp], a part has 512 of them, twice "
        "256, and 8 rows: a reduce-scatter.",
    ),
)
