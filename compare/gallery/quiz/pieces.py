"""Questions on pieces of a model: moves, lookups, statistics, blocks, caches, loops."""

from random import Random

from compare.gallery.lesson_types.lesson import SHARDY, TORCH, Move
from compare.gallery.quiz.question import Question, any_mesh, divide_formula, make_question, one_axis, two_axes


def ask_move(chance: Random) -> Question:
    """One tensor, from one split to another."""
    axis, mesh = one_axis(chance)
    split = {"": "- -", "T": f"{axis} -", "D": f"- {axis}"}
    before, after = chance.choice([("", "T"), ("", "D"), ("T", ""), ("D", ""), ("T", "D"), ("D", "T")])
    moves: tuple[Move, ...] = ()
    if before:
        collective = ("all-to-all", "T·D·2/" + axis) if after else ("all-gather", "T·D·2")
        moves = (Move(f"{collective[0]}@{axis}", collective[1], "parts of x"),)
    name = "move-slice" if not before else "move-exchange" if after else "move-gather"
    return make_question(
        name, mesh=mesh, sizes=_sizes(chance), splits={"x": split[before], "y": split[after]}, moves=moves
    )


def ask_sum(chance: Random) -> Question:
    """A sum over the first dim."""
    moves: tuple[Move, ...]
    if chance.random() < 0.4:
        first, second, mesh = two_axes(chance)
        splits = {"x": f"{first} {second}", "y": second}
        moves = (Move(f"all-reduce@{first}", f"D·2/{second}", "the partial sums of y"),)
    else:
        axis, mesh = one_axis(chance)
        rows = chance.random() < 0.6
        splits = {"x": f"{axis} -", "y": "-"} if rows else {"x": f"- {axis}", "y": axis}
        moves = (Move(f"all-reduce@{axis}", "D·2", "the partial sums of y"),) if rows else ()
    return make_question("move-sum", mesh=mesh, sizes=_sizes(chance), splits=splits, moves=moves)


def ask_scatter(chance: Random) -> Question:
    """A sum of matrices that stays split, by rows or by columns: the shape of the parts decides."""
    axis, mesh = one_axis(chance)
    if chance.random() < 0.4:
        rows, depth = chance.choice([(8, 1024), (8, 512), (64, 2048), (64, 1536), (4, 2048), (512, 3072), (2, 4096)])
        kind = "reduce-scatter" if depth % 1024 == 0 and rows >= 8 else "all-reduce"
        return make_question(
            "move-sum-few", mesh=mesh, sizes={"T": rows, "D": depth}, splits={"x": f"{axis} - -", "y": f"- {axis}"},
            moves=(Move(f"{kind}@{axis}", "T·D·2", "the partial sums of y"),),
        )  # fmt: skip
    rows, depth = chance.choice([(8, 1024), (32, 1024), (32, 512), (64, 1024), (128, 512), (512, 256), (64, 128)])
    kind = "reduce-scatter" if rows >= 64 and (rows, depth) != (64, 128) else "all-reduce"
    return make_question(
        "move-sum-few", mesh=mesh, sizes={"T": rows, "D": depth}, splits={"x": f"{axis} - -", "y": f"{axis} -"},
        moves=(Move(f"{kind}@{axis}", "T·D·2", "the partial sums of y"),),
    )  # fmt: skip


def ask_mlp(chance: Random) -> Question:
    """A feed-forward block, its tokens whole or split over another axis."""
    axis, tokens, mesh = any_mesh(chance)
    splits = {"x": f"{tokens} -", "w1": f"- {axis}", "w2": f"{axis} -", "y": f"{tokens} -"}
    moves = (Move(f"all-reduce@{axis}", divide_formula("T·D·2", tokens), "the partial sums of y"),)
    name = "mlp" if tokens == "-" else "layer-dp-tp"
    return make_question("mlp", mesh=mesh, sizes=_sizes(chance), splits=splits, moves=moves, rules=(name,))


def ask_sequence_parallel(chance: Random) -> Question:
    """Sequence parallelism without a pin: the smaller input is gathered."""
    axis, mesh = one_axis(chance)
    tokens, width = chance.choice([(512, 2048), (256, 4096), (1024, 4096), (1024, 512), (512, 512), (1024, 1024)])
    splits = {"x": f"{axis} -", "w1": f"- {axis}", "w2": f"{axis} -", "y": f"{axis} -"}
    if tokens < width:
        name = "sequence-unpinned"
        moves = Move(f"all-gather@{axis}", "T·D·2", "tokens"), Move(f"reduce-scatter@{axis}", "T·D·2", "partial sums")
    else:
        name = "sequence-weights"
        moves = Move(f"all-gather@{axis}", "D·F·2", "w1"), Move(f"all-gather@{axis}", "F·D·2", "w2")
    return make_question(name, mesh=mesh, sizes={"T": tokens, "F": width}, splits=splits, moves=moves)


