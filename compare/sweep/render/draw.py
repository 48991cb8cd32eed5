"""All that is drawn of a sweep: its page, tables and figure, written into its folder.  The page has no script."""

import json
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from compare.render.html import environment, read_static
from compare.render.picture import Picture, inline_picture, save
from compare.sweep.render.figure import draw_ratios
from compare.sweep.render.lines import case_lines, common_words, crosses_slices, footnotes, list_reasons
from compare.sweep.render.table import programs
from compare.sweep.render.text import NOTE, print_sweep
from meshes.process import atomic_files

PAGE = "sweep.html"


def draw(sweep: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write sweep.json, .csv, .parquet, .png, .svg and .html, the same files from the same sweep; returns it."""
    picture = draw_ratios(sweep)
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


def page(sweep: Mapping[str, Any], *, picture: Picture) -> str:
    """The whole page as HTML; links lead into the run folders beside it."""
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            sweep=sweep,
            style=read_static("page.css"),
            picture=inline_picture(picture),
            lines=case_lines(sweep),
            far=list(sweep["arms"]) if crosses_slices(case_lines(sweep)) else [],
            failed=list_reasons(sweep),
            refused=list_reasons(sweep, status="refused"),
            note=" ".join([NOTE, *footnotes(case_lines(sweep))]),
            common=common_words(sweep),
        )
    )
