"""Write a sweep's page, tables and figure into its folder.  The page has no script."""

import json
from collections.abc import Collection, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import pandas as pd

from compare.render.html import environment, read_static
from compare.render.picture import Picture, draw_all, inline_picture, save
from compare.render.report.show import PAGE as REPORT_PAGE
from compare.render.table_columns import NUMBER, TEXT, TRUTH, WHOLE
from compare.render.tables import Row, frame
from compare.sweep.energy.energy_lines import energy_lines, has_energy
from compare.sweep.energy.energy_table import HEADINGS, cells, print_energy, program_words
from compare.sweep.energy.energy_table import NOTE as ENERGY_NOTE
from compare.sweep.energy.sweep_figures import list_energy
from compare.sweep.render.figure import draw_ratios
from compare.sweep.render.lines import case_lines, common_words, crosses_slices, footnotes, list_reasons
from compare.sweep.render.print_sweep import NOTE, print_sweep
from compare.sweep.summary import Sweep
from meshes.process import atomic_files

PAGE = "sweep.html"

COLUMNS = {
    "model": TEXT, "mesh": TEXT, "topology": TEXT, "num_devices": WHOLE, "batch": WHOLE, "seq": WHOLE,
    "microbatches": WHOLE, "capacity": NUMBER, "dtype": TEXT, "loop": TEXT, "attention": TEXT, "case_status": TEXT,
    "phase": TEXT, "arm": TEXT, "title": TEXT, "cell": TEXT, "is_default": TRUTH, "is_compared": TRUTH,
    "partitioner": TEXT, "status": TEXT, "error": TEXT, "asked_bytes": WHOLE, "wire_bytes": WHOLE,
    "emitted_over_inherent": NUMBER, "qualifier": TEXT, "inherent_bytes": WHOLE, "inflated_bytes": WHOLE,
    "induced_bytes": WHOLE, "common_bytes": WHOLE, "framework_induced_bytes": WHOLE, "missing_bytes": WHOLE,
    "unserved_bytes": WHOLE,
    "dcn_wire_bytes": WHOLE, "modelled_step_ns": NUMBER, "modelled_compute_ns": NUMBER, "modelled_exposed_ns": NUMBER,
    "step_j": NUMBER, "low_j": NUMBER, "high_j": NUMBER, "per_token_j": NUMBER, "tokens_per_j": NUMBER,
    "tokens_per_s": NUMBER, "mean_w": NUMBER, "peak_w": NUMBER, "needless_j": NUMBER,
    "same_program": TRUTH,
    "folder": TEXT, "earlier": TRUTH,
}  # fmt: skip

_SUMS = ("inherent", "inflated", "induced", "common", "framework_induced", "missing", "unserved")


def draw(sweep: Sweep, folder: Path) -> Sweep:
    """Write sweep.json, .csv, .parquet, .png, .svg and .html, the same files from the same sweep; returns it."""
    of_energy = list_energy(energy_lines(sweep)) if has_energy(sweep) else {}
    pictures = [draw_ratios(sweep), *draw_all(of_energy.values())]
    table = programs(sweep)
    packed = BytesIO()
    table.to_parquet(packed, engine="pyarrow", compression="zstd", index=False)
    atomic_files.write_text(folder / "sweep.json", json.dumps(sweep, indent=1, ensure_ascii=False) + "\n")
    atomic_files.write_text(folder / "sweep.csv", table.to_csv(index=False))
    atomic_files.write_bytes(folder / "sweep.parquet", packed.getvalue())
    save(pictures, folder)
    folders = [str(row["folder"]) for row in sweep["results"] if row["folder"]]
    undrawn = [name for name in folders if not (folder / name / REPORT_PAGE).is_file()]
    atomic_files.write_text(folder / PAGE, page(sweep, pictures=pictures, undrawn=undrawn))
    return sweep


def show(sweep: Sweep, folder: Path) -> None:
    """Print the table; the last line is the path of the page."""
    print_sweep(sweep)
    if has_energy(sweep):
        print_energy(energy_lines(sweep))
    print(folder / PAGE)


def page(sweep: Sweep, *, pictures: Sequence[Picture], undrawn: Collection[str] = ()) -> str:
    """The page as HTML; its links lead into the run folders beside it.  undrawn: those that have no page."""
    lines = case_lines(sweep)
    return (
        environment()
        .get_template("sweep.html.j2")
        .render(
            sweep=sweep,
            style=read_static("page.css"),
            picture=inline_picture(pictures[0]),
            energy_pictures=[inline_picture(picture) for picture in pictures[1:]],
            energy=energy_lines(sweep) if has_energy(sweep) else [],
            energy_headings=HEADINGS,
            energy_cells=cells,
            energy_words=program_words,
            energy_note=ENERGY_NOTE,
            lines=lines,
            undrawn=undrawn,
            far=list(sweep["arms"]) if crosses_slices(lines) else [],
            failed=list_reasons(sweep),
            refused=list_reasons(sweep, status="refused"),
            note=" ".join([NOTE, *footnotes(lines)]),
            common=common_words(sweep),
        )
    )


def programs(sweep: Sweep) -> pd.DataFrame:
    """One row for each program of each case; one row with the reason for a combination without programs."""
    return frame(_rows(sweep), COLUMNS)


def _rows(sweep: Sweep) -> Iterator[Row]:
    for result in sweep["results"]:
        shared = {name: result.get(name) for name in COLUMNS} | {
            "case_status": result["status"],
            "earlier": bool(result.get("earlier")),
        }
        if not result["phases"]:
            yield shared
        for phase, summary in result["phases"].items():
            for program in summary["programs"]:
                yield {
                    **shared,
                    **{name: value for name, value in program.items() if name in COLUMNS},
                    "phase": phase,
                    "asked_bytes": summary["inherent_total"],
                    "emitted_over_inherent": program["ratio"],
                    **{f"{name}_bytes": program.get(name) for name in _SUMS},
                    **{name: value for name, value in program.get("energy", {}).items() if name in COLUMNS},
                }
