"""What runs between the blocks: sequence parallelism with no pins, merged dims, weights split for storage."""

from compare.gallery.lesson_types.lesson import (
    ADVICE,
    COMPILER,
    GSPMD,
    LAW,
    PROGRAMS,
    SHARDY,
    TORCH,
    TORCH_SHARDY,
    Alone,
    Deviation,
    Lesson,
    Move,
)

_TP = {"tp": 4}
_MLP = {"x": "T D", "w1": "D F", "w2": "F D"}

STREAMS = (
    Lesson(
        name="sequence-unpinned",
        title="Sequence parallelism without a pin: few tokens",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "F": 4096},
        takes=_MLP,
        gives={"y": "T D"},
        story="""
mlp-sequence had a pin: "here all tokens are wanted". Take it away. x is split by tokens, w1 by columns, both over
`tp`: Case 4. And nothing says how `hidden` is split: by tokens, as x is, or by columns, as w1 and w2 are. Both
are possible.

The partitioner takes the smaller of the two inputs and gathers that one. Here x, with T·D numbers, is smaller than
w1, with D·F: the tokens are gathered, and all is as with the pin.
""",
        alone=(Alone("x", "T D", ("tp", None)), Alone("w1", "D F", (None, "tp"))),
        alone_words="own tokens against own columns: one block of 16",
        needs=(
            Move("all-gather@tp", "T·D·2", "the tokens"),
            Move("reduce-scatter@tp", "T·D·2", "the partial sums of y"),
        ),
        rule="If one axis splits the rows of x and the columns of w, and nothing says how the product is split, the "
        "product takes the split of its larger input (of the first, x, if both have the same size), and the other "
        "input is gathered.",
        standing=COMPILER,
        border="x is T·D, w1 is D·F: T below F gathers tokens, T from F on gathers weights. Compiled with D = 1,024 "
        "and F = 4,096, under both partitioners: T = 256, 512, 1,024, 2,048, 3,072 and 3,584 gather tokens, 4,096 "
        "and 8,192 weights (sequence-weights). Under Shardy with F = 8,192, T = 4,096 gathers tokens, T = 8,192 "
        "weights. All with silu; operations after the product can count for more than size: see the chapter on the "
        "partitioner.",
        question="A model decodes: T = 8 tokens, F = 14,336. Are weights ever gathered?",
        answer="Not by this rule: 8 is far below 14,336. The danger is in long prompts.",
    ),
    Lesson(
        name="sequence-weights",
        title="The same lines with more tokens: now the weights travel",
        mesh=_TP,
        sizes={"T": 4096, "D": 1024, "F": 4096},
        takes=_MLP,
        gives={"y": "T D"},
        story="""
Not one line differs from the lesson before; T is 4,096. Now x is as large as w1, and w1 is gathered. `hidden` comes
out split by tokens. The second matmul sums over F; its input has its tokens split, and y shall have them split, too:
so w2 is gathered as well.

This is no longer tensor parallelism. It is FSDP: every device has its tokens, and fetches all weights. Is it worse?
The payloads are those of the gather and the scatter before. But weights do not shrink with the batch, and each layer
fetches its own.
""",
        alone=(Alone("x", "T D", ("tp", None)), Alone("w1", "D F", (None, "tp"))),
        alone_words="own tokens against own columns: one block of 16",
        needs=(
            Move("all-gather@tp", "D·F·2", "w1"),
            Move("all-gather@tp", "F·D·2", "w2"),
        ),
        rule="A longer prompt alone can turn activations that travel into weights that travel. A pin says which one "
        "you mean.",
        standing=COMPILER,
        border="At T = 3,584 the tokens are gathered, at T = 4,096 = F the weights; D does not matter, for it is in "
        "both. With `pin(x, None, None)`, as in mlp-sequence, tokens are gathered at 4,096 and 8,192, too.",
        question="T = 4,096, F = 14,336. Which is gathered?",
        answer="The tokens: 4,096 is below 14,336. Wide blocks are safe for longer.",
    ),
    Lesson(
        name="sequence-windows",
        title="Sequence parallelism on eight chips: a scatter in hops",
        mesh={"dp": 2, "tp": 4},
        sizes={"B": 4, "S": 1024, "D": 1024, "F": 8192},
        takes={"x": "B S D", "w1": "D F", "w2": "F D"},
        gives={"y": "B S D"},
        story="""
Eight chips: sequences over `dp`, positions over `tp`, no pin. By hand it is an all-gather over tp of the positions of a
device's own sequences, and a reduce-scatter after the block.

The second matmul is large enough here that the partitioner cuts the reduce-scatter into hops. While a device
multiplies one part, the part before is on its way to the neighbour: a **windowed einsum**, or *collective matmul*.
Its reduce-scatter of 3 parts should be 3 hops; the ring is walked in both directions at once, and two hops carry the
zeros it starts with: 5 permutes. By its kind, such a permute looks like that of a pipeline: look at its form, and at
the matmul next to it.
""",
        alone=(Alone("y", "B S D", ("dp", None, None), partial="tp"),),
        alone_words="own sequences; of every position a partial sum",
        needs=(
            Move("all-gather@tp", "B·S·D·2/dp", "the positions of the own sequences"),
            Move("reduce-scatter@tp", "B·S·D·2/dp", "the partial sums of y"),
        ),
        but=(
            Deviation(
                (SHARDY, TORCH_SHARDY),
                (
                    Move("all-gather@tp", "B·S·D·2/dp", "the positions of the own sequences"),
                    Move("collective-permute@tp", "B·S·D·2/dp/tp", "a part of the sum, to a neighbour", times=5),
                ),
                "The reduce-scatter is five hops of a windowed einsum. The bytes of three would do.",
            ),
            Deviation(
                (GSPMD, TORCH),
                (
                    Move("all-gather@tp", "B·S·D·2/dp", "the positions of the own sequences"),
                    Move("all-gather@dp", "B·S·D·2", "the sequences of the other half"),
                    Move("reduce-scatter@tp", "B·S·D·2/dp", "the partial sums of y"),
                ),
                "Under GSPMD nothing keeps the batch split in the middle: the weights' split, whole over dp, is "
                "propagated to `hidden`, so every device gathers all sequences over dp and does twice the work, then "
                'drops half. `pin(hidden, "dp", None, "tp")` prevents that.',
            ),
        ),
        rule="The compiler may cut a gather or scatter beside a large matmul into hops: n − 1 permutes of 1/n of the "
        "payload, or two more.",
        standing=COMPILER,
        border="On v5e:2x4 with dp = 2, tp = 4 under Shardy: B·S·D·2/dp = 2 MB with F = 4,096 stays a "
        "reduce-scatter; from 4 MB with F = 8,192 on it was hops. On four chips (tp = 4, or dp = 2 with tp = 2) it "
        "stayed a scatter up to F = 14,336.",
        question="How many bytes does a device send in 5 hops, and how many in the reduce-scatter?",
        answer="5·1,048,576 = 5.2 MB against 3/4 of 4,194,304 = 3.1 MB. In return they travel while the matmul runs.",
    ),
    Lesson(
        name="sequence-windows-axes",
        title="Hops around two axes at once",
        mesh={"dp": 2, "tp": 4},
        sizes={"B": 2, "S": 2048, "D": 1024, "E": 2, "F": 4096},
        takes={"x": "B S D", "w1": "D E F", "w2": "E F D"},
        gives={"y": "B S D"},
        story="""
One sequence on each of two groups, its positions over `tp`; and the columns of w1 over both axes, too. Merged, tokens
are split over dp and tp together, and so are the 8,192 columns: Case 4 on eight devices. By hand: an all-gather of the
tokens over both axes, and a reduce-scatter after the block.

Both are cut into hops beside the matmuls, as in sequence-windows: a ring of eight devices, 7 hops a gather or
scatter, and two more each.
""",
        alone=(Alone("y", "B S D", (None, None, None), partial="dp,tp"),),
        alone_words="of every token a partial sum",
        needs=(
            Move("all-gather@dp,tp", "B·S·D·2", "the tokens"),
            Move("reduce-scatter@dp,tp", "B·S·D·2", "the partial sums of y"),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (Move("collective-permute@dp,tp", "B·S·D·2/dp/tp", "a device's part, to its neighbour", times=18),),
                "Nine hops for the gather and nine for the scatter, where seven each would do. Their form is shown as "
                "a plain permute, `start-done`, for hops are recognized by a ring around *one* axis. Look for the "
                "matmul in the name of the operation.",
            ),
        ),
        rule="A gather or scatter over two axes at once is cut into hops as one over a single axis of the same size "
        "is: n + 1 of them, n the devices of both.",
        standing=COMPILER,
        border="T = 1,024 tokens with F = 4,096: an all-gather and a reduce-scatter over both axes. With `pin` on the "
        "whole tokens the all-gather stays, and 9 hops are left for the scatter. A single axis of eight, tp = 8: "
        "the same 18, shown as hops of a windowed einsum. Over two axes with a dim each, x[T/dp, D/tp]: only the "
        "sum over tp is cut, in 5. sequence-windows has the same rule on an axis of four.",
        question="How do you tell these 18 permutes from those of a pipeline?",
        answer="By their number, n + 1 for each gather and scatter, and by what stands beside them: pieces of one "
        "matmul, with no stage dim in the program.",
    ),
    Lesson(
        name="linear-merged",
        title="F.linear merges batch and positions, and it costs nothing",
        mesh={"dp": 2, "tp": 2},
        sizes={"B": 4, "S": 512, "D": 1024, "F": 2048},
        takes={"x": "B S D", "w": "F D"},
        gives={"y": "B S F"},
        story="""
PyTorch's `F.linear` of a tensor [B, S, D] is traced as three steps: reshape to [B·S, D], a plain matmul, reshape
back. attention-merged showed how that can go wrong: B is split over dp and S over tp, and no "axis splits dim" can
say what a device then has of the merged dim.

Yet nothing is sent. The merged dim is a dim of *one* input and is not summed over; the compiler knows that a reshape
of such a dim before the matmul is the same as one behind it, moves it there, and both cancel out. In a *batched*
matmul (`torch.bmm`) the merged dim is in both inputs, and it knows no such rule.
""",
        alone=(Alone("y", "B S F", ("dp", "tp", None)),),
        alone_words="own tokens, whole weights",
        needs=(),
        rule="A merge of split dims that only passes through a plain matmul (`F.linear`) is undone by the compiler; "
        "one in a batched matmul is not.",
        standing=COMPILER,
        border="`F.linear` here: free. `torch.bmm` in attention-merged: two all-gathers. What is done with the "
        "result before it is split again matters, too: a view to heads and a transpose is a lesson of its own, in "
        "the chapter on the partitioner.",
        question="The rows of w are split over tp instead: `w[F/tp, D]`, `x[B/dp, S, D]`. What is sent, and how "
        "does y come out?",
        answer="Nothing: it is column-parallel, for F.linear's w is [out, in]. y is `[B/dp, S, F/tp]`.",
    ),
    Lesson(
        name="layers-split",
        title="A loop over a stack of layers that is split",
        mesh={"pp": 4},
        sizes={"T": 256, "D": 512, "L": 8},
        takes={"x": "T D", "stack": "L D D"},
        gives={"y": "T D"},
        story="""
The weights of 8 layers are stacked, [L, D, D], and a loop runs over them. If the stack is split over 4 devices, two
layers each, does each device run its own two layers? No! A loop runs the *same* step on every device: in step 0 all
of them need layer 0, which is on device 0 only.

So the weights travel: the stack is gathered once, or each layer is sent to everybody in its turn. Both are the same
bytes. To make the *activations* travel from device to device instead, one has to write a pipeline: see
pipeline-shift.
""",
        alone=(Alone("stack", "L D D", ("pp", None, None)),),
        alone_words="in step 0 everybody needs layer 0",
        needs=(Move("all-gather@pp", "L·D·D·2", "all layers"),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-gather@pp", "L·D·D·2", "all layers, in each turn of the loop", times=8),),
                "The gather stands inside the loop: in each of its 8 turns *all* layers are gathered, and one is "
                "used. The compiler did not move it out of the loop, nor cut out the layer first.",
            ),
        ),
        rule="Splitting the stack of a loop splits memory, not work: all layers are sent to everybody, and here "
        "in every turn of the loop.",
        standing=LAW,
        question="Is that ever wanted?",
        answer="To save memory, yes: each weight is stored once. But there is a better dim to split: the next lesson.",
    ),
    Lesson(
        name="layers-inside",
        title="The same loop, each layer split inside",
        mesh={"pp": 4},
        sizes={"T": 256, "D": 512, "L": 8},
        takes={"x": "T D", "stack": "L D D"},
        gives={"y": "T D"},
        story="""
The same loop, and the same memory on each device. But now the stack is split along its *last* dim: each device has a
quarter of the columns of every layer. In each turn of the loop everybody has something to do: column-parallel, as in
the second chapter.

The result comes out split by columns, and the next turn needs all of x to multiply. So in each turn the activations
are gathered, and the weights stay where they are. Compare the bytes with those of the lesson before.
""",
        alone=(Alone("x·w", "T D", (None, "pp")),),
        alone_words="in each turn: own columns of the product",
        needs=(Move("all-gather@pp", "T·D·2", "activations, after each turn of the loop", times=8),),
        but=(
            Deviation(
                PROGRAMS,
                (Move("all-gather@pp", "T·D·2", "activations, in each turn, and once at the end", times=9),),
                "All turns of a loop must be alike, so x is split before the first one, too, and gathered at once: "
                "one gather more than by hand.",
            ),
        ),
        rule="Split the dims inside each layer, not the stack of layers: then activations travel, and weights stay.",
        standing=ADVICE,
        border="Compiled with T = 256, 1,024 and 4,096, D = 512: the same each time. Weights travel if the axis also "
        "splits the batch: layers-fsdp-tp.",
        question="How many times less is sent than with a split stack?",
        answer="The programs emit 9 gathers of 256·512·2 bytes instead of 8 of 8·512·512·2: 14 times less. The split "
        "needs 8 of 256·512·2 instead of one of 8·512·512·2: half. With wider layers the difference grows, with more "
        "tokens it shrinks.",
    ),
    Lesson(
        name="layers-fsdp-tp",
        title="FSDP and TP together, in a loop over layers",
        mesh={"dp": 2, "tp": 2},
        sizes={"B": 4, "S": 256, "D": 512, "F": 1024, "L": 8},
        takes={"x": "B S D", "w1": "L D F", "w2": "L F D"},
        gives={"y": "B S D"},
        story="""
Training splits every weight twice: over `tp` for the work, and over `dp` once more, only to store less (FSDP). So
`w1[L, D/dp, F/tp]`, and `w2[L, F/tp, D/dp]`; x is split by sequences over dp. A loop runs over the 8 layers.

One axis at a time. `dp` splits B of x, which y keeps, and D of the weights: the weights are gathered over dp, each
layer's own in its turn. They are halves already, over tp. `tp`: column-parallel in, row-parallel out, one all-reduce
of the own sequences. Per layer: two gathers of weights, one sum of activations.
""",
        alone=(Alone("w1", "L D F", (None, "dp", "tp")), Alone("y", "B S D", ("dp", None, None), partial="tp")),
        alone_words="half of each weight's own half; then partial sums",
        needs=(
            Move("all-gather@dp", "D·F·2/tp", "w1 of a layer, in each turn", times=8),
            Move("all-gather@dp", "F·D·2/tp", "w2 of a layer, in each turn", times=8),
            Move("all-reduce@tp", "B·S·D·2/dp", "partial sums, in each turn", times=8),
        ),
        rule="FSDP with TP: in each layer gather the weights over the axis of the batch, and all-reduce activations "
        "over tp. In a loop each layer's own slice is gathered, if the dim that is split is not the loop's.",
        standing=COMPILER,
        border="layers-split has the loop's own dim split: there *all* layers are gathered in each turn. "
        "layers-inside gathers activations because no dim of its x is split over the axis that splits the weights. "
        "Here dp also splits the batch of x, so the weights are gathered. The pin at the end of a turn keeps x split "
        "by sequences.",
        question="Does the batch change what is gathered over dp?",
        answer="No: D·F·2/tp has no B and no S. With few tokens, as in decoding, the weights are nearly all that is "
        "sent.",
    ),
)