def ask_embedding(chance: Random) -> Question:
    """An embedding: rows or columns of the table split, the ids whole, on another axis, or on the same."""
    if chance.random() < 0.4:
        axis, mesh = one_axis(chance)
        words, tokens = chance.choice([(32000, 512), (8192, 1024), (512, 1024), (512, 512)])
        splits = {"table": f"{axis} -", "ids": axis, "x": f"{axis} -"}
        moves: tuple[Move, ...] = (
            Move(f"all-gather@{axis}", "T·4", "ids"),
            Move(f"reduce-scatter@{axis}", "T·D·2", "found rows"),
        )
        if words <= tokens:
            moves = (Move(f"all-gather@{axis}", "V·D·2", "the table"),)
        return make_question("embedding-ids", mesh=mesh, sizes={"V": words, "T": tokens}, splits=splits, moves=moves)
    axis, tokens_axis, mesh = any_mesh(chance)
    sizes = {"V": chance.choice((8192, 32000)), "T": chance.choice((512, 1024))}
    if chance.random() < 0.5:
        splits = {"table": f"- {axis}", "ids": tokens_axis, "x": f"{tokens_axis} {axis}"}
        return make_question("embedding-width", mesh=mesh, sizes=sizes, splits=splits)
    splits = {"table": f"{axis} -", "ids": tokens_axis, "x": f"{tokens_axis} -"}
    needed = (Move(f"all-reduce@{axis}", divide_formula("T·D·2", tokens_axis), "found rows, and zeros"),)
    return make_question("embedding-vocab", mesh=mesh, sizes=sizes, splits=splits, moves=needed)


def ask_statistics(chance: Random) -> Question:
    """A norm, a softmax, a loss: over a split dim, or with only the tokens split."""
    axis, tokens, mesh = any_mesh(chance)
    name = chance.choice(("norm-width", "layernorm-width", "softmax-split", "cross-entropy", "gather-along"))
    program = chance.choice((SHARDY, TORCH)) if name == "layernorm-width" else SHARDY
    if tokens != "-" and chance.random() < 0.3:
        axis, tokens = "-", axis  # only tokens are split
    splits = {
        "norm-width": {"x": f"{tokens} {axis}", "scale": axis, "y": f"{tokens} {axis}"},
        "layernorm-width": {"x": f"{tokens} {axis}", "scale": axis, "shift": axis, "y": f"{tokens} {axis}"},
        "softmax-split": {"scores": f"{tokens} {axis}", "shares": f"{tokens} {axis}"},
        "cross-entropy": {"logits": f"{tokens} {axis}", "labels": tokens, "loss": tokens},
        "gather-along": {"logits": f"{tokens} {axis}", "labels": tokens, "y": tokens},
    }[name]
    formula, times = {
        "norm-width": ("T·4", 1), "layernorm-width": ("T·4", 2), "softmax-split": ("T·4", 2),
        "cross-entropy": ("T·2", 3), "gather-along": ("T·2", 1),
    }[name]  # fmt: skip
    if program == TORCH:
        formula, times = "2·T·2", 1
    moves = (
        ()
        if axis == "-"
        else (Move(f"all-reduce@{axis}", divide_formula(formula, tokens), "a number a token", times=times),)
    )
    sizes = {"T": chance.choice((256, 512, 1024))}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_position(chance: Random) -> Question:
    """One position of a tensor [B, S, D]: constant or traced, S split or D."""
    axis, mesh = one_axis(chance)
    name = chance.choice(("last-token", "last-token-masked", "read-traced", "read-traced"))
    program = chance.choice((SHARDY, TORCH)) if name == "read-traced" else SHARDY
    inner = chance.random() < 0.3
    splits = {"x": f"- - {axis}", "y": f"- {axis}"} if inner else {"x": f"- {axis} -", "y": "- -"}
    if name == "read-traced":
        splits = {"x": splits["x"], "at": "", "y": splits["y"]}
    row = Move(f"all-reduce@{axis}", "B·D·2", "the row, and zeros")
    moves: tuple[Move, ...] = (row,)
    if name == "last-token":
        moves = (Move(f"collective-permute@{axis}", "B·D·2", "the row, to the first device", senders=1), row)
    elif name == "read-traced" and program == SHARDY:
        moves = (Move(f"all-gather@{axis}", "B·S·D·2", "all positions"),)
    sizes = {"B": chance.choice((2, 4)), "S": chance.choice((256, 512)), "D": chance.choice((512, 1024))}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=() if inner else moves, program=program)


def _sizes(chance: Random) -> dict[str, int]:
    return {"T": chance.choice((256, 512, 1024)), "D": chance.choice((512, 1024, 2048))}
