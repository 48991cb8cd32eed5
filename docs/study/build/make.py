"""Makes a study: its sweeps, then its data, then its text and page."""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from compare.query.engine import connect, open_runs, save_tables
from compare.query.named_queries import list_queries, read_query
from compare.query.saved import read_source, tables_to_save
from compare.query.views import tables_read
from compare.render import picture
from compare.run.folder.replace_folder import CASE
from docs.study.build.answers import Answer, make_answer
from docs.study.build.errors import StudyError
from docs.study.build.figures import FIGURES, draw_figure
from docs.study.build.page import make_page
from docs.study.build.spec import Study, SweepCommand, sweep_commands
from docs.study.build.text import FIGURES as PICTURES
from docs.study.build.text import Text, render_text
from meshes.case import Case
from meshes.process import atomic_files
from meshes.process.documents import read_json
from meshes.process.errors import MeshError

DATA, QUERIES, TEMPLATE, TRACES = "data", "queries", "study.md.j2", "traces"
"""In the folder of a study."""

CASES = "cases"
"""The table of all combinations that the study's file asks for, those that are no case too."""


def compile_cases(study: Study, runs: Path, *, options: Sequence[str]) -> bool:
    """Each sweep of the study, one after the other; what is done is not done again.  Whether all of them succeeded.

    options: further ones of `compare.sweep`, like `--jobs 2`.
    """
    whole = True
    for command in sweep_commands(study):
        # Nobody reads the pages of single cases; `compare.report FOLDER` draws the one that is wanted.
        argv = ["-m", "compare.sweep", *command.options, "--out", str(runs / command.folder), "--no-pages", *options]
        print(f"python {' '.join(argv)}", file=sys.stderr)
        status = subprocess.run([sys.executable, *argv], check=False, stdout=subprocess.DEVNULL).returncode
        if status not in (0, 1):
            raise StudyError(f"compare.sweep ended with {status}; what it had made stays in {runs / command.folder}")
        whole &= status == 0
    return whole


def save_data(study: Study, runs: Path) -> None:
    """Write the tables of all runs, and of all combinations, to the study's folder."""
    found = list(_read_results(study, runs))
    _check_once(found)
    # Not the whole folder of runs: it may hold some of an earlier version of the study's file.
    folders = [folder for _, folder, _ in found if folder]
    save_tables(read_source(folders), study.folder / DATA)
    packed = BytesIO()
    rows = [_combination(command, folder, result) for command, folder, result in found]
    pd.DataFrame(rows).to_parquet(packed, compression="zstd", index=False)
    atomic_files.write_bytes(study.folder / DATA / f"{CASES}.parquet", packed.getvalue())


def save_traces(study: Study, runs: Path) -> None:
    """Write the timelines that the study's file names, with workload cards and programs, in CCL-Bench's layout."""
    folders = {folder.name: folder for _, folder, _ in _read_results(study, runs) if folder}
    for trace in study.traces:
        if trace.run not in folders:
            raise StudyError(f"no run is named {trace.run}, of which a trace is asked for")
        with TemporaryDirectory() as scratch:
            words = ["--arm", trace.arm, "--phase", trace.phase, "--cell", "tpu", "--out", f"{scratch}/out"]
            argv = ["-m", "compare.export", str(folders[trace.run]), "--to", "ccl-bench", *words]
            if subprocess.run([sys.executable, *argv], check=False, stdout=subprocess.DEVNULL).returncode:
                raise StudyError(f"compare.export could not write the trace of {trace.run}")
            for made in filter(Path.is_dir, Path(scratch, "out").iterdir()):  # not the file that says what it is
                for large in made.glob("*.trace.json"):  # its packed copy stays
                    large.unlink()
                shutil.rmtree(study.folder / TRACES / made.name, ignore_errors=True)
                shutil.copytree(made, study.folder / TRACES / made.name)


_Result = tuple[SweepCommand, Path | None, Mapping[str, object]]
"""The sweep that asked for a combination, its run folder, and its row in sweep.json."""


def _read_results(study: Study, runs: Path) -> Iterator[_Result]:
    for command in sweep_commands(study):
        path = runs / command.folder / "sweep.json"
        try:
            for row in read_json(path)["results"]:
                if not row.get("earlier"):
                    yield command, path.parent / row["folder"] if row["folder"] else None, row
        except (OSError, MeshError, LookupError, TypeError, AttributeError) as error:
            raise StudyError(f"{path} cannot be read: {error}; compile the cases first") from None


