"""The pictures of a lesson: tensors on the mesh before, with local results, and after communication.

A tensor is drawn as a rectangle of two of its dims (those that are split, else the last two), cut where it is split.
A part has the colour and the number of the device that holds it; copies lie behind each other like cards.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from io import BytesIO
from itertools import product
from math import log2, prod

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from compare.gallery.render.tensors import Tensor
from compare.render.figures import INK, STYLE

DEVICES = ("#8fc1ea", "#ffc685", "#a3d9a5", "#e0b3dd", "#cfe3f5", "#ffe6c4", "#d5eed6", "#f2dff1")
"""Colours of devices 0 to 7: distinguishable with red-green blindness and behind dark words; the second four are
paler versions of the first four."""

_CARD = 0.1
"""Inches: the offset of a copy from the one in front of it."""
_GAP = 0.09
_LEFT, _RIGHT, _TOP, _BOTTOM = 0.3, 0.06, 0.36, 0.3
_ACROSS = 0.2
"""Inches: between two tensors."""
_LETTER = 0.083
"""Inches of a letter of a tensor's name."""
_PALE = 0.45
"""Opacity of a partial sum's colour."""


def picture_inches(tensors: Sequence[Tensor], mesh: Mapping[str, int], *, scale: float = 1.0) -> float:
    """Inches of their picture."""
    return sum(_width(tensor, mesh, scale) for tensor in tensors) + _ACROSS * (len(tensors) - 1)


def _width(tensor: Tensor, mesh: Mapping[str, int], scale: float) -> float:
    wide, _ = _side(tensor, mesh, scale)
    return _LEFT + max(wide, _LETTER * len(tensor.words)) + _RIGHT


def draw_tensors(tensors: Sequence[Tensor], mesh: Mapping[str, int], *, scale: float = 1.0) -> str:
    """The tensors side by side, as SVG; `scale` is of the tensors, not of the words."""
    sides = [_side(tensor, mesh, scale) for tensor in tensors]
    widths = [_width(tensor, mesh, scale) for tensor in tensors]
    tall = _TOP + max(high for _, high in sides) + _BOTTOM
    wide = picture_inches(tensors, mesh, scale=scale)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(wide, tall))
        panel = figure.add_axes((0, 0, 1, 1))
        panel.set(xlim=(0, wide), ylim=(0, tall))
        panel.axis("off")
        left = 0.0
        for drawn, across, (side, high) in zip(tensors, widths, sides, strict=True):
            _tensor(panel, drawn, mesh, left=left + _LEFT, top=tall - _TOP, width=side, height=high)
            left += across + _ACROSS
        return _svg(figure)


def draw_mesh(mesh: Mapping[str, int]) -> str:
    """The devices at their coordinates on the mesh, as SVG: the first axis downwards, the last to the right."""
    return _mesh_picture(tuple(mesh.items()))


@cache
def _mesh_picture(mesh: tuple[tuple[str, int], ...]) -> str:
    *_, rows, columns = [("", 1), *mesh]
    side, left, top = 0.42, 0.4, 0.36
    wide, tall = left + columns[1] * side + 0.08, top + rows[1] * side + 0.08
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(wide, tall))
        panel = figure.add_axes((0, 0, 1, 1))
        panel.set(xlim=(0, wide), ylim=(0, tall))
        panel.axis("off")
        for row, column in product(range(rows[1]), range(columns[1])):
            device = row * columns[1] + column
            _part(
                panel,
                [device],
                x=left + column * side,
                y=tall - top - (row + 1) * side,
                wide=side - 0.06,
                high=side - 0.06,
                partial=False,
            )
        panel.text(left + columns[1] * side / 2, tall - 0.2, f"{columns[0]} →", fontsize=9, ha="center", color=INK)
        if rows[0]:
            panel.text(0.16, (tall - top) / 2, f"← {rows[0]}", fontsize=9, va="center", rotation=90, color=INK)
        return _svg(figure)


def _svg(figure: Figure) -> str:
    written = BytesIO()
    FigureCanvasSVG(figure).print_svg(written, metadata={"Date": None, "Creator": None})
    text = written.getvalue().decode()
    return text[text.index("<svg") :]


def _length(size: int) -> float:
    """Inches of a dim, growing more slowly than its size."""
    return min(1.7, 0.35 + 0.11 * max(0.0, log2(size)))


