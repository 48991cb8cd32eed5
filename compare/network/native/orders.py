"""Orders in which the chunks of a collective can go through the dims.

They do not depend on rates: the best of them is no worse than the order as the dims stand, which is the first, and has
to be tried on a faster machine as well.
"""

from functools import cache
from itertools import permutations, product
from math import comb

Order = tuple[int, ...]
"""Of dims."""

_PARTS = {2: 16, 3: 16, 4: 8, 5: 6, 6: 5}
"""By the number of dims: into how many parts the chunks are cut, at most."""
_MOST_TURNS = 250_000
"""Chunks times the orders tried."""
_MOST_DIMS = 4
"""Up to which every order is tried, of all chunks alike."""


@cache
def list_orders(num_dims: int, num_chunks: int) -> tuple[tuple[Order, ...], ...]:
    """For each schedule the order of every chunk.

    All chunks in one order; and the chunks divided, in parts, between the orders that begin in one dim and go on to the
    next, behind the last the first: those of one order are spread evenly among the others.
    """
    if num_dims == 1:
        return (((0,),) * num_chunks,)
    turned = tuple(tuple((first + dim) % num_dims for dim in range(num_dims)) for first in range(num_dims))
    alike = tuple(permutations(range(num_dims))) if num_dims <= _MOST_DIMS else turned
    schedules = dict.fromkeys((order,) * num_chunks for order in alike)
    parts = min(_PARTS[num_dims], num_chunks)
    while parts > 1 and num_chunks * comb(parts + num_dims - 1, num_dims - 1) > _MOST_TURNS:
        parts -= 1
    for shares in product(range(parts, -1, -1), repeat=num_dims):
        if sum(shares) == parts:
            schedules[_spread(shares, num_chunks, turned)] = None
    return tuple(schedules)


def _spread(shares: tuple[int, ...], num_chunks: int, orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """Each chunk takes the order that is furthest behind its share."""
    taken = [0] * len(shares)
    chunks = []
    for chunk in range(1, num_chunks + 1):
        behind = [share * chunk - sum(shares) * many for share, many in zip(shares, taken, strict=True)]
        place = behind.index(max(behind))
        taken[place] += 1
        chunks.append(orders[place])
    return tuple(chunks)
