"""Which split a tensor gets that the program leaves open."""

from functools import partial

from compare.gallery.lesson_types.lesson import ADVICE, COMPILER, SHARDY, TORCH_SHARDY, Alone, Deviation, Lesson, Move

_TP = {"tp": 4}
_DP_TP = {"dp": 2, "tp": 2}
_SIZES = {"T": 512, "D": 1024}
_AB = {"a": "T D", "b": "T D"}
_Y = {"y": "D"}
_EXCHANGE = Move("all-to-all@tp", "T·D·2/tp", "b, from split columns to split rows")
_BACK = Move("all-to-all@tp", "T·D·2/tp", "a, from split rows to split columns")
_sum = partial(Lesson, mesh=_TP, sizes=_SIZES, takes=_AB, gives=_Y)

PROPAGATION = (
    Lesson(
        name="decide-both-fit",
        title="Two sources that fit together",
        mesh=_DP_TP,
        sizes=_SIZES,
        takes=_AB,
        gives=_Y,
        story="""
You say how the inputs and the result are split. You mostly say nothing about the tensors in between. The compiler
splits those in two steps. First **propagation**: it carries splits from tensor to tensor, forwards and backwards, until
each has one. Then the **partitioner** takes one operation after the other and sends what is missing.

Here `a + b` is in the middle, before the sum over T. a has its rows split over `dp`, b its columns over `tp`. These
are two axes and two dims, so `a + b` can have both: [T/dp, D/tp]. Each device cuts its part out of what it has of a
and of b: free. Only the sum over T costs something, and it is a sum of small parts.
""",
        alone=(Alone("a + b", "T D", ("dp", "tp")), Alone("y", "D", ("tp",), partial="dp")),
        alone_words="each device has one block of a + b, and its part of the sum",
        needs=(
            Move("all-reduce@dp", "D·2/tp", "partial sums, of half of the columns"),
            Move("all-gather@tp", "D·2", "the columns of y"),
        ),
        rule="A tensor whose split is left open takes all splits of its neighbours that fit together.",
        standing=COMPILER,
        question="What would `a + b` get if b were whole?",
        answer="The rows of a over dp. A whole input asks for nothing: it is cut to fit, for free.",
    ),
    Lesson(
        name="decide-both-clash",
        title="Two sources that do not fit: one dim, two axes",
        mesh=_DP_TP,
        sizes=_SIZES,
        takes=_AB,
        gives=_Y,
        story="""
The same sum on the same mesh. But now both have their *rows* split: a over `dp`, b over `tp`. Two devices hold each
half of a, and another two hold each half of b: device 1 has the first half of a and the second half of b.

One of the two has to move. If b's halves are laid out as a's are, devices 1 and 2 swap what they have of b, and `a + b`
is split over `dp`. GSPMD does this. Shardy propagates the split of a dim only as far as *all* tensors that split
this dim agree on it. Here that is nothing, so both inputs are gathered, and every device adds up all rows.
""",
        alone=(Alone("a", "T D", ("dp", None)), Alone("b", "T D", ("tp", None))),
        alone_words="device 1: the first half of a, and the second half of b",
        needs=(
            Move("collective-permute@dp,tp", "T·D·2/tp", "halves of b, between devices 1 and 2", senders=2),
            Move("all-reduce@dp", "D·2", "partial sums of y"),
        ),
        but=(
            Deviation(
                (SHARDY, TORCH_SHARDY),
                (
                    Move("all-gather@dp", "T·D·2", "all rows of a"),
                    Move("all-gather@tp", "T·D·2", "all rows of b"),
                ),
                "Two axes ask for the same dim of `a + b`. Shardy gives it to neither: `a + b` stays whole, both "
                "inputs are gathered, and no device is spared any work. GSPMD takes the split of the first.",
            ),
        ),
        rule="Two different axes on one dim do not fit: GSPMD takes the first source's, Shardy takes neither. Decide "
        "it with a pin.",
        standing=COMPILER,
        question="`a + b` is pinned to rows over dp. What do the two send then?",
        answer="The same: the permute of b's halves, in both. With the pin there is nothing left to decide.",
    ),
    _sum(
        name="decide-first-rows",
        title="Two sources want one axis: a + b is split as a is",
        story="""
a has its rows split, b its columns, both over `tp`. An axis can split one dim of a tensor only. So `a + b` gets rows
or columns, and one input is exchanged: the same bytes in either case. Nothing in the mesh speaks for one or the
other.

What was written first decides. In `a + b` that is a: the sum is split by rows, and b is exchanged. You can tell by
what comes after it. Summing up rows that are split leaves partial sums: an **all-reduce**.
""",
        alone=(Alone("a + b", "T D", ("tp", None)), Alone("y", "D", (None,), partial="tp")),
        alone_words="once b is exchanged: rows of a + b, and partial sums of y",
        needs=(_EXCHANGE, Move("all-reduce@tp", "D·2", "the partial sums of y")),
        rule="If two inputs of an elementwise operation use one axis for different dims, the first input keeps its "
        "split.",
        standing=COMPILER,
        question="Three inputs: `a + b + c`, a by columns, b and c by rows. Do two outvote one?",
        answer="No. `a + b` is made first, and gets a's columns; then it meets c, and is the first there. So b and c "
        "are both exchanged. We compiled it: two all-to-alls under both partitioners.",
    ),
    _sum(
        name="decide-first-columns",
        title="The same sum written b + a: split as b is",
        story="""
The same inputs and the same result; only `a + b` has become `b + a`. Now b is the first, the sum is split by columns,
and a is exchanged. Each device has whole columns, so the sum over T is done without anybody else, and the four
quarters of y are put together: an **all-gather**.

For mathematics the two programs are the same. For the partitioner they are two different ones.
""",
        alone=(Alone("b + a", "T D", (None, "tp")), Alone("y", "D", ("tp",))),
        alone_words="once a is exchanged: columns of b + a, and a quarter of y",
        needs=(_BACK, Move("all-gather@tp", "D·2", "the columns of y")),
        rule="The order in which operands are written can change what is sent; if that matters, pin the result.",
        standing=ADVICE,
        question="Which of the two programs sends less, and by how much?",
        answer="This one, by D·2·3/4 = 1,536 bytes a device: an all-gather sends half as much as an all-reduce. The "
        "exchange costs the same in both.",
    ),
    _sum(
        name="decide-used-once",
        title="A function in between: tanh(b) + a",
        story="""
`tanh(b) + a`: b comes first, through a function of each number. Such a function propagates the split: tanh(b) has b's
columns, and is the first operand of the sum. So it wins, as in the last lesson.

Operations that work on each number alone, or only move numbers about, go first in propagation: tanh, additions,
reshapes, transposes. Matmuls and sums over a dim come later, broadcasts last.
""",
        alone=(Alone("tanh(b)", "T D", (None, "tp")), Alone("y", "D", ("tp",))),
        alone_words="columns of tanh(b), and once a is exchanged a quarter of y",
        needs=(_BACK, Move("all-gather@tp", "D·2", "the columns of y")),
        rule="Splits are propagated first through operations on each number, reshapes and transposes, then through "
        "matmuls and sums, and last through broadcasts.",
        standing=COMPILER,
        question="`a + tanh(b)`: which one is exchanged?",
        answer="b, after tanh: a is written first. The function changes nothing in that.",
    ),
    _sum(
        name="decide-used-twice",
        title="A tensor that is used twice: b · b + a",
        story="""
`b * b + a`. Again b is the first, and again a function of each number stands in between. But b is used twice, as both
factors.

Shardy lets tensors that are used *once* go first: one that is used in several places might be required in several
splits. So in its first round `b * b` gets nothing, and the sum takes the rows of a. When it is the turn of b, the
place is taken. GSPMD does not count uses here.

`silu(b)` is `b · sigmoid(b)`, and uses b twice, too. `tanh` and `relu` use it once.
""",
        alone=(Alone("b · b", "T D", (None, "tp")),),
        alone_words="columns of b · b: which of the two is exchanged?",
        needs=(_BACK, Move("all-gather@tp", "D·2", "the columns of y")),
        but=(
            Deviation(
                (SHARDY, TORCH_SHARDY),
                (
                    Move("all-to-all@tp", "T·D·2/tp", "b · b, from split columns to split rows"),
                    Move("all-reduce@tp", "D·2", "the partial sums of y"),
                ),
                "b is used twice, so its split is propagated a round later than that of a: the sum is split by rows.",
            ),
        ),
        rule="Under Shardy the split of a tensor that is used several times is propagated after those of tensors "
        "that are used once.",
        standing=COMPILER,
        question="`b * b + a * a`: who wins under Shardy?",
        answer="b: both are used twice, so both come in the same round, and b is the first there.",
    ),
)
