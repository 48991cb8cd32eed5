"""The words and defaults of a case that options offer: apart from `Case`, so that `--help` loads no model or mesh."""

from collections.abc import Mapping

CAPACITY = 1.25
"""Default capacity factor of an expert, as MaxText and Switch Transformer are usually run."""

CHOICES: Mapping[str, tuple[str, ...]] = {
    "phases": ("prefill", "decode"),
    "dtype": ("bf16", "f32"),
    "style": ("pinned", "weights", "explicit", "typed"),
    "loop": ("scan", "unrolled"),
    "attention": ("idiomatic", "einsum"),
    "partitioner": ("native", "gspmd", "shardy"),
}
"""The values of each field of a case; the first is the default (of `phases`: all)."""
