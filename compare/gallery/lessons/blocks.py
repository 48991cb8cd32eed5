"""Whole blocks: a pipeline's shift, a layer, experts."""

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

_STAGES = {"Z": 4, "T": 512, "D": 1024}
_LAYER = {"B": 4, "S": 256, "D": 1024, "N": 8, "H": 128, "F": 4096, "Q": 3}
_WEIGHTS = {"wqkv": "D Q N H", "wo": "N H D", "w1": "D F", "w2": "F D"}

BLOCKS = (
    Lesson(
        name="pipeline-shift",
        title="One tick of a pipeline",
        mesh={"pp": 4},
        sizes=_STAGES,
        takes={"state": "Z T D"},
        gives={"y": "Z T D"},
        story="""
A pipeline gives each device a few layers: a *stage*. A batch goes through in pieces (*microbatches*), so that all
stages have work. In each *tick* every stage handles its piece and hands the result to the next one.

As arrays: `state` has a dim of 4 stages, split over `pp`, so device i has what stage i works on. To pass it on is to
shift along that dim: put zeros in front, and drop the last. Only neighbours talk, and the last stage sends nothing.
""",
        alone=(Alone("state", "Z T D", ("pp", None, None)),),
        alone_words="stage i has made what stage i+1 needs",
        needs=(Move("collective-permute@pp", "T·D·2", "each stage's activations to the next", senders=3),),
        rule="A pipeline's tick is one permute between neighbours: activations travel, weights stay.",
        standing=LAW,
        question="8B parameters over 4 stages: what travels in one tick?",
        answer="The activations of one microbatch, T·D·2 bytes. None of the 16 GB of weights travels.",
    ),
    Lesson(
        name="pipeline-roll",
        title="The same tick, written as a roll",
        mesh={"pp": 4},
        sizes=_STAGES,
        takes={"state": "Z T D"},
        gives={"y": "Z T D"},
        story="""
Many pipelines write the shift as `roll(state, 1)`: shorter, and right, since the first stage's entry is overwritten
by new input anyway.

But a roll goes round: the last stage's state is sent to the first, which throws it away. So four stages send instead of
three. On a ring of chips that send has a link of its own; on a line it goes all the way back.
""",
        alone=(Alone("state", "Z T D", ("pp", None, None)),),
        alone_words="the last stage's result is used by no stage",
        needs=(Move("collective-permute@pp", "T·D·2", "each stage's activations to the next, around", senders=4),),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    *(
                        Move("collective-permute@pp", "T·D·2", f"state, to {words}", senders=senders)
                        for words, senders in (
                            ("the stage before", 3),
                            ("two before", 2),
                            ("the first, from the last", 1),
                            ("the last, from the first", 1),
                            ("two on", 2),
                            ("the next", 3),
                        )
                    ),
                    Move("collective-permute@pp", "T·D·2·2", "what was put together, to where it belongs", senders=3),
                ),
                '`torch.roll` is traced as "put x behind x, then cut". Along a dim of which each device has one '
                "entry, this sends every stage's state to every other, and once more.",
            ),
        ),
        rule="Shift by padding, not by rolling: do not send what no device needs.",
        standing=ADVICE,
        question="How much more does the roll put on the wire than the shift?",
        answer="A third: 4 senders instead of 3. With 2 stages it would be twice as much.",
    ),
    Lesson(
        name="layer-dp-tp",
        title="A whole layer over dp and tp",
        mesh={"dp": 2, "tp": 2},
        sizes=_LAYER,
        takes={"x": "B S D", **_WEIGHTS},
        gives={"y": "B S D"},
        story="""
Everything so far, put together: a transformer layer (without norms). Sequences are split over `dp`; heads and the
hidden columns over `tp`. Attention: column-parallel in, heads apart, row-parallel out: one all-reduce. Feed-forward:
column-parallel in, row-parallel out: one all-reduce. Both over `tp` only, among the devices that have the same
sequences.

A model of 32 layers does this 32 times: 64 all-reduces in each step. That is the price of tensor parallelism.
""",
        alone=(
            Alone("attention", "B S D", ("dp", None, None), partial="tp"),
            Alone("feed-forward", "B S D", ("dp", None, None), partial="tp"),
        ),
        alone_words="twice in a layer: partial sums over tp",
        needs=(
            Move("all-reduce@tp", "B·S·D·2/dp", "partial sums of attention's output"),
            Move("all-reduce@tp", "B·S·D·2/dp", "partial sums of the feed-forward's output"),
        ),
        rule="Megatron's layer: two all-reduces over tp, of the tokens that a device works on; nothing over dp.",
        standing=LAW,
        question="8 devices: dp2·tp4 or dp4·tp2? Which sends less in a layer?",
        answer="dp4·tp2: fewer tokens on each device (B·S/4), and 2·(2−1)/2 = 1 of the payload instead of 1.5. But "
        "each device then holds half of the weights instead of a quarter.",
    ),
    Lesson(
        name="layer-sequence",
        title="A whole layer with sequence parallelism",
        mesh={"tp": 4},
        sizes=_LAYER,
        takes={"x": "B S D", **_WEIGHTS},
        gives={"y": "B S D"},
        story="""
The same layer, with the tokens split over `tp` between the blocks. An all-gather comes before each block and a
reduce-scatter after it: four collectives instead of two, with the same bytes in total.

A matmul that follows an all-gather can begin with the part that a device has, while the others are on their way.
Compilers do that where it pays: they cut the gather into permutes, one beside each piece of the matmul. It is called
a *windowed einsum*, or a *collective matmul*; this layer is too small for it.
""",
        alone=(
            Alone("attention", "B S D", (None, None, None), partial="tp"),
            Alone("feed-forward", "B S D", (None, None, None), partial="tp"),
        ),
        alone_words="inside the blocks as before",
        needs=(
            Move("all-gather@tp", "B·S·D·2", "tokens, before attention"),
            Move("reduce-scatter@tp", "B·S·D·2", "partial sums of attention's output"),
            Move("all-gather@tp", "B·S·D·2", "tokens, before the feed-forward"),
            Move("reduce-scatter@tp", "B·S·D·2", "partial sums of the feed-forward's output"),
        ),
        rule="Sequence parallelism: gather before each block, scatter after it; the bytes of tensor parallelism, "
        "less memory.",
        standing=LAW,
        question="Why can the additions `x + …` stay split?",
        answer="They add number to number: whoever has its tokens of both has all it needs.",
    ),
    Lesson(
        name="expert-dispatch",
        title="Sending tokens to their experts",
        mesh={"ep": 4},
        sizes={"G": 4, "E": 4, "C": 64, "D": 512},
        takes={"sent": "G E C D"},
        gives={"y": "G E C D"},
        story="""
In a *mixture of experts* each token is worked on by a few of many feed-forward blocks, the experts. Over `ep`, each
device has one expert, and its own group of tokens. Every device has sorted its tokens into boxes: one for each
expert, with C places (full or empty, since shapes must be known when the program is compiled).

Device 0 has [E, C, D]: its boxes for all experts. It wants [G, C, D]: the boxes of all groups for its own expert. The
boxes go from "split by group" to "split by expert": an all-to-all.
""",
        alone=(Alone("sent", "G E C D", ("ep", None, None, None)),),
        alone_words="each device: boxes for all experts",
        needs=(Move("all-to-all@ep", "G·E·C·D·2/ep", "boxes to their experts"),),
        rule="Dispatch to experts is an all-to-all: the axis stops splitting the groups, and splits the experts "
        "instead.",
        standing=LAW,
        border="If the experts' axis splits no tokens, nothing is exchanged, and it is a sum: dispatch-sum.",
        question="A box is half empty. Is less sent?",
        answer="No: its shape is fixed, and empty places travel, too. The *capacity* C is a compromise between empty "
        "places and tokens that find none.",
    ),
    Lesson(
        name="moe-layer",
        title="A whole layer of experts over ep and tp",
        mesh={"ep": 2, "tp": 2},
        sizes={"G": 2, "T": 256, "E": 4, "C": 128, "D": 512, "F": 1024},
        takes={"x": "G T D", "seats": "G T E C", "w1": "E D F", "w2": "E F D"},
        gives={"y": "G T D"},
        story="""
The last step: from the tokens to the experts and back. `seats` says which token has which place in which box (a table
of ones and zeros, GShard's trick, arXiv 2006.16668), so that filling the boxes is a matmul. Boxes go to their
experts: all-to-all over `ep`. Each expert is a feed-forward block, itself split over `tp`: column-parallel in,
row-parallel out, partial sums, an all-reduce over `tp`. The results go back: a second all-to-all. And the tokens are
put together.

You know every piece of it: two exchanges and one Case 3.
""",
        alone=(
            Alone("sent", "G E C D", ("ep", None, None, None)),
            Alone("made", "E G C D", ("ep", None, None, None), partial="tp"),
        ),
        alone_words="boxes before the exchange; partial sums of the experts",
        needs=(
            Move("all-to-all@ep", "G·E·C·D·2/ep", "boxes to their experts"),
            Move("all-reduce@tp", "G·E·C·D·2/ep", "partial sums of the experts' outputs"),
            Move("all-to-all@ep", "G·E·C·D·2/ep", "boxes back"),
        ),
        rule="A layer of experts costs an all-to-all to the experts, an all-to-all back, and the collectives of each "
        "expert.",
        standing=LAW,
        question="The all-reduce sums up boxes. How could it sum up tokens instead, and why would that be less?",
        answer="Wait with it until the tokens are put together: sums can be taken in any order. There are T tokens in "
        "a group and E·C = 512 places, so half as many bytes. The twins of this project keep the partial sums in a "
        "dim of their own, split over `tp`, until then.",
    ),
    Lesson(
        name="ragged-experts",
        title="Experts by ragged_dot, split by expert",
        mesh={"ep": 4},
        sizes={"T": 512, "D": 512, "E": 8, "F": 1024},
        takes={"x": "T D", "w": "E D F", "counts": "E"},
        gives={"y": "T F"},
        dtypes={"counts": "s32"},
        story="""
`ragged_dot(x, w, counts)` multiplies the first counts[0] rows of x by expert 0, the next by expert 1, and so on: no
boxes, and nothing dropped. The experts are split over `ep`, and every device has all tokens.

By hand it is dispatch-sum: each device multiplies the rows of its own experts, zeros elsewhere, and an all-reduce of
y adds them up. But which rows these are is known only at run time, and no rule of the partitioner splits the experts'
dim of this operation: it is made whole.
""",
        alone=(Alone("y", "T F", (None, None), partial="ep"),),
        alone_words="rows of own experts, zeros elsewhere",
        needs=(Move("all-reduce@ep", "T·F·2", "rows of each device's experts"),),
        but=(
            Deviation(
                (SHARDY,),
                (Move("all-gather@ep", "E·D·F·2", "all experts' weights"),),
                "All weights come to every device, and each of them multiplies all tokens by all experts.",
            ),
        ),
        rule="`ragged_dot` gathers what splits its experts, or its tokens: split it by columns (F), which is free, or "
        "by D, an all-reduce of y.",
        standing=COMPILER,
        border="Compiled under Shardy. Columns of w split over ep (F): nothing. D split, of x and of w: an "
        "all-reduce of y, T·F·2. Tokens split, experts whole: all tokens are gathered, T·D·2, for a group's "
        "rows may be anybody's. Both split: tokens and weights are gathered. Tokens over dp, experts over ep: "
        "the same two, each over its axis. counts split: 32 bytes are summed in addition. Boxes of one size, "
        "in moe-layer and dispatch-sum, keep the weights where they are.",
        question="How are experts split over devices, then?",
        answer="By hand: `shard_map`, in which each device sends its tokens to their experts and multiplies its own; "
        "or with boxes of one size, as in moe-layer.",
        absent={
            "jax/gspmd": "GSPMD aborts the compiler: *RaggedDot is only supported with Shardy*.",
            "torchxla": "PyTorch/XLA has no operation that becomes a ragged dot.",
        },
    ),
)
