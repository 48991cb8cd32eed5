"""Questions on the partitioner's choices: on either side of its thresholds, in JAX and PyTorch, Shardy and GSPMD."""

from random import Random

from compare.gallery.lesson_types.lesson import GSPMD, SHARDY, TORCH, Move
from compare.gallery.quiz.matmuls import ask_two_axes
from compare.gallery.quiz.question import Question, divide_formula, make_question, one_axis, two_axes

ANY = (SHARDY, GSPMD, TORCH)
BY_GSPMD = (GSPMD, TORCH)
TOKENS = ((1920, 2048), (896, 1024), (512, 1024), (2048, 2048), (1024, 1024), (2176, 2048))
"""T and F below, at and above the threshold T = F."""
_PINNED = "tp"
"""The axis that a pattern's own pins name."""


def ask_wanted_split(chance: Random) -> Question:
    """Rows or columns of a product are wanted: the input that has them stays, whatever the sizes."""
    axis, mesh = one_axis(chance)
    sizes = {"T": chance.choice((8, 64, 512, 4096)), "F": chance.choice((1024, 2048))}
    name, y, move = chance.choice((
        ("decide-wanted-rows", f"{axis} -", Move(f"all-gather@{axis}", "D·F·2", "w")),
        ("decide-wanted-columns", f"- {axis}", Move(f"all-gather@{axis}", "T·D·2", "x")),
    ))  # fmt: skip
    splits = {"x": f"{axis} -", "w": f"- {axis}", "y": y}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=(move,), program=chance.choice(ANY))


def ask_wanted_whole(chance: Random) -> Question:
    """All of a product is wanted, or of what is made of it: is the product gathered, or an input?"""
    axis, mesh = one_axis(chance)
    name = chance.choice(("decide-wanted-whole", "decide-wanted-whole", "decide-wanted-later"))
    program = chance.choice(ANY)
    rows = chance.random() < 0.5
    gathered = ("T·D·2", "x") if rows else ("D·F·2", "w")
    if name == "decide-wanted-later" or program == SHARDY:
        gathered = "T·F·2", "y"
    splits = {"x": f"{axis} -" if rows else "- -", "w": "- -" if rows else f"- {axis}", "y": "- -"}
    sizes = {"T": chance.choice((8, 512)), "F": chance.choice((512, 2048))}
    moves = (Move(f"all-gather@{axis}", *gathered),)
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_rule_order(chance: Random) -> Question:
    """Stay, sum, bring: the first step that fits."""
    axis, mesh = one_axis(chance)
    rows, columns = f"{axis} -", f"- {axis}"
    name, x, w, y, kind, payload = chance.choice((
        ("decide-order-kept", rows, rows, rows, "all-gather", "D·F·2"),
        ("decide-order-kept", columns, columns, columns, "all-gather", "T·D·2"),
        ("decide-order-summed", columns, rows, rows, "reduce-scatter", "T·F·2"),
        ("decide-order-summed", columns, rows, columns, "reduce-scatter", "T·F·2"),
        ("decide-order-moved", columns, "- -", rows, "all-to-all", f"T·D·2/{axis}"),
        ("decide-order-moved", "- -", rows, columns, "all-to-all", f"D·F·2/{axis}"),
        ("decide-order-moved", columns, "- -", columns, "all-gather", "T·D·2"),
    ))  # fmt: skip
    sizes = {"T": chance.choice((64, 256, 512)), "F": chance.choice((2048, 4096))}
    what = {"T·F·2": "the partial sums of y"}.get(payload, "x" if payload.startswith("T·D") else "w")
    moves = (Move(f"{kind}@{axis}", payload, what),)
    splits = {"x": x, "w": w, "y": y}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=chance.choice(ANY))


