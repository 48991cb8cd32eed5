"""Questions on attention, caches, reshapes, loops, pipelines and experts."""

from random import Random

from compare.gallery.lesson_types.lesson import SHARDY, TORCH, Move
from compare.gallery.quiz.question import Question, any_mesh, divide_formula, make_question, one_axis, two_axes


def ask_attention(chance: Random) -> Question:
    """Heads or sequences split: free; positions split and keys pinned whole: two gathers."""
    if chance.random() < 0.35:
        axis, mesh = one_axis(chance)
        split = f"- {axis} - -"
        size = "B·S·N·H·2"
        moves = Move(f"all-gather@{axis}", size, "keys"), Move(f"all-gather@{axis}", size, "values")
        sizes = {"B": chance.choice((1, 2)), "S": chance.choice((512, 1024)), "N": 4}
        return make_question(
            "context-gather", mesh=mesh, sizes=sizes, splits=dict.fromkeys(("q", "k", "v", "y"), split), moves=moves
        )
    axis, batch, mesh = any_mesh(chance)
    split = f"{batch} - {axis} -" if chance.random() < 0.7 or batch != "-" else f"{axis} - - -"
    sizes = {"B": 4, "S": chance.choice((256, 512)), "N": 8}
    return make_question("attention-heads", mesh=mesh, sizes=sizes, splits=dict.fromkeys(("q", "k", "v", "y"), split))