def _check_once(results: Sequence[_Result]) -> None:
    """Raise `StudyError` where two groups have the same step: each of its rows would count twice."""
    first: dict[str, str] = {}
    for command, folder, _ in results:
        if folder:
            case = Case.from_dict(read_json(folder / CASE))
            for step in (case.at(phases=(phase,)).name for phase in case.phases):
                if (other := first.setdefault(step, command.folder)) != command.folder:
                    raise StudyError(f"{step} is in {other} and in {command.folder}; leave it out of one of them")


def _combination(command: SweepCommand, folder: Path | None, row: Mapping[str, object]) -> dict[str, object]:
    """A row of the table of all combinations."""
    group, _, numbers = command.folder.partition("/")
    batch, seq = (int(word[1:]) for word in numbers.split("-"))
    return {
        "study_group": group,
        "model": row["model"],
        "mesh": row["mesh"],
        "batch": batch,
        "seq": seq,
        "status": row["status"],
        "reason": row["error"],
        "run": row["folder"],
        "process_s": _process_seconds(folder) if folder else None,
        "disk_bytes": sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder else None,
    }


def _process_seconds(folder: Path) -> float:
    """How long the processes worked that made a run's programs, whenever that was."""
    abouts = (read_json(path) for path in folder.glob("*/*/*/about.json"))
    return sum(sum(stages.values()) for about in abouts for stages in about.get("seconds", {}).values())


def write_text(study: Study) -> list[Path]:
    """Write study.md, study.html and the figures from the shipped data; returns what was written."""
    made, text = make_text(study)
    picture.save(list(text.pictures.values()), study.folder / PICTURES)
    markdown, page = study.folder / "study.md", study.folder / "study.html"
    atomic_files.write_text(markdown, made)
    atomic_files.write_text(page, make_page(made, title=study.title, pictures=text.pictures))
    return [markdown, page]


def make_text(study: Study) -> tuple[str, Text]:
    """The study's Markdown, and what was drawn for it."""
    path = study.folder / TEMPLATE
    if not path.is_file():
        raise StudyError(f"{path} is not there; it is the study's text")
    check_data(study)
    answers = cache(lambda name: answer_query(study, name))
    text = Text(
        answers=answers,
        sql=lambda name: query_text(study, name),
        names=FIGURES,
        draw=lambda name: draw_figure(name, answers(name)),
        data=f"{study.folder.as_posix()}/{DATA}",
        own=frozenset(file.stem for file in (study.folder / QUERIES).glob("*.sql")),
        traces=tuple(sorted(path.name for path in (study.folder / TRACES).glob("*") if path.is_dir())),
    )
    return render_text(path.read_text(encoding="utf-8"), text), text


def check_data(study: Study) -> None:
    """Raise `StudyError` where the study's folder lacks a table that its queries read: they would find no rows."""
    folder = study.folder / DATA
    queries = [file.read_text(encoding="utf-8") for file in (study.folder / QUERIES).glob("*.sql")]
    read = {name for sql in queries for name in tables_read([*tables_to_save(), CASES], sql)}
    missing = [
        name for name in (*tables_to_save(), CASES) if name in read and not (folder / f"{name}.parquet").is_file()
    ]
    if missing:
        files = ", ".join(f"{name}.parquet" for name in missing)
        raise StudyError(f"{folder} lacks {files}; `--from data` writes the tables anew from the run folders")


def query_text(study: Study, name: str) -> str:
    """The study's own query of this name, or the one that ships with `compare.query`."""
    path = study.folder / QUERIES / f"{name}.sql"
    if path.name == f"{name}.sql" and path.is_file():
        return path.read_text(encoding="utf-8")
    if name not in list_queries():
        raise StudyError(f"no query is named {name}: neither {path} nor one of {', '.join(list_queries())}")
    return read_query(name)


def answer_query(study: Study, name: str) -> Answer:
    """The rows of a query over the shipped data."""
    sql = query_text(study, name)
    with open_runs(connect(), read_source([study.folder / DATA]), sql) as connection:
        relation = connection.sql(sql)
        return make_answer(name, relation.columns, relation.fetchall())
