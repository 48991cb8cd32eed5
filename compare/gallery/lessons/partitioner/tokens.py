"""When activations move and when weights do: a feed-forward block whose tokens are split, and which says no more."""

from compare.gallery.lesson_types.lesson import ADVICE, COMPILER, GSPMD, TORCH, Alone, Deviation, Lesson, Move

_TP = {"tp": 4}
_MLP = {"x": "T D", "w1": "D F", "w2": "F D"}
_GATED = {"x": "T D", "w1": "D F", "w3": "D F", "w2": "F D"}
_Y = {"y": "T D"}
_TOKENS = Move("all-gather@tp", "T·D·2", "the tokens, before the first matmul")
_SUMS = Move("reduce-scatter@tp", "T·D·2", "the partial sums of y")
_ACTIVATIONS = (_TOKENS, _SUMS)
_COLUMNS = (Alone("hidden", "T F", (None, "tp")), Alone("y", "T D", (None, None), partial="tp"))

TOKENS = (
    Lesson(
        name="decide-tokens-few",
        title="Fewer tokens than columns, and no pin: the activations move",
        mesh=_TP,
        sizes={"T": 1920, "D": 1024, "F": 2048},
        takes=_MLP,
        gives=_Y,
        story="""
A feed-forward block with sequence parallelism around it, and no pins: x and y have their tokens split, w1 its columns
and w2 its rows, all over `tp`. How is `hidden`, the product of x and w1, split? By tokens, as x? Then the weights have
to come: two all-gathers of D·F. By columns, as w1? Then the tokens have to come, and the result is summed up: an
all-gather and a reduce-scatter of T·D.

**The larger input gets its split.** x has T·D numbers and w1 has D·F, so it is T against F. Here T = 1,920 and
F = 2,048: w1 is larger, `hidden` is split by columns, and the activations move. That is the sequence parallelism that
one wants.
""",
        alone=_COLUMNS,
        alone_words="once the tokens are gathered: columns of hidden, and partial sums of y",
        needs=_ACTIVATIONS,
        rule="If nothing says how a product is split, it takes the split of its larger input (of the first, x, if "
        "both have the same size), and the other input is gathered.",
        standing=COMPILER,
        question="x is float32 and w1 is bf16, multiplied as they are. Where does it turn?",
        answer="Shardy counts numbers: at T = F, as before (it turned between 2,044 and 2,048). GSPMD counts bytes: at "
        "T = F/2 (at 1,024 the weights moved).",
    ),
    Lesson(
        name="decide-tokens-many",
        title="As many tokens as columns: the weights move",
        mesh=_TP,
        sizes={"T": 2048, "D": 1024, "F": 2048},
        takes=_MLP,
        gives=_Y,
        story="""
The same lines with 2,048 tokens. Now x is as large as w1. At a tie the first one wins, and that is x: `hidden` is split
by tokens. Each device makes its own tokens' rows of everything, and needs all weights: w1 and w2 are gathered.

At the border both ways cost the same: T·D = D·F. With more tokens, weights are cheaper to move, and a block that
was tensor-parallel at 1,920 tokens is *fully sharded data parallel* at 2,048. It computes the same with other
collectives. A prefill of a long prompt crosses this border; a decode of a few tokens never does.
""",
        alone=(Alone("hidden", "T F", ("tp", None)),),
        alone_words="once w1 is gathered: own tokens of hidden, all columns",
        needs=(
            Move("all-gather@tp", "D·F·2", "the first weights"),
            Move("all-gather@tp", "F·D·2", "the second weights"),
        ),
        rule="Without pins, sequence parallelism turns into gathered weights when T reaches F: compile the sizes that "
        "you will run.",
        standing=COMPILER,
        question="How exactly is the border met: what does T = 2,044 give?",
        answer="Activations, still. We compiled 2,044 and 2,048, and 1,020 and 1,024 with F = 1,024. So near to a "
        "round size libtpu pads the reduce-scatter up to it, and a small permute comes on top.",
    ),
    Lesson(
        name="decide-tokens-joined",
        title="Something with split columns is added: it decides",
        mesh=_TP,
        sizes={"T": 2048, "D": 1024, "F": 2048},
        takes={"x": "T D", "w1": "D F", "r": "T F", "w2": "F D"},
        gives=_Y,
        story="""
As many tokens as in the last lesson, where weights moved. But before silu some `r` is added, which has its columns
split. And now the activations move, however many tokens there are.

The sum propagates r's column split backwards to the product, before propagation reaches the matmul: elementwise
operations come first. The sizes of x and w1 are never compared.
""",
        alone=_COLUMNS,
        alone_words="once the tokens are gathered: columns of hidden, and partial sums of y",
        needs=_ACTIVATIONS,
        rule="A tensor that is added to a product, or multiplied with it elementwise, decides how the product is "
        "split, before the sizes of the matmul's inputs are looked at.",
        standing=COMPILER,
        question="A bias of F numbers, split over tp, is added instead of r. Does it decide, too?",
        answer="No. It is broadcast over the tokens first, and broadcasts come last. At T = 4,096 the weights were "
        "gathered, and with them the bias, of F·2 = 4,096 bytes.",
    ),
    Lesson(
        name="decide-looks-ahead",
        title="tanh instead of silu: GSPMD looks ahead",
        mesh=_TP,
        sizes={"T": 1024, "D": 1024, "F": 2048},
        takes=_MLP,
        gives=_Y,
        story="""
Half as many tokens as columns: the activations should move. The only change is tanh instead of silu.

GSPMD looks ahead before it compares sizes. If the product is used once, it follows it from user to user until it meets
a split that is known, and takes the side of the input that leads there. Here it meets y, whose tokens are split, as
those of x are: so `hidden` gets tokens, and the weights are gathered, twice the bytes. silu uses its input twice:
there is no single chain to follow, and size decided. `relu` is as tanh is.

Shardy does not look ahead. It only compares.
""",
        alone=_COLUMNS,
        alone_words="once the tokens are gathered: columns of hidden, and partial sums of y",
        needs=_ACTIVATIONS,
        but=(
            Deviation(
                (GSPMD, TORCH),
                (
                    Move("all-gather@tp", "D·F·2", "the first weights"),
                    Move("all-gather@tp", "F·D·2", "the second weights"),
                ),
                "The product is used once, and what it leads to is split by tokens. This counts for more than the "
                "larger size of w1.",
            ),
        ),
        rule="Under GSPMD a known split further down, at the end of a chain of single uses, counts for more than size.",
        standing=COMPILER,
        question="y is required whole instead. What does GSPMD see ahead?",
        answer="Nothing that speaks for x or for w1. So size decides, and the activations move: an all-gather of the "
        "tokens and an all-reduce of y, under both partitioners.",
    ),
    Lesson(
        name="decide-gated",
        title="Llama's feed-forward block without a pin",
        mesh=_TP,
        sizes={"T": 1024, "D": 1024, "F": 2048},
        takes=_GATED,
        gives=_Y,
        story="""
Llama multiplies two products: `silu(x·w1) * (x·w3)`, number by number, then goes through w2. Tokens are half as many as
columns. Both products are alike, so one expects the same for both: one gather of the tokens, and one reduce-scatter.

Shardy does that. Under GSPMD the two rules of the last lessons meet. The first product goes through silu, which uses it
twice: no looking ahead, size decides, columns. The second product is used once: GSPMD looks ahead to y, and takes
tokens. Then the two are multiplied, and do not fit.
""",
        alone=_COLUMNS,
        alone_words="once the tokens are gathered: columns of hidden, and partial sums of y",
        needs=_ACTIVATIONS,
        but=(
            Deviation(
                (GSPMD,),
                (
                    _TOKENS,
                    Move("all-gather@tp", "D·F·2", "w3, for the product that is split by tokens"),
                    Move("all-to-all@tp", "T·F·2/tp", "that product, from split tokens to split columns"),
                    _SUMS,
                ),
                "One product is split by columns, the other by tokens. So the tokens are gathered for the one, the "
                "weights for the other, and one product is exchanged, so that they can be multiplied.",
            ),
            Deviation(
                (TORCH,),
                (
                    _TOKENS,
                    Move("all-gather@tp", "D·F·2", "w3, for the product that is split by tokens"),
                    Move("all-to-all@tp", "T·F·4/tp", "that product, from split tokens to split columns, float32"),
                    _SUMS,
                ),
                "As in JAX under GSPMD. The product is exchanged in float32 here.",
            ),
        ),
        rule="Two products that are alike in the code may be split differently: the code after them decides.",
        standing=COMPILER,
        border="The border between moving tokens and moving columns, T = F for one product, is in decide-tokens-few "
        "and decide-tokens-many; that GSPMD looks ahead before it compares sizes, in decide-looks-ahead. With one "
        "pin there is no border: decide-gated-pinned.",
        question="Which line would make all four programs alike?",
        answer='`hidden = pin(hidden, None, "tp")`: the next lesson.',
    ),
    Lesson(
        name="decide-gated-pinned",
        title="Llama's feed-forward block with one pin",
        mesh=_TP,
        sizes={"T": 1024, "D": 1024, "F": 2048},
        takes=_GATED,
        gives=_Y,
        story="""
The same block, with one pin: `hidden` has its columns split. The pin is propagated backwards through the multiplication
and silu to both products, before anything is compared or looked ahead for. All four programs now have the two
collectives of sequence parallelism, and nothing else. We compiled 512 and 4,096 tokens, too: the activations move.

Tensor parallelism is a choice of the author, not of the compiler. If you want it, say so: one pin for each tensor in
the middle of a block is enough.
""",
        alone=_COLUMNS,
        alone_words="once the tokens are gathered: columns of hidden, and partial sums of y",
        needs=_ACTIVATIONS,
        rule="Pin the hidden activation of each block. What is pinned is not guessed, by any partitioner, at any size.",
        standing=ADVICE,
        question="Is it as good to pin only `x @ w3`?",
        answer="Here yes: the multiplication propagates its column split to the other product. We compiled it: the "
        "same two collectives under both partitioners.",
    ),
)
