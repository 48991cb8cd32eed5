"""Where a required split is made: through a view and a transpose, and in attention whose head_dim is split."""

from functools import partial

from compare.gallery.lesson_types.lesson import (
    ADVICE,
    COMPILER,
    GSPMD,
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
_SIZES = {"B": 2, "S": 256, "D": 1024, "M": 1024, "N": 8, "H": 128}
_XW = {"x": "B S D", "w": "M D"}
_Y = {"y": "B N S H"}
_EXCHANGE = Move("all-to-all@tp", "B·S·M·2/tp", "the product, from split positions to split numbers")
_GATHER = Move("all-gather@tp", "B·S·D·2", "all positions of x")
_DECODE = {"B": 2, "S": 1024, "K": 2, "G": 4, "H": 128}
_CACHE = {"q": "B K G H", "k": "B S K H", "v": "B S K H"}
_SCORES = Move("all-reduce@tp", "B·K·G·S·2", "partial sums of the scores")
_view = partial(Lesson, mesh=_TP, sizes=_SIZES, takes=_XW, gives=_Y)

HEADS = (
    _view(
        name="decide-view-heads",
        title="A view and a transpose of a linear layer, required by heads",
        story="""
Every attention begins like this: the result of a linear layer is viewed as heads, [B, S, N, H], and transposed to [B,
N, S, H]. x has its positions split (sequence parallelism), w is whole, and the result is required by heads. Where does
the data move?

You might expect that the product comes out by positions and is then exchanged, from positions to heads: an all-to-all.
But a required split travels **backwards**, through the transpose (heads are the third dim there) and through the view
(heads are the outer part of the last dim: reshape-outer) to the matmul. The matmul then is *required* by columns. x,
its input, has its positions split: x is gathered. That is four times the bytes of the exchange.
""",
        alone=(Alone("product", "B S M", (None, "tp", None)),),
        alone_words="a quarter of the positions, all heads",
        needs=(_EXCHANGE,),
        but=(
            Deviation(
                PROGRAMS,
                (_GATHER,),
                "The required heads travel back to the matmul, whose columns are then required. Columns need all of "
                "x: an all-gather instead of an all-to-all of the product.",
            ),
        ),
        rule="Data moves where a required split can travel back no further: mostly at the input of the matmul before "
        "the views, not at the end.",
        standing=COMPILER,
        question="Does it matter how wide x is?",
        answer="Not for the decision: with D = 512 and D = 4,096 x is gathered, too, whose payload is B·S·D·2. The "
        "exchange would be B·S·M·2/4, whatever D is.",
    ),
    _view(
        name="decide-view-width",
        title="The same view, required by numbers within each head",
        story="""
Now a quarter of *each head's* numbers is required on each device. The view has merged heads and numbers, numbers
inside: a split of them is stripes in the merged dim (reshape-inner), and no axis can split a dim like that. So in JAX
it can not travel back through the view. It stops there, the product keeps its positions, and is exchanged: an
all-to-all.

In PyTorch there is no view in the way. `F.linear` is traced as reshape, matmul, reshape, and a view right behind it
is one more reshape. The compiler's first clean-up makes one matmul of all: x times w viewed as [N, H, D]. The numbers
of each head are then a dim of the matmul itself; the required split reaches it, and x is gathered, as in the last
lesson.
""",
        alone=(Alone("product", "B S M", (None, "tp", None)),),
        alone_words="a quarter of the positions, all numbers of all heads",
        needs=(_EXCHANGE,),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (_GATHER,),
                "The view is folded into the matmul before splits are propagated: what is required of the view is "
                "required of the matmul, and its input is gathered.",
            ),
        ),
        rule="A split travels back through a view if the view keeps its blocks together: the outer part of a merged "
        "dim does, the inner part does not.",
        standing=COMPILER,
        question="Which is cheaper here, a split that travels or one that is stopped?",
        answer="The one that is stopped: what is exchanged is a quarter of what is gathered, B·S·M·2/4 against "
        "B·S·D·2.",
    ),
    _view(
        name="decide-view-pinned",
        title="A pin in front of the view stops the required split",
        story="""
Heads are required again, as in the first of these three lessons. But the product is pinned to what it is anyway:
positions. A required split does not travel through a pin. So the matmul is done by positions, without anybody
else, and the exchange comes after it, where you would have put it: a quarter of the bytes, in all four programs.
""",
        alone=(Alone("product", "B S M", (None, "tp", None)),),
        alone_words="a quarter of the positions, all heads",
        needs=(_EXCHANGE,),
        rule="To choose where data moves, pin the tensor in front of that place.",
        standing=ADVICE,
        question="Instead of a pin, a residual with split positions is added to the product. Is that as good?",
        answer="Yes: the addition propagates its split to the product, and operations on each number go first. We "
        "compiled it: the all-to-all, under both partitioners.",
    ),
    Lesson(
        name="gqa-head-dim",
        title="Decoding with few KV heads: head_dim split",
        mesh=_TP,
        sizes=_DECODE,
        takes=_CACHE,
        gives={"y": "B K G H"},
        story="""
Grouped-query attention with 2 KV heads, on 4 devices. Heads cannot be divided by 4, so somebody splits H, the numbers
of each head: of the queries, and of the cache of keys and values. Each device has a quarter of every head.

H is the contracting dim of the scores, and is split in both inputs: partial sums. So the **scores** are summed: an
all-reduce of one number for each query head and each position of the text. Then the softmax is over S, which is whole.
And in the second matmul H is in the values and in the result, and is not summed over: free.

The cache does not move. But what is sent grows with the text, which it does not if heads or positions are split.
""",
        alone=(Alone("scores", "B K G S", (None, None, None, None), partial="tp"),),
        alone_words="scores of all heads and positions, from a quarter of each head's numbers",
        needs=(_SCORES,),
        rule="With head_dim split, attention sums its scores: bytes that grow with the length of the text, in every "
        "layer.",
        standing=LAW,
        question="The positions have been turned with RoPE, which mixes the first half of a head's numbers with the "
        "second. What does that cost here?",
        answer="Number h needs number h + H/2, which is two devices on: a permute, by hand. We compiled `q * cos + "
        "concat(-q2, q1) * sin`: four permutes and three all-to-alls. Pin what is turned whole, and split it "
        "afterwards: then nothing is sent.",
    ),
    Lesson(
        name="gqa-head-dim-whole",
        title="Decoding with head_dim split, the whole result required",
        mesh=_TP,
        sizes=_DECODE,
        takes=_CACHE,
        gives={"y": "B K G H"},
        story="""
The same attention, but everybody wants all of the result, which is small: 4 kB. So sum the scores, make a quarter of
each head, and gather that.

You have seen what "whole" can do: if it stands on the matmul itself, the matmul is done whole, and its inputs are
gathered. The second matmul's input is the **cache of the values**. Only JAX under Shardy gathers the result.
""",
        alone=(Alone("y", "B K G H", (None, None, None, "tp")),),
        alone_words="once the scores are summed: a quarter of each head of the result",
        needs=(_SCORES, Move("all-gather@tp", "B·K·G·H·2", "the result")),
        but=(
            Deviation(
                (GSPMD, TORCH, TORCH_SHARDY),
                (_SCORES, Move("all-gather@tp", "B·S·K·H·2", "the values of the whole cache")),
                "The result is required whole, and it is the matmul's own: the matmul is done whole, and the values "
                "are gathered for it, in every step of the decode.",
            ),
        ),
        rule="Never want the whole result of a matmul that reads a cache; let the next matmul sum over what is split.",
        standing=ADVICE,
        question="What follows attention in a model, and why is that lucky?",
        answer="The output projection: its contracting dim is heads and numbers, merged. If its weights are "
        "split along the numbers, too, the result may stay split: besides the scores only the projection's own result "
        "is summed.",
    ),
)
