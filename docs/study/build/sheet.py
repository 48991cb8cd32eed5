"""A figure laid out in inches, and the looks that all figures of a study share."""

from collections.abc import Iterable, Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from compare.render.figures import INK, draw_heading, heading_inches, save_figure
from compare.render.picture import Picture
from compare.render.units import bytes_text, time_text
from docs.study.build.answers import Row
from meshes.devices.mesh_spec import MeshSpec

WIDE = 8.6
"""Inches."""

ARMS: Mapping[str, tuple[str, str, str]] = {"jax": ("JAX", "#147a70", "o"), "torchxla": ("TorchXLA", "#b8442c", "s")}
"""Title, colour and marker of each framework."""

DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")

COUNTED = "Counted in compiled programs, not measured; v6e, bf16"
MODELLED = "Modelled from compiled programs, not measured; v6e, bf16"

PHASES = ("prefill", "decode")

SHOWN = ("llama-3.1-8b", "mixtral-8x7b")
"""The models of figures that show two: one dense, one with experts."""

BYTES = FuncFormatter(lambda value, _: bytes_text(value))
RATE = FuncFormatter(lambda value, _: f"{bytes_text(value)}/s" if value else "0")
TIME = FuncFormatter(lambda value, _: time_text(value))

_TP, _PP, _EP, _CP, _SP = "#1f4e79", "#6a56a5", "#a6761d", "#d977b5", "#7d8590"
_AXES: Mapping[str, tuple[str, str]] = {
    "tp": (_TP, "o"),
    "pp": (_PP, "^"),
    "ep": (_EP, "D"),
    "cp": (_CP, "s"),
    "dp": ("#e69f00", "v"),
}
_SEVERAL_AXES = ("#7d8590", "X")

_PLANS: Mapping[frozenset[str], str] = {
    frozenset({"tp"}): _TP,
    frozenset({"pp", "tp"}): _PP,
    frozenset({"ep"}): INK,
    frozenset({"ep", "tp"}): _EP,
    frozenset({"cp", "tp"}): _CP,
    frozenset({"dp", "pp", "tp"}): "#8a8d1f",
}
_REPLICAS = {1: "#c3c9d1", 2: "#56b4e9", 4: "#e69f00", 8: "#c49a00"}
"""Of plans of dp × tp, by tp."""


def plan_colour(mesh: str) -> str:
    """The colour of a plan, in every figure the same; none is a framework's."""
    sizes = {axis: size for axis, size in MeshSpec.parse(mesh.partition("+")[0]).axes.items() if size > 1}
    if "+" in mesh:
        return _SP
    return _REPLICAS.get(sizes["tp"], INK) if set(sizes) == {"dp", "tp"} else _PLANS.get(frozenset(sizes), "#c3c9d1")


class Sheet:
    """A figure whose panels are placed in inches, from the left and from below its heading."""

    def __init__(self, title: str, *, label: str, high: float):
        """high: inches below the heading."""
        self._high = high
        self._tall = heading_inches([label]) + high
        self.figure = Figure(figsize=(WIDE, self._tall))
        draw_heading(self.figure, title, [label])

    def panel(self, left: float, top: float, wide: float, high: float, *, polar: bool = False) -> Axes:
        """A panel: its left edge, its upper edge below the heading, and its size, in inches."""
        place = (left / WIDE, (self._high - top - high) / self._tall, wide / WIDE, high / self._tall)
        return self.figure.add_axes(place, projection="polar") if polar else self.figure.add_axes(place)

    def add_legend(self, *, columns: int) -> None:
        """Each label once, whichever panel has it, at the bottom."""
        found: dict[str, Artist] = {}
        for panel in self.figure.axes:
            for handle, word in zip(*panel.get_legend_handles_labels(), strict=True):
                found.setdefault(word, handle)
        if found:
            self.figure.legend(
                found.values(), found.keys(), loc="lower center", ncols=columns, frameon=False, fontsize=7.5
            )

    def save(self, name: str, caption: str) -> Picture:
        return save_figure(name, caption, self.figure)


def distinct(rows: Iterable[Row], *columns: str) -> list[tuple[str, ...]]:
    """The combinations of these columns' values, in order of first appearance."""
    return list(dict.fromkeys(tuple(str(getattr(row, name)) for name in columns) for row in rows))


def name_rows(panel: Axes, names: Sequence[str], *, rows: int) -> None:
    """Rows from above, with these names or none."""
    panel.set_yticks(range(rows), names or [""] * rows, fontsize=7)
    panel.set_ylim(rows - 0.5, -0.5)


def axes_style(axes: str) -> tuple[str, str]:
    """Colour and marker of a parallelism."""
    return _AXES.get(axes, _SEVERAL_AXES)
