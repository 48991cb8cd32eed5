"""Operations that only move data about: free on one device, not always on a mesh."""

from compare.gallery.lesson_types.lesson import (
    ADVICE,
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

_TP = {"tp": 4}
_TD = {"T": 512, "D": 1024}
_HEADS = {"T": 512, "N": 8, "H": 128, "M": 1024}
_TOKENS = {"B": 4, "S": 512, "D": 1024}
_FUSED = {"T": 512, "D": 1024, "F": 2048, "G": 4096, "C": 2}

SHAPES = (
    Lesson(
        name="reshape-outer",
        title="Merging two dims, the outer one split",
        mesh=_TP,
        sizes=_HEADS,
        takes={"x": "T N H"},
        gives={"y": "T M"},
        story="""
A reshape merges heads and their numbers: [T, N, H] becomes [T, N·H]. Row-major order puts all 128 numbers of head 0
first, then those of head 1, and so on. Device 0 has heads 0 and 1: these are numbers 0 to 255 of the merged dim, its
first quarter. The split survives the reshape.
""",
        alone=(Alone("y", "T M", (None, "tp")),),
        alone_words="heads 0 and 1 are columns 0 to 255",
        needs=(),
        rule="Merge dims with the split one outermost: the merged dim is then split in the same way, for free.",
        standing=LAW,
        question="And back: [T, 1024/tp] to [T, 8, 128]?",
        answer="Free, too: the 8 is a multiple of the 4 shards, so a device has whole heads. With 2 heads it would "
        "not be.",
    ),
    Lesson(
        name="reshape-inner",
        title="Merging two dims, the inner one split",
        mesh=_TP,
        sizes=_HEADS,
        takes={"x": "T N H"},
        gives={"y": "T M"},
        story="""
Now each head's numbers are split: device 0 has numbers 0 to 31 of *every* head. After the merge these are columns 0
to 31, 128 to 159, 256 to 287 and so on: stripes. A split into 4 equal blocks is something else, so nearly all data
has to move: each device keeps a quarter of what it has.

The best one can do is an all-to-all. What comes out depends on how well the partitioner understands reshapes.
""",
        alone=(Alone("x", "T N H", (None, None, "tp")),),
        alone_words="stripes: a quarter of every head",
        needs=(Move("all-to-all@tp", "T·M·2/tp", "stripes, for blocks"),),
        rule="A merge whose inner dim is split changes who has what: it moves data, though the code says only reshape.",
        standing=LAW,
        question="Where does this happen by accident?",
        answer="Where a weight is split on head_dim instead of on heads, because heads could not be divided by the "
        "devices.",
    ),
    Lesson(
        name="transpose-free",
        title="A transpose, the split going along",
        mesh=_TP,
        sizes=_TD,
        takes={"x": "T D"},
        gives={"y": "D T"},
        story="""
`y = x.T`. Device 0 has the first rows of x; these are the first columns of y. If y may be split by columns, each
device transposes its own part, and nothing is sent.

A split belongs to a dim, and the dim has only moved to another place.
""",
        alone=(Alone("y", "D T", (None, "tp")),),
        alone_words="each device transposes its own block",
        needs=(),
        rule="A transpose is free if the split moves with the dim.",
        standing=LAW,
        question="What would `x.T.T` cost?",
        answer="Nothing, unless somebody pinned the middle to another split.",
    ),
    Lesson(
        name="transpose-moved",
        title="A transpose, the split staying in its place",
        mesh=_TP,
        sizes=_TD,
        takes={"x": "T D"},
        gives={"y": "D T"},
        story="""
The same transpose, but y must be split by *rows*, as x was. Rows of y are columns of x, and device 0 has no whole
column.

This is the all-to-all of the first chapter, with a transpose on top. The matrices of a *Fourier transform* or of a
*mixture of experts* are moved like this.
""",
        alone=(Alone("y", "D T", (None, "tp")),),
        alone_words="transposed in place, and split over the wrong dim",
        needs=(Move("all-to-all@tp", "T·D·2/tp", "the blocks off the diagonal"),),
        rule="A transpose whose split stays on the first dim is an all-to-all.",
        standing=LAW,
        question="How many blocks stay where they are?",
        answer="4 of 16: those on the diagonal.",
    ),
    Lesson(
        name="concat-split",
        title="Putting two tensors behind each other along a split dim",
        mesh=_TP,
        sizes={"T": 512, "D": 1024, "U": 1024},
        takes={"a": "T D", "b": "T D"},
        gives={"y": "U D"},
        story="""
Each of a and b is split by rows. y is a, then b: its first quarter is the first *half* of a, its second quarter the
second half of a. So device 0 needs what devices 0 and 1 have of a, device 2 what devices 0 and 1 have of b. Only
two of the eight quarters stay where they are.

On one device a concatenation is a copy. Along a dim that nobody splits it is a copy on a mesh, too.
""",
        alone=(Alone("a", "T D", ("tp", None)), Alone("b", "T D", ("tp", None))),
        alone_words="device 0 has the first quarters of both, and needs half of a",
        needs=(
            Move("collective-permute@tp", "T·D·2/tp", "quarters, to their new places", senders=4),
            Move("collective-permute@tp", "T·D·2/tp", "the two that are left", senders=2),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (
                    Move("all-to-all@tp", "T·D·2/tp", "a and b, from split rows to split columns", times=2),
                    Move("all-to-all@tp", "T·D·2·2/tp", "y, back from split columns to split rows"),
                ),
                "The partitioner takes a detour: it exchanges rows for columns, so that the rows are whole, puts a "
                "and b together, and exchanges back. Twice the bytes of the shortest way.",
            ),
        ),
        rule="Along a dim that is whole, a concatenation is free; along a split one, nearly everything moves.",
        standing=LAW,
        question="A cache that grows by `concat([cache, new])` along split positions: what happens at each token?",
        answer="Each device's share grows by a quarter of a position, so the borders between devices shift, and the "
        "whole cache is laid out anew, every time. Caches have a fixed size and are written in place for this reason, "
        "too.",
    ),
    Lesson(
        name="roll-split",
        title="Rolling a split dim by one",
        mesh=_TP,
        sizes=_TD,
        takes={"x": "T D"},
        gives={"y": "T D"},
        story="""
`roll(x, 1)`: row t goes to row t+1, the last row to the top. Each device can shift the rows that it has. At its
border, one row must go to the next device: a permute of one row, around the ring.

Convolutions and sliding windows have the same need: the rows at the border, called a *halo*.
""",
        alone=(Alone("x", "T D", ("tp", None)),),
        alone_words="all rows but one are already on the right device",
        needs=(Move("collective-permute@tp", "1·D·2", "the last row of each device"),),
        but=(
            Deviation(
                (TORCH, TORCH_SHARDY),
                (
                    Move("all-to-all@tp", "T·D·2/tp", "x, from split rows to split columns"),
                    Move("all-to-all@tp", "T·D·2·2/tp", "x twice, back again"),
                    Move("collective-permute@tp", "T·D·2·2/tp", "the rows that are wanted of it", senders=3),
                    Move("collective-permute@tp", "127·D·2", "device 0's other rows, from device 2", senders=1),
                ),
                '`torch.roll` is traced as "put x behind x, then cut": a concatenation along the split dim, with its '
                "detour, and a slice. JAX writes a roll as two slices, in which the partitioner sees the shift.",
            ),
        ),
        rule="A shift along a split dim sends the rows that cross a border, if the compiler sees that it is a shift.",
        standing=COMPILER,
        question="roll(x, 128), where a device has 128 rows: what is sent?",
        answer="Everything: every device's whole part goes to the next. But it is the same single permute, with "
        "T·D·2/4.",
    ),
    Lesson(
        name="last-token",
        title="The last position of a split dim",
        mesh=_TP,
        sizes=_TOKENS,
        takes={"x": "B S D"},
        gives={"y": "B D"},
        story="""
To choose the next word a model looks at the last position only: `x[:, -1]`. The positions are split, the last one is
on device 3, and everybody wants it. Device 3 must send B·D numbers to the others.

A partitioner knows slices of a whole dim. For an index into a split one it needs a rule. It does this: the
result of a slice is a split tensor again, now of one position only, and its one position belongs to device 0. So the
row goes from device 3 to device 0 first, and from there to everybody.
""",
        alone=(Alone("x", "B S D", (None, "tp", None)),),
        alone_words="device 3 has what everybody wants",
        needs=(Move("all-reduce@tp", "B·D·2", "the last position, zeros of the others"),),
        but=(
            Deviation(
                PROGRAMS,
                (
                    Move("collective-permute@tp", "B·D·2", "the last position, from device 3 to device 0", senders=1),
                    Move("all-reduce@tp", "B·D·2", "from there to all: zeros of the others"),
                ),
                "The permute lays the slice out like any split tensor, from the first device on; then it is copied to "
                "all as a sum with zeros. Little more than needed here, but two collectives that wait for each other.",
            ),
        ),
        rule="An index into a split dim is data that must travel: to a device first, then to all.",
        standing=COMPILER,
        question="What would an all-gather of x have cost instead?",
        answer="Its payload is B·S·D·2 = 4 MB, 512 times the B·D·2 of what is wanted.",
    ),
    Lesson(
        name="last-token-masked",
        title="The same as a masked sum",
        mesh=_TP,
        sizes=_TOKENS,
        takes={"x": "B S D"},
        gives={"y": "B D"},
        story="""
Write what you mean in a form that partitions: put zeros everywhere but at the last position, then sum over positions.
On one device this is silly: it reads all of x to copy a row. On a mesh it is Case 3: each device sums its own, three
of them get zeros, and an all-reduce of B·D numbers brings the row to all.

This is how the twins of this project choose the last token.
""",
        alone=(Alone("y", "B D", (None, None), partial="tp"),),
        alone_words="three partial sums are zeros",
        needs=(Move("all-reduce@tp", "B·D·2", "the last position, zeros of the others"),),
        rule="A masked sum is an index that every partitioner understands.",
        standing=ADVICE,
        border="With D split instead of S it is free, as the plain index is: each device sums its own columns, over "
        "positions that are all its own.",
        question="Three quarters of what is summed is zeros. Is an all-reduce then wasteful?",
        answer="A broadcast from device 3 would put half as much on the wire. But partitioners do not make one of "
        "this, and B·D is small.",
    ),
    Lesson(
        name="fused-halves",
        title="Two matmuls fused side by side, then cut in two",
        mesh=_TP,
        sizes=_FUSED,
        takes={"x": "T D", "w": "D G"},
        gives={"y": "T F"},
        story="""
Modern feed-forward blocks have two first matmuls, *gate* and *up*, whose results are multiplied. To save a kernel
launch, people glue the weights together, [D, F + F], multiply once, and cut the result in two.

Split the glued weight by columns over 4 devices: devices 0 and 1 have all of gate, devices 2 and 3 all of up. To
multiply them number by number, pieces must be sent across: device 0 needs the first quarter of gate, which it has,
and the first quarter of up, which is on device 2.
""",
        alone=(Alone("x·w", "T G", (None, "tp")),),
        alone_words="gate is on devices 0 and 1, up on devices 2 and 3",
        needs=(
            Move("collective-permute@tp", "T·F·2/tp", "pieces of gate and up, to where they meet", senders=4),
            Move("collective-permute@tp", "T·F·2/tp", "the two that are left", senders=2),
        ),
        but=(
            Deviation(
                PROGRAMS,
                (
                    Move("collective-permute@tp", "T·G·2/tp", "gate, whole parts of it", senders=2),
                    Move("collective-permute@tp", "T·F·2/tp", "pieces of up", senders=2),
                    Move("collective-permute@tp", "T·F·2/tp", "a piece of up", senders=1),
                    Move("collective-permute@tp", "T·F·2/tp", "a piece of gate", senders=1),
                ),
                "Four permutes; one of them sends a device's whole part where half of it is wanted.",
            ),
        ),
        rule="Never cut a split dim inside a shard: glue weights so that each device has its part of both.",
        standing=ADVICE,
        question="How should the columns be ordered in the glued weight, so that a cut in two stays local?",
        answer="Gate's first quarter, up's first quarter, gate's second quarter, and so on. Or keep them apart in a "
        "dim of their own: the next lesson.",
    ),
    Lesson(
        name="fused-pairs",
        title="The same, glued along a dim of its own",
        mesh=_TP,
        sizes=_FUSED,
        takes={"x": "T D", "w": "D C F"},
        gives={"y": "T F"},
        story="""
Keep the two weights apart in a small dim of their own: [D, 2, F], with F split. It is still one matmul. But now each
device has its columns of gate *and* its columns of up, and to take `both[0]` and `both[1]` cuts a dim that is whole.
""",
        alone=(Alone("both", "C T F", (None, None, "tp")),),
        alone_words="each device has its part of gate and of up",
        needs=(),
        rule="Stack tensors that you will separate later along a dim of their own, and split another dim.",
        standing=ADVICE,
        question="A checkpoint has the glued form [D, F + F]. What do you do?",
        answer="Reshape it to [D, 2, F] once, when it is loaded.",
    ),
)
