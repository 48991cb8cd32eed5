"""Questions on one matmul: each axis by itself makes one of the four cases."""

from random import Random

from compare.gallery.lesson_types.lesson import SHARDY, Move
from compare.gallery.quiz.question import Question, divide_formula, make_question, one_axis, two_axes

CASES = {
    ("T", "", "T"): "matmul-rows",
    ("", "F", "F"): "matmul-columns",
    ("D", "D", ""): "matmul-contracting",
    ("D", "D", "T"): "matmul-scattered",
    ("D", "D", "F"): "matmul-scattered",
    ("T", "F", "T"): "matmul-same-axis",
    ("T", "F", "F"): "matmul-same-axis",
    ("T", "D", "T"): "matmul-both-axes",
    ("D", "F", "F"): "matmul-both-axes",
    ("T", "", ""): "decide-wanted-whole",
    ("", "F", ""): "decide-wanted-whole",
}
"""Which dim an axis splits in x, in w and in y (empty: none) -> the lesson that says what is sent."""

CHOICES = {("T", "F", "T"): "decide-wanted-rows", ("T", "F", "F"): "decide-wanted-columns"}
"""Cases where either input could be sent: the lesson with this compiler's choice."""

PAIRS = (
    (("T", "", "T"), ("", "F", "F")),
    (("T", "", "T"), ("D", "D", "")),
    (("T", "", "T"), ("D", "D", "F")),
    (("T", "F", "T"), ("D", "D", "")),
    (("T", "F", "T"), ("D", "D", "F")),
    (("T", "D", "T"), ("D", "F", "F")),
    (("T", "D", "T"), ("", "F", "F")),
    (("T", "", "T"), ("D", "F", "F")),
)
"""What two axes do, the first and the second."""


def ask_one_axis(chance: Random) -> Question:
    """One axis, any case whose answer does not depend on sizes."""
    axis, mesh = one_axis(chance)
    case = chance.choice(list(CASES))
    cases = {axis: case}
    return make_question(
        "matmul-rows",
        mesh=mesh,
        sizes=_sizes(chance),
        splits=_splits(cases),
        moves=moves_of(cases),
        rules=rules_of(cases),
    )


def ask_two_axes(chance: Random, *, program: str = SHARDY) -> Question:
    """Two axes, each with a case of its own."""
    first, second, mesh = two_axes(chance)
    pair = chance.choice(PAIRS)
    cases = dict(zip((first, second), pair, strict=True))
    return make_question(
        "matmul-rows", mesh=mesh, sizes=_sizes(chance), splits=_splits(cases), moves=moves_of(cases),
        program=program, rules=("matmul-both-agree", *rules_of(cases)),
    )  # fmt: skip


def ask_one_side(chance: Random) -> Question:
    """The contracting dim split in one input, and y unsharded: the smaller of that input and y is sent."""
    axis, mesh = one_axis(chance)
    if chance.random() < 0.5:
        depth, width = chance.choice([(1024, 512), (2048, 512), (1024, 2048), (512, 2048), (1024, 4096)])
        sizes = {"T": chance.choice((256, 512)), "D": depth, "F": width}
        splits, moves = {"x": f"- {axis}", "w": "- -", "y": "- -"}, "T·D·2"
        gathers = depth <= width
    else:
        tokens, depth = chance.choice([(256, 1024), (512, 1024), (2048, 512), (1024, 512)])
        sizes = {"T": tokens, "D": depth, "F": chance.choice((1024, 2048))}
        splits, moves = {"x": "- -", "w": f"{axis} -", "y": "- -"}, "D·F·2"
        gathers = depth <= tokens
    move = Move(f"all-gather@{axis}", moves, "the split input") if gathers else _sum(axis)
    return make_question("matmul-one-side", mesh=mesh, sizes=sizes, splits=splits, moves=(move,))


def ask_gradient(chance: Random) -> Question:
    """The gradient of a weight: its contracting dim is the tokens."""
    if chance.random() < 0.5:
        axis, mesh = one_axis(chance)
        other = "-"
    else:
        axis, other, mesh = two_axes(chance)
    splits = {"x": f"{axis} -", "g": f"{axis} {other}", "dw": f"- {other}"}
    moves = (Move(f"all-reduce@{axis}", divide_formula("D·F·2", other), "the gradients of each device's tokens"),)
    return make_question("matmul-gradient", mesh=mesh, sizes=_sizes(chance), splits=splits, moves=moves)


def rules_of(cases: dict[str, tuple[str, str, str]]) -> tuple[str, ...]:
    """The lesson of each axis's case, and of the compiler's choice."""
    names = [name for case in cases.values() for name in (CASES[case], CHOICES.get(case, ""))]
    return tuple(dict.fromkeys(name for name in names if name))


def _sizes(chance: Random) -> dict[str, int]:
    return {"T": chance.choice((256, 512, 1024)), "D": chance.choice((512, 1024)), "F": chance.choice((2048, 4096))}


def _sum(axis: str) -> Move:
    return Move(f"all-reduce@{axis}", "T·F·2", "the partial sums of y")


def _splits(cases: dict[str, tuple[str, str, str]]) -> dict[str, str]:
    """The axis of each dim of x, w and y."""
    splits = {}
    for at, (array, dims) in enumerate({"x": "TD", "w": "DF", "y": "TF"}.items()):
        by_dim = {case[at]: axis for axis, case in cases.items() if case[at]}
        splits[array] = " ".join(by_dim.get(dim, "-") for dim in dims)
    return splits


def moves_of(cases: dict[str, tuple[str, str, str]]) -> tuple[Move, ...]:
    """The required collectives of each axis; a payload is divided by the other axis if that splits the array."""
    moves = []
    for axis, (in_x, in_w, in_y) in cases.items():
        other = [(name, case) for name, case in cases.items() if name != axis]
        of_x, of_w = ([name for name, case in other if case[at]] for at in (0, 1))
        # What comes out of the product: split by the dims that it has of x and of w.
        of_y = [name for name, (x, w, y) in other if y and (x == y or w == y)]
        if in_x == in_w == "D":
            kind = "reduce-scatter" if in_y else "all-reduce"
            moves.append(Move(f"{kind}@{axis}", divide_formula("T·F·2", *of_y), "the partial sums of y"))
        elif in_w and in_x and in_x == in_y:
            moves.append(Move(f"all-gather@{axis}", divide_formula("D·F·2", *of_w), "w"))
        elif in_w and in_x:
            moves.append(Move(f"all-gather@{axis}", divide_formula("T·D·2", *of_x), "x"))
        elif not in_y:
            moves.append(Move(f"all-gather@{axis}", divide_formula("T·F·2", *of_y), "y"))
    return tuple(moves)
