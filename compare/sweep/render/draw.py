"""Everything that is drawn of a sweep, into its folder."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from compare.render.picture import save
from compare.sweep.render.figure import ratios
from compare.sweep.render.page import page
from compare.sweep.render.table import programs
from compare.sweep.render.text import print_sweep
from meshes.process import atomic_files

PAGE = "sweep.html"


def draw(sweep: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write sweep.json, .csv, .parquet, .png, .svg and .html, the same files from the same sweep; returns it."""
    picture = ratios(sweep)
    table = programs(sweep)
    packed = BytesIO()
    table.to_parquet(packed, engine="pyarrow", compression="zstd", index=False)
    atomic_files.write_text(folder / "sweep.json", json.dumps(sweep, indent=1, ensure_ascii=False) + "\n")
    atomic_files.write_text(folder / "sweep.csv", table.to_csv(index=False))
    atomic_files.write_bytes(folder / "sweep.parquet", packed.getvalue())
    save([picture], folder)
    atomic_files.write_text(folder / PAGE, page(sweep, picture=picture))
    return sweep


def show(sweep: Mapping[str, Any], folder: Path) -> None:
    """Print the table; the last line is the path of the page."""
    print_sweep(sweep)
    print(folder / PAGE)