def ask_size_border(chance: Random) -> Question:
    """One contracting dim split, and y unsharded: sizes just below, at and above the threshold; or a computed
    input."""
    axis, mesh = one_axis(chance)
    depth = chance.choice((1024, 2048))
    size = depth + chance.choice((-128, 0, 128))
    in_x = chance.random() < 0.5
    sizes = {"D": depth, "T": 512, "F": size} if in_x else {"D": depth, "T": size, "F": 512}
    splits = {"x": f"- {axis}" if in_x else "- -", "w": "- -" if in_x else f"{axis} -", "y": "- -"}
    summed = Move(f"all-reduce@{axis}", "T·F·2", "the partial sums of y")
    gathered = Move(f"all-gather@{axis}", "T·D·2" if in_x else "D·F·2", "the split input")
    name, move = ("decide-sum-narrow", summed) if size < depth else ("decide-sum-wide", gathered)
    if in_x and chance.random() < 0.3:
        name, move = "decide-sum-made", summed
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=(move,), program=chance.choice(ANY))


def ask_token_block(chance: Random) -> Question:
    """A block whose tokens are split: few, many, or joined by something that has columns."""
    axis, mesh = one_axis(chance)
    many, width = chance.choice(TOKENS)
    splits = {"x": f"{axis} -", "w1": f"- {axis}", "w2": f"{axis} -", "y": f"{axis} -"}
    name, moves = _activations_or_weights(axis, few=many < width)
    if chance.random() < 0.25:
        name, moves = "decide-tokens-joined", _activations(axis)
        splits = {"x": f"{axis} -", "w1": f"- {axis}", "r": f"- {axis}", "w2": f"{axis} -", "y": f"{axis} -"}
    sizes = {"T": many, "F": width}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=chance.choice(ANY))


def ask_lookahead(chance: Random) -> Question:
    """tanh in the middle: GSPMD looks ahead, Shardy compares sizes."""
    axis, mesh = one_axis(chance)
    many, width = chance.choice(TOKENS)
    program = chance.choice(ANY)
    _, moves = _activations_or_weights(axis, few=program == SHARDY and many < width)
    splits = {"x": f"{axis} -", "w1": f"- {axis}", "w2": f"{axis} -", "y": f"{axis} -"}
    sizes = {"T": many, "F": width}
    return make_question("decide-looks-ahead", mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_gated_mlp(chance: Random) -> Question:
    """Llama's block, pinned or not, with fewer tokens than columns."""
    axis, mesh = _PINNED, {_PINNED: 4}
    many, width = chance.choice([(512, 1024), (512, 2048), (1024, 2048), (1920, 2048)])
    program = chance.choice(ANY)
    name = chance.choice(("decide-gated", "decide-gated-pinned"))
    moves: tuple[Move, ...] = _activations(axis)
    if name == "decide-gated" and program != SHARDY:
        size = "T·F·4" if program == TORCH else "T·F·2"
        torn = (
            Move(f"all-gather@{axis}", "D·F·2", "w3, for the product that is split by tokens"),
            Move(f"all-to-all@{axis}", f"{size}/{axis}", "that product, from tokens to columns"),
        )
        moves = moves[0], *torn, moves[1]
    splits = {"x": f"{axis} -", "w1": f"- {axis}", "w3": f"- {axis}", "w2": f"{axis} -", "y": f"{axis} -"}
    return make_question(name, mesh=mesh, sizes={"T": many, "F": width}, splits=splits, moves=moves, program=program)


def ask_axis_conflict(chance: Random) -> Question:
    """Two operands want one axis for two dims: which is exchanged, and so what the sum over T costs."""
    axis, mesh = one_axis(chance)
    name = chance.choice(("decide-first-rows", "decide-first-columns", "decide-used-once", "decide-used-twice"))
    program = chance.choice(ANY)
    rows_of_a = chance.random() < 0.5
    wins_a = name == "decide-first-rows" or (name == "decide-used-twice" and program == SHARDY)
    splits = {"a": f"{axis} -" if rows_of_a else f"- {axis}", "b": f"- {axis}" if rows_of_a else f"{axis} -", "y": "-"}
    kind, what = ("all-reduce", "partial sums of y") if wins_a == rows_of_a else ("all-gather", "columns of y")
    moves = (
        Move(f"all-to-all@{axis}", f"T·D·2/{axis}", "the operand that gives way"),
        Move(f"{kind}@{axis}", "D·2", what),
    )
    sizes = {"T": chance.choice((256, 512, 1024)), "D": chance.choice((512, 1024, 2048))}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_two_axis_sum(chance: Random) -> Question:
    """Two axes meet in a sum: of two dims they fit, of one they do not."""
    left, right, mesh = two_axes(chance)
    mesh[right] = 2
    of_a, of_b = (left, right) if chance.random() < 0.5 else (right, left)
    program = chance.choice(ANY)
    sizes = {"T": chance.choice((256, 512)), "D": chance.choice((512, 1024))}
    sums = Move(f"all-reduce@{of_a}", "D·2", "partial sums of y")
    if chance.random() < 0.5:
        moves: tuple[Move, ...] = (
            Move(f"all-reduce@{of_a}", divide_formula("D·2", of_b), "partial sums, of half of the columns"),
            Move(f"all-gather@{of_b}", "D·2", "the columns of y"),
        )
        splits = {"a": f"{of_a} -", "b": f"- {of_b}", "y": "-"}
        return make_question("decide-both-fit", mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)
    moves = (Move(f"collective-permute@{left},{right}", divide_formula("T·D·2", of_b), "halves of b", senders=2), sums)
    if program == SHARDY:
        moves = tuple(
            Move(f"all-gather@{axis}", "T·D·2", f"all rows of {name}") for axis, name in ((of_a, "a"), (of_b, "b"))
        )
    splits = {"a": f"{of_a} -", "b": f"{of_b} -", "y": "-"}
    return make_question("decide-both-clash", mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)


def ask_head_view(chance: Random) -> Question:
    """A linear layer viewed as heads: where a wanted split is paid."""
    axis, mesh = _PINNED, {_PINNED: 4}
    name = chance.choice(("decide-view-heads", "decide-view-width", "decide-view-pinned"))
    program = chance.choice(ANY)
    exchanged = name == "decide-view-pinned" or (name == "decide-view-width" and program != TORCH)
    move = Move(f"all-gather@{axis}", "B·S·D·2", "all positions of x")
    if exchanged:
        move = Move(f"all-to-all@{axis}", f"B·S·M·2/{axis}", "the product")
    y = f"- - - {axis}" if name == "decide-view-width" else f"- {axis} - -"
    sizes = {"B": chance.choice((2, 4)), "S": chance.choice((256, 512)), "D": chance.choice((512, 1024, 2048))}
    splits = {"x": f"- {axis} -", "w": "- -", "y": y}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=(move,), program=program)