def _cards(tensor: Tensor, mesh: Mapping[str, int]) -> int:
    """How many devices hold the same part."""
    return prod(mesh.values()) // prod(mesh[axis] for axis in tensor.axes if axis)


def _side(tensor: Tensor, mesh: Mapping[str, int], scale: float) -> tuple[float, float]:
    """Width and height in inches, with the cards behind."""
    lengths = []
    for at in tensor.drawn_dims():
        shards = mesh[axis] if at >= 0 and (axis := tensor.axes[at]) else 1
        length = scale * (_length(tensor.sizes[at]) if at >= 0 else 0.34)
        cell = max(length / shards, 0.36 * scale)
        lengths.append((cell + _CARD * (_cards(tensor, mesh) - 1)) * shards + _GAP * (shards - 1))
    return lengths[1], lengths[0]


def _tensor(
    panel: mpl.axes.Axes,
    tensor: Tensor,
    mesh: Mapping[str, int],
    *,
    left: float,
    top: float,
    width: float,
    height: float,
) -> None:
    rows, columns = tensor.drawn_dims()
    parts = [mesh[axis] if at >= 0 and (axis := tensor.axes[at]) else 1 for at in (rows, columns)]
    behind = _CARD * (_cards(tensor, mesh) - 1)
    high = (height - _GAP * (parts[0] - 1)) / parts[0] - behind
    wide = (width - _GAP * (parts[1] - 1)) / parts[1] - behind
    for row, column in product(range(parts[0]), range(parts[1])):
        x = left + column * (wide + behind + _GAP)
        y = top - row * (high + behind + _GAP) - behind - high
        _part(
            panel,
            _holders(tensor, mesh, {rows: row, columns: column}),
            x=x,
            y=y,
            wide=wide,
            high=high,
            partial=bool(tensor.partial),
        )
    panel.text(left - 0.02, top + 0.12, tensor.words, fontsize=9, fontweight="bold", color=INK, parse_math=False)
    if columns >= 0:
        words = _label(tensor, columns, mesh)
        panel.text(left + (width - behind) / 2, top - height - 0.16, words, fontsize=7.5, ha="center", color=INK)
    if rows >= 0:
        words = _label(tensor, rows, mesh)
        panel.text(left - 0.12, top - height / 2, words, fontsize=7.5, ha="center", va="center", rotation=90, color=INK)


def _label(tensor: Tensor, dim: int, mesh: Mapping[str, int]) -> str:
    """`D = 1,024 / 4`; nothing of a dim that has no letter."""
    if tensor.dims[dim].isdigit():
        return ""
    axis = tensor.axes[dim]
    return f"{tensor.dims[dim]} = {tensor.sizes[dim]:,}" + (f" / {mesh[axis]}" if axis else "")


def _part(
    panel: mpl.axes.Axes, holders: Sequence[int], *, x: float, y: float, wide: float, high: float, partial: bool
) -> None:
    """The cards of one part, the first device's in front; each shows its number in the corner that is not covered."""
    for behind, device in reversed(list(enumerate(holders))):
        at_x, at_y = x + behind * _CARD, y + behind * _CARD
        panel.add_patch(
            Rectangle(
                (at_x, at_y),
                wide,
                high,
                facecolor=_paler(DEVICES[device]) if partial else DEVICES[device],
                edgecolor=INK,
                linewidth=0.7,
                linestyle=(0, (3, 2)) if partial else "solid",
            )
        )
        if behind:
            panel.text(at_x + wide - 0.045, at_y + high - 0.06, str(device), fontsize=5.5, ha="center", va="center")
    words = f"{holders[0]}" + (" +" * (len(holders) > 1) if partial else "")
    panel.text(x + wide / 2, y + high / 2, words, fontsize=9, ha="center", va="center", color=INK)


def _paler(colour: str) -> tuple[float, float, float]:
    red, green, blue = to_rgb(colour)
    return 1 - _PALE * (1 - red), 1 - _PALE * (1 - green), 1 - _PALE * (1 - blue)


def _holders(tensor: Tensor, mesh: Mapping[str, int], at: Mapping[int, int]) -> list[int]:
    """The devices that hold the part at these places of its split dims."""
    wanted = {axis: at[dim] for dim, axis in enumerate(tensor.axes) if axis and dim in at}
    places = product(*(range(size) for size in mesh.values()))
    coordinates = [dict(zip(mesh, place, strict=True)) for place in places]
    return [
        number for number, place in enumerate(coordinates) if all(place[axis] == part for axis, part in wanted.items())
    ]