def ask_cache(chance: Random) -> Question:
    """A cache, written or read, split by heads or by positions."""
    axis, mesh = one_axis(chance)
    sizes = {"B": chance.choice((2, 4)), "S": chance.choice((512, 1024, 2048))}
    if chance.random() < 0.4:
        splits = {"q": "- - -", "k": f"- {axis} - -", "v": f"- {axis} - -", "y": "- - -"}
        parts = ("B·N·2", "largest scores"), ("B·N·4", "sums of exps"), ("B·N·H·2", "partial sums")
        moves = tuple(Move(f"all-reduce@{axis}", size, what) for size, what in parts)
        return make_question("cache-read-positions", mesh=mesh, sizes=sizes, splits=splits, moves=moves)
    if chance.random() < 0.4:
        split = f"- - {axis} -"
        return make_question(
            "cache-write-heads", mesh=mesh, sizes=sizes, splits={"cache": split, "new": split, "at": "", "y": split},
            program=chance.choice((SHARDY, TORCH)),
        )  # fmt: skip
    program = chance.choice((SHARDY, TORCH))
    moves = (Move(f"all-gather@{axis}", "B·S·K·H·2", "the whole cache"),) if program == TORCH else ()
    split = f"- {axis} - -"
    splits = {"cache": split, "new": "- - - -", "at": "", "y": split}
    return make_question("cache-write-positions", mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_shape(chance: Random) -> Question:
    """Reshapes, transposes, glued weights: free if whole shards stay together."""
    axis, mesh = one_axis(chance)
    tokens = {"T": chance.choice((256, 512, 1024))}
    kind = chance.choice(("reshape-outer", "reshape-inner", "transpose-free", "transpose-moved", "fused-pairs"))
    if kind.startswith("reshape"):
        split = f"- {axis} -" if kind == "reshape-outer" else f"- - {axis}"
        moves = () if kind == "reshape-outer" else (Move(f"all-to-all@{axis}", f"T·M·2/{axis}", "stripes, for blocks"),)
        return make_question(kind, mesh=mesh, sizes=tokens, splits={"x": split, "y": f"- {axis}"}, moves=moves)
    if kind == "fused-pairs":
        return make_question(kind, mesh=mesh, sizes=tokens, splits={"x": "- -", "w": f"- - {axis}", "y": f"- {axis}"})
    first = chance.random() < 0.5
    before, along, against = (
        (f"{axis} -", f"- {axis}", f"{axis} -") if first else (f"- {axis}", f"{axis} -", f"- {axis}")
    )
    moves = (Move(f"all-to-all@{axis}", f"T·D·2/{axis}", "blocks"),) if kind == "transpose-moved" else ()
    after = against if kind == "transpose-moved" else along
    return make_question(kind, mesh=mesh, sizes={**tokens, "D": 1024}, splits={"x": before, "y": after}, moves=moves)


def ask_linear(chance: Random) -> Question:
    """`F.linear` of [B, S, D]: row by row free, column-parallel free, its contracting dim an all-reduce."""
    first, second, mesh = two_axes(chance)
    kind = chance.choice(("rows", "columns", "contracting"))
    moves: tuple[Move, ...] = ()
    if kind == "rows":
        splits = {"x": f"{first} {second} -", "w": "- -", "y": f"{first} {second} -"}
    elif kind == "columns":
        splits = {"x": f"{first} - -", "w": f"{second} -", "y": f"{first} - {second}"}
    else:
        splits = {"x": f"{first} - {second}", "w": f"- {second}", "y": f"{first} - -"}
        moves = (Move(f"all-reduce@{second}", f"B·S·F·2/{first}", "the partial sums of y"),)
    rules = {"rows": (), "columns": ("matmul-columns",), "contracting": ("matmul-contracting",)}[kind]
    sizes = {"S": chance.choice((256, 512)), "F": chance.choice((1024, 2048))}
    return make_question(
        "linear-merged", mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=TORCH,
        rules=("linear-merged", *rules),
    )  # fmt: skip


def ask_loop(chance: Random) -> Question:
    """A loop over a stack of layers: what is sent is sent in each turn."""
    moves: tuple[Move, ...]
    layers = chance.choice((4, 8, 12))
    if chance.random() < 0.4:
        sizes = {"L": layers, "S": chance.choice((128, 256)), "F": chance.choice((1024, 2048))}
        splits = {"x": "dp - -", "w1": "- dp tp", "w2": "- tp dp", "y": "dp - -"}
        moves = (
            Move("all-gather@dp", "D·F·2/tp", "w1", times=layers),
            Move("all-gather@dp", "F·D·2/tp", "w2", times=layers),
            Move("all-reduce@tp", "B·S·D·2/dp", "partial sums", times=layers),
        )
        return make_question("layers-fsdp-tp", mesh={"dp": 2, "tp": 2}, sizes=sizes, splits=splits, moves=moves)
    axis, mesh = one_axis(chance)
    sizes = {"L": layers, "T": chance.choice((128, 256))}
    if chance.random() < 0.5:
        splits = {"x": "- -", "stack": f"{axis} - -", "y": "- -"}
        moves = (Move(f"all-gather@{axis}", "L·D·D·2", "all layers", times=layers),)
        return make_question("layers-split", mesh=mesh, sizes=sizes, splits=splits, moves=moves)
    splits = {"x": "- -", "stack": f"- - {axis}", "y": "- -"}
    moves = (Move(f"all-gather@{axis}", "T·D·2", "activations", times=layers + 1),)
    return make_question("layers-inside", mesh=mesh, sizes=sizes, splits=splits, moves=moves)


def ask_experts(chance: Random) -> Question:
    """Dispatch: an exchange where the experts' axis splits the tokens, else sums."""
    moves: tuple[Move, ...]
    if chance.random() < 0.4:
        axis, mesh = one_axis(chance)
        sizes = {"C": chance.choice((32, 64)), "D": chance.choice((512, 1024))}
        splits = {"sent": f"{axis} - - -", "y": f"- {axis} - -"}
        moves = (Move(f"all-to-all@{axis}", f"G·E·C·D·2/{axis}", "boxes to their experts"),)
        return make_question("expert-dispatch", mesh=mesh, sizes=sizes, splits=splits, moves=moves)
    first, second, mesh = two_axes(chance)
    splits = {
        "x": f"{first} -", "seats": f"{first} - -", "w1": f"{second} - -", "w2": f"{second} - -", "y": f"{first} -",
    }  # fmt: skip
    moves = (
        Move(f"all-reduce@{first}", divide_formula("E·C·D·2", second), "boxes, filled with each device's tokens"),
        Move(f"all-reduce@{second}", divide_formula("T·D·2", first), "tokens, from each device's experts"),
    )
    sizes = {"T": chance.choice((256, 512)), "C": chance.choice((128, 256))}
    return make_question("dispatch-sum", mesh=mesh, sizes=sizes, splits=splits, moves=moves)


def ask_pipeline(chance: Random) -> Question:
    """A tick of a pipeline, padded or rolled; the best word of a split vocabulary."""
    moves: tuple[Move, ...]
    axis, mesh = one_axis(chance)
    if chance.random() < 0.5:
        sizes = {"B": chance.choice((4, 8)), "V": chance.choice((8192, 32000))}
        moves = (
            Move(f"all-gather@{axis}", f"{axis}·B·2", "the best value of each device"),
            Move(f"all-gather@{axis}", f"{axis}·B·4", "its id"),
        )
        return make_question(
            "sample-greedy", mesh=mesh, sizes=sizes, splits={"logits": f"- {axis}", "ids": "-"}, moves=moves
        )
    name, senders = chance.choice((("pipeline-shift", 3), ("pipeline-roll", 4)))
    moves = (Move(f"collective-permute@{axis}", "T·D·2", "activations", senders=senders),)
    sizes = {"T": chance.choice((256, 512)), "D": chance.choice((512, 1024))}
    split = f"{axis} - -"
    return make_question(name, mesh=mesh, sizes=sizes, splits={"state": split, "y": split}, moves=moves)
