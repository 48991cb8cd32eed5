"""Binary trees over the ranks of a dim, as a double binary tree has two."""

from dataclasses import dataclass

from compare.timeline.errors import TimingError


@dataclass(frozen=True, slots=True)
class Branch:
    """A rank in a tree: ranks above and below it."""

    parent: int | None
    children: tuple[int, ...]


def grow_tree(ranks: tuple[int, ...], *, root_last: bool) -> dict[int, Branch]:
    """One tree over the ranks in order: the root is the last (or the first), the others a full binary tree below it."""
    size = len(ranks)
    if size & (size - 1):
        raise TimingError(f"a double binary tree over {size} ranks: the number of ranks is a power of two")
    root, rest = (ranks[-1], ranks[:-1]) if root_last else (ranks[0], ranks[1:])
    middle = rest[len(rest) // 2]
    tree = {root: Branch(None, (middle,))}
    pending = [(rest, root)]
    while pending:
        part, parent = pending.pop()
        half = len(part) // 2
        sides = [side for side in (part[:half], part[half + 1 :]) if side]
        tree[part[half]] = Branch(parent, tuple(side[len(side) // 2] for side in sides))
        pending += [(side, part[half]) for side in sides]
    return tree
