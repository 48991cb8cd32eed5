"""The figures of a study, each from the rows of the query that has its name.

In the manner of the papers that ask the same: device-to-device heat maps (TopoOpt), the network's demand over a step
and rolled on a circle (CASSINI), the distribution of windows between parallelisms (Opus), sizes and counts of messages
and bytes over sequence length (arXiv 2507.14392).  All are told apart in grey, by shade, dash, hatch or marker.
"""

from collections.abc import Callable, Mapping

import matplotlib as mpl

from compare.render.figures import STYLE
from compare.render.picture import Picture
from docs.study.build.answers import Answer
from docs.study.build.growth import batches, chips, sequences
from docs.study.build.programs import cache, energy, witnesses
from docs.study.build.steps import bubbles, frameworks, hidden, plans, slices
from docs.study.build.traffic import demand, links, messages, moves, pairs, windows

_DRAW: Mapping[str, Callable[[Answer], Picture]] = {
    draw.__name__: draw
    for draw in (
        moves,
        messages,
        demand,
        windows,
        pairs,
        links,
        hidden,
        bubbles,
        sequences,
        batches,
        chips,
        frameworks,
        witnesses,
        cache,
        plans,
        slices,
        energy,
    )
}

FIGURES = tuple(_DRAW)
"""Names: each figure has that of its query."""


def draw_figure(name: str, answer: Answer) -> Picture:
    """The figure of a query, from its rows."""
    with mpl.rc_context({**STYLE, "axes.titlesize": 8.5, "xtick.labelsize": 7.5, "ytick.labelsize": 7.5}):
        return _DRAW[name](answer)
