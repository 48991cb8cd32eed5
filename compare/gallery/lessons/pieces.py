"""Pieces of a model: a feed-forward, an embedding, a norm, a softmax, a choice, a stack of layers."""

from compare.gallery.lesson_types.lesson import ADVICE, JAX, LAW, Alone, Deviation, Lesson, Move

_TP = {"tp": 4}
_MLP = {"T": 512, "D": 1024, "F": 4096}
_TABLE = {"T": 512, "V": 32000, "D": 1024}
_CHOICE = {"B": 8, "V": 32000}

PIECES = (
    Lesson(
        name="mlp",
        title="Two matmuls in a row: the feed-forward block",
        mesh=_TP,
        sizes=_MLP,
        takes={"x": "T D", "w1": "D F", "w2": "F D"},
        gives={"y": "T D"},
        story="""
A feed-forward block is two matmuls with something simple between them. Megatron's idea (arXiv 1909.08053): split the
first by columns, the second by rows. The first leaves `hidden` split by columns, for free. The function between them
works on each number alone, so it does not mind. And the columns of `hidden` are the contracting dim of the second
matmul, whose rows are split alike: Case 3.

Two matmuls, four times less work on each device, and one all-reduce.
""",
        alone=(Alone("hidden", "T F", (None, "tp")), Alone("y", "T D", (None, None), partial="tp")),
        alone_words="hidden stays split from the first matmul to the second",
        needs=(Move("all-reduce@tp", "T·D·2", "the partial sums of y"),),
        rule="Column-parallel in, row-parallel out: a block of two matmuls costs one all-reduce.",
        standing=LAW,
        question="Why not row-parallel first and column-parallel second?",
        answer="Then the all-reduce would come in the middle, of T·F·2 bytes: F is four times D. And silu of a "
        "partial sum is not a part of silu of the sum, so the all-reduce could not wait any longer.",
    ),
    Lesson(
        name="mlp-sequence",
        title="The same block with sequence parallelism",
        mesh=_TP,
        sizes=_MLP,
        takes={"x": "T D", "w1": "D F", "w2": "F D"},
        gives={"y": "T D"},
        story="""
Between the blocks of a model there are norms and additions, which look at one token at a time. With the all-reduce of
the last lesson every device has all tokens there, stores them all, and does the same work as its neighbours.

*Sequence parallelism* (arXiv 2205.05198) splits the tokens over `tp` there. Before the block an all-gather brings
them together; after it a reduce-scatter instead of the all-reduce gives each device its own. The bytes are the
same, since an all-reduce is a reduce-scatter and an all-gather. What is saved is memory and repeated work.
""",
        alone=(Alone("hidden", "T F", (None, "tp")), Alone("y", "T D", (None, None), partial="tp")),
        alone_words="inside the block everything is as before",
        needs=(
            Move("all-gather@tp", "T·D·2", "the tokens"),
            Move("reduce-scatter@tp", "T·D·2", "the partial sums of y"),
        ),
        rule="Sequence parallelism cuts the all-reduce in two, and lets the tokens stay split in between.",
        standing=LAW,
        question="How much less memory do the activations between the blocks need on each device?",
        answer="A quarter of it is left: T·D·2/4 bytes for each tensor instead of T·D·2.",
    ),
    Lesson(
        name="embedding-vocab",
        title="An embedding whose vocabulary is split",
        mesh=_TP,
        sizes=_TABLE,
        takes={"table": "V D", "ids": "T"},
        gives={"x": "T D"},
        dtypes={"ids": "s32"},
        story="""
An embedding looks up rows of a table: `x[t] = table[ids[t]]`. The table is large, so its rows, the vocabulary, are
split: device 0 has words 0 to 7,999, and so on. Every device knows all ids. Who has the row of an id? One device
only.

The trick: each device looks up the ids that it has and writes zeros for the others. The four results are partial sums
in which three of four terms are zero, and an all-reduce adds them up. A lookup is a matmul: of a table of
ones and zeros [T, V] and the table [V, D]; V is the contracting dim.
""",
        alone=(Alone("x", "T D", (None, None), partial="tp"),),
        alone_words="rows of its own words, zeros elsewhere",
        needs=(Move("all-reduce@tp", "T·D·2", "found rows, and zeros"),),
        rule="A lookup in a table with split rows needs a sum of what was looked up, not the table.",
        standing=LAW,
        question="Gathering the table would also work. How many more bytes would it send?",
        answer="The table is 32,000·1024·2 = 65.5 MB, what was looked up is 1 MB. An all-gather sends half as much "
        "for its payload as an all-reduce, so it sends 31 times as much.",
    ),
    Lesson(
        name="embedding-width",
        title="An embedding whose width is split",
        mesh=_TP,
        sizes=_TABLE,
        takes={"table": "V D", "ids": "T"},
        gives={"x": "T D"},
        dtypes={"ids": "s32"},
        story="""
Split the columns of the table instead: each device has a quarter of every word's vector. It looks all ids up, and has
a quarter of every x[t]. Nothing is sent.

But x comes out split by columns, and the first block of the model wants to read all of x: then an all-gather follows.
And if the same table is used at the end, to score words (*tied* embeddings), its split columns are the contracting
dim.
""",
        alone=(Alone("x", "T D", (None, "tp")),),
        alone_words="each device looks up its own columns",
        needs=(),
        rule="A lookup in a table with split columns is free, and its result is split by columns.",
        standing=LAW,
        question="The first block needs x whole. Which of the two embeddings is cheaper then?",
        answer="This one: an all-gather of T·D·2 puts half as much on the wire as an all-reduce of T·D·2. Models "
        "still split the vocabulary, because the head at the end is then column-parallel, and needs no sum of logits.",
    ),
    Lesson(
        name="norm-width",
        title="A norm over a split dim",
        mesh=_TP,
        sizes={"T": 512, "D": 1024},
        takes={"x": "T D", "scale": "D"},
        gives={"y": "T D"},
        story="""
RMSNorm divides each token's vector by the root of the mean of its squares. If the vector is split, each device can
square and add up its own quarter: a partial sum of one number for each token. An all-reduce of these T numbers, in
float32, is all that is needed; then each device scales its own part.

What is sent does not depend on D. It is little, but it waits: a collective of 2 kB takes a few microseconds, which is
almost only *latency*, twice in every layer. So models keep x whole there, or split the tokens instead.
""",
        alone=(Alone("mean", "T 1", (None, None), partial="tp"),),
        alone_words="one number a token, summed over own columns only",
        needs=(Move("all-reduce@tp", "T·4", "sums of squares, float32"),),
        rule="A reduction over a split dim sends what comes out of the reduction, not what goes in.",
        standing=LAW,
        question="Tokens split instead of columns: what does RMSNorm cost?",
        answer="Nothing. Each token's whole vector is on one device: that is why sequence parallelism splits tokens.",
    ),
    Lesson(
        name="softmax-split",
        title="A softmax over a split dim",
        mesh=_TP,
        sizes={"T": 512, "V": 8192},
        takes={"scores": "T V"},
        gives={"shares": "T V"},
        dtypes={"scores": "f32", "shares": "f32"},
        story="""
Softmax needs two things of the whole row: its largest number (so that exp does not overflow) and the sum of the exps.
Both are reductions: each device finds the largest of its own part, an all-reduce with *max* instead of plus finds the
largest of all; then each adds up its own exps, and an all-reduce adds those up.

The sum can only begin when the maximum is known, so these are two collectives, one after the other.
""",
        alone=(Alone("max", "T 1", (None, None), partial="tp"), Alone("sum", "T 1", (None, None), partial="tp")),
        alone_words="each device knows its own largest number (of those the largest counts, not the sum), and its own "
        "sum",
        needs=(
            Move("all-reduce@tp", "T·4", "largest numbers"),
            Move("all-reduce@tp", "T·4", "sums of exps"),
        ),
        rule="A softmax over a split dim is two small all-reduces: of the maxima, then of the sums.",
        standing=LAW,
        question="Could it be done with one?",
        answer="Yes, with an all-gather of two numbers a row from each device: its own maximum, and the sum of its "
        "exps taken with it. Everybody then corrects each sum by exp(its maximum − the largest) and adds them up. "
        "This is how flash attention merges its blocks (arXiv 1805.02867).",
    ),
    Lesson(
        name="sample-greedy",
        title="The best word of a split vocabulary",
        mesh=_TP,
        sizes=_CHOICE,
        takes={"logits": "B V"},
        gives={"ids": "B"},
        dtypes={"ids": "s32"},
        story="""
At the end of a model each device has scores for its own quarter of the vocabulary. Which word is best? Nobody needs
to see all scores. Each device finds its own best word: a value and an id. The four candidates of each sequence are
gathered, and everybody picks the same winner.

Two tiny all-gathers, of 4·B values and of 4·B ids, instead of one of B·V logits: thousands of times less.
""",
        alone=(Alone("best", "B 4", (None, "tp")),),
        alone_words="a candidate from each device",
        needs=(
            Move("all-gather@tp", "tp·B·2", "the best value of each device"),
            Move("all-gather@tp", "tp·B·4", "its id"),
        ),
        rule="An argmax over a split dim needs one winner of each device, not the numbers.",
        standing=LAW,
        question="How many bytes would gathering the logits take, in payload?",
        answer="B·V·2 = 8·32,000·2 = 512,000, against 64 + 128.",
    ),
    Lesson(
        name="sample-top",
        title="The eight best words of a split vocabulary",
        mesh=_TP,
        sizes={**_CHOICE, "k": 8},
        takes={"logits": "B V"},
        gives={"ids": "B"},
        dtypes={"ids": "s32"},
        story="""
Sampling often wants the k best words. By hand you would do as before: each device finds its own k best, the 4·k
candidates are gathered, and everybody picks the k best of those.

Whether a partitioner knows this trick is another matter. A top-k is a kind of sort, and a sort over a split dim has
no rule as simple as a sum has. Look at what is emitted: the same operation, in two frameworks. (Below only the
last of the eight is given back, which needs all eight.)
""",
        alone=(Alone("best", "B 32", (None, "tp")),),
        alone_words="by hand: k candidates from each device",
        needs=(
            Move("all-gather@tp", "tp·B·k·2", "the 8 best values of each device"),
            Move("all-gather@tp", "tp·B·k·4", "their ids"),
        ),
        but=(
            Deviation(
                JAX,
                (
                    Move("all-to-all@tp", "B·V·2/tp", "all logits, from split words to split sequences"),
                    Move("all-to-all@tp", "B·V·4/tp", "the number of each word, likewise"),
                    Move("all-to-all@tp", "B·V·4/tp", "all numbers, sorted, back to split words"),
                    Move("all-reduce@tp", "B·4", "the chosen ids"),
                ),
                "JAX's `top_k` is an operation of its own, which needs whole rows: the partitioner exchanges words "
                "for sequences, so that each device has two whole rows, and sends all logits and a number for each. "
                "PyTorch's `topk` is traced as a sort and a cut, for which the partitioner knows the trick.",
            ),
        ),
        rule="For any operation over a split dim, ask whether it can be merged from parts; then see whether the "
        "compiler does that.",
        standing=ADVICE,
        question="How would you write it in JAX so that only the candidates are sent?",
        answer="Reshape the logits to [B, 4, V/4], which keeps the split on the 4; take the top 8 of the last dim, "
        "which is whole; pin what is found whole, with its ids: the two all-gathers; then take the top 8 of these. "
        "Without that pin it became ten small collectives.",
    ),
)
