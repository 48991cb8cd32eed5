"""Everything that is drawn of a sweep, into its folder."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from compare.views.figures import save
from compare.views.sweep_figure import ratios
from compare.views.sweep_page import page
from compare.views.sweep_table import programs
from compare.views.sweep_text import print_sweep
from compare.views.text import print_page
from meshes import whole

PAGE = "sweep.html"


def draw(sweep: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write sweep.json, .csv, .parquet, .png, .svg and .html, the same files from the same sweep; returns it."""
    picture = ratios(sweep)
    table = programs(sweep)
    packed = BytesIO()
    table.to_parquet(packed, engine="pyarrow", compression="zstd", index=False)
    whole.write_text(folder / "sweep.json", json.dumps(sweep, indent=1, ensure_ascii=False) + "\n")
    whole.write_text(folder / "sweep.csv", table.to_csv(index=False))
    whole.write_bytes(folder / "sweep.parquet", packed.getvalue())
    save([picture], folder)
    whole.write_text(folder / PAGE, page(sweep, picture=picture))
    return sweep


def show(sweep: Mapping[str, Any], folder: Path) -> None:
    """Print the table; the last line is the path of the page."""
    print_sweep(sweep)
    print_page(folder / PAGE)
