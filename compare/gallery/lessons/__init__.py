"""The lessons of the gallery, from one tensor to a layer of experts: what `python -m compare.teach` shows."""

from dataclasses import dataclass
from difflib import get_close_matches

from compare.gallery.lesson_types.lesson import Lesson
from compare.gallery.lessons.attention import ATTENTION
from compare.gallery.lessons.blocks import BLOCKS
from compare.gallery.lessons.caches import CACHES
from compare.gallery.lessons.lookups import LOOKUPS
from compare.gallery.lessons.matmuls import MATMULS
from compare.gallery.lessons.moves import MOVES
from compare.gallery.lessons.partitioner import PARTITIONER
from compare.gallery.lessons.pieces import PIECES
from compare.gallery.lessons.shapes import SHAPES
from compare.gallery.lessons.streams import STREAMS
from compare.gallery.lessons.weights import WEIGHTS


@dataclass(frozen=True, slots=True)
class Chapter:
    """Lessons that belong together."""

    title: str
    words: str
    lessons: tuple[Lesson, ...]


CHAPTERS = (
    Chapter(
        "Moving one tensor",
        "A mesh, a split, and what it takes to get from one split to another. Everything later is made of these.",
        MOVES,
    ),
    Chapter(
        "One matmul",
        "Two inputs, three dims, one axis: there are four cases, and only the first of them is free.",
        MATMULS,
    ),
    Chapter(
        "Pieces of a model",
        "The operations between the matmuls: a lookup, a norm, a softmax, a choice, a loop.",
        PIECES,
    ),
    Chapter(
        "Lookups, losses and statistics",
        "Operations that index a split dim, or sum over it: only their results are sent, if they are written so that "
        "the compiler recognizes them.",
        LOOKUPS,
    ),
    Chapter(
        "Attention and its cache",
        "Heads are free to split; positions are not.",
        ATTENTION,
    ),
    Chapter(
        "Caches of many sequences",
        "A server's sequences have lengths, pages and windows of their own. Which device has a place is known only at "
        "run time; whether that is seen to be the device's own, the source decides.",
        CACHES,
    ),
    Chapter(
        "Shapes that move data",
        "Reshape, transpose, concatenate, roll, index: free on one device, and full of traps on a mesh.",
        SHAPES,
    ),
    Chapter(
        "The stream between the blocks",
        "Tokens split over the axis that splits the weights. Sizes and pins decide whether tokens or weights travel.",
        STREAMS,
    ),
    Chapter(
        "Weights, adapted and trained",
        "Compressed weights, low-rank adapters, and gradients: what travels, in which type, and in which order.",
        WEIGHTS,
    ),
    Chapter(
        "Blocks",
        "A pipeline, a whole layer, a mixture of experts: all of it from the pieces above.",
        BLOCKS,
    ),
    Chapter(
        "How the partitioner decides",
        "Where the program leaves a split open, the compiler decides by rules: which operations propagate splits, "
        "and in which order; which input of a matmul moves; where a required split is made. Each rule is shown by "
        "programs on either side of its border. They are rules of the compiler named below, not laws: pin what "
        "matters to you.",
        PARTITIONER,
    ),
)

LESSONS = tuple(lesson for chapter in CHAPTERS for lesson in chapter.lessons)

TEN_FIRST = {
    "move-gather": "say what it costs to make a split tensor whole, and count its bytes",
    "move-sum": "find the partial sums in an operation, and say why an all-reduce costs twice an all-gather",
    "matmul-one-side": "predict which input of a matmul the partitioner moves, and force the other",
    "matmul-contracting": "write a row-parallel matmul, and count its one all-reduce",
    "matmul-scattered": "halve that all-reduce where the result may stay split",
    "mlp": "split a feed-forward block so that it sends one all-reduce, and explain why in that order",
    "mlp-sequence": "explain sequence parallelism: the same bytes, less memory",
    "attention-heads": "split attention over heads so that it sends nothing",
    "attention-merged": "see in a source why a batched matmul gathers heads that were split",
    "layers-fsdp-tp": "read a layer of FSDP with TP: which gathers and sums it needs, and over which axis",
}
"""The short way: lesson -> what its reader can do afterwards.  In the order of `LESSONS`."""


class LessonError(ValueError):
    """No lesson has this name."""


def find_lesson(name: str) -> tuple[Lesson, ...]:
    """The lesson of this name.  Raises `LessonError` for any other."""
    wanted = name.replace("_", "-")
    lessons = tuple(lesson for lesson in LESSONS if lesson.name == wanted)
    if not lessons:
        near = get_close_matches(wanted, [lesson.name for lesson in LESSONS], n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise LessonError(f"there is no pattern {name!r}; {hint}--list names all of them")
    return lessons
