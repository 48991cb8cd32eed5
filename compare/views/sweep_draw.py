"""Everything that is drawn of a sweep, into its folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compare.views.figures import save
from compare.views.sweep_figure import ratios
from compare.views.sweep_page import page
from compare.views.sweep_table import programs
from compare.views.sweep_text import print_sweep
from compare.views.text import print_page

PAGE = "sweep.html"


def draw(sweep: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write sweep.json, .csv, .parquet, .png, .svg and .html, the same files from the same sweep; returns it."""
    picture = ratios(sweep)
    table = programs(sweep)
    _write(folder / "sweep.json", json.dumps(sweep, indent=1, ensure_ascii=False) + "\n")
    _write(folder / "sweep.csv", table.to_csv(index=False))
    table.to_parquet(folder / "sweep.parquet", engine="pyarrow", compression="zstd", index=False)
    save([picture], folder)
    _write(folder / PAGE, page(sweep, picture=picture))
    return sweep


def show(sweep: Mapping[str, Any], folder: Path) -> None:
    """Print the table; the last line is the path of the page."""
    print_sweep(sweep)
    print_page(folder / PAGE)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