def ask_two_axes_by_gspmd(chance: Random) -> Question:
    """A matmul on two axes, by the other partitioner, in either framework."""
    return ask_two_axes(chance, program=chance.choice(BY_GSPMD))


def ask_pieces_by_gspmd(chance: Random) -> Question:
    """Tokens over one axis, a layer over the other, by the other partitioner, in either framework."""
    rows, axis, mesh = two_axes(chance)
    program = chance.choice(BY_GSPMD)
    sizes = {"T": chance.choice((256, 512, 1024))}
    name = chance.choice(("mlp", "embedding-vocab", "embedding-width"))
    moves = (Move(f"all-reduce@{axis}", divide_formula("T·D·2", rows), "partial sums"),)
    if name == "mlp":
        splits = {"x": f"{rows} -", "w1": f"- {axis}", "w2": f"{axis} -", "y": f"{rows} -"}
        rules = ("layer-dp-tp",)
        return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program, rules=rules)
    if name == "embedding-vocab":
        splits = {"table": f"{axis} -", "ids": rows, "x": f"{rows} -"}
        return make_question(name, mesh=mesh, sizes=sizes, splits=splits, moves=moves, program=program)
    splits = {"table": f"- {axis}", "ids": rows, "x": f"{rows} {axis}"}
    return make_question(name, mesh=mesh, sizes=sizes, splits=splits, program=program)


def _activations(axis: str) -> tuple[Move, Move]:
    return Move(f"all-gather@{axis}", "T·D·2", "tokens"), Move(f"reduce-scatter@{axis}", "T·D·2", "partial sums of y")


def _activations_or_weights(axis: str, *, few: bool) -> tuple[str, tuple[Move, ...]]:
    """The lesson and its collectives, of few tokens or of many."""
    if few:
        return "decide-tokens-few", _activations(axis)
    weights = Move(f"all-gather@{axis}", "D·F·2", "w1"), Move(f"all-gather@{axis}", "F·D·2", "w2")
    return "decide-tokens-many", weights
