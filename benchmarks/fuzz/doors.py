"""Readers of what people pass on to others: queries, studies, exports, cards, coefficients, cache entries, traces.

Some are whole commands, by their `main`.
"""

import io
import json
import random
import re
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.fuzz import mutate
from benchmarks.fuzz.findings import Wrong
from compare.ccl_bench_metrics.card import read_card
from compare.cli import calibrate, cost, replay
from compare.export.folder.write_folder import MARK, open_export
from compare.query.engine import answer_question
from compare.query.runs import read_runs
from compare.run.cache import Cache
from compare.timeline.errors import TimingError
from docs.study.build.answers import make_answer
from docs.study.build.page import make_page
from docs.study.build.spec import read_study, sweep_commands
from docs.study.build.text import Text, render_text
from meshes.devices.chip_file import read_chip
from meshes.devices.generations import GENERATIONS
from meshes.process.log import set_level
from tests.compare.profile.chrome.traces import Trace, all_reduce
from tests.compare.query.run_folders import write_run

CARD = """
version: 1
workload:
  model: {phase: inference, granularity: model_fwd}
  data: {batch_size: 8, seq_len: 1024, output_len: 128}
  hardware:
    xpu_spec: {type: TPU, total_count: 8}
metric_source: {traces: [json]}
"""

CHIP = """
name = "our pod"
generation = "v5e"
[energy.static]
value = 95
low = 90
high = 101
unit = "W"
source = "power meter"
standing = "measured"
[energy.memory]
value = 12.5
unit = "pJ/bit"
"""

WINDOWS = """name,time_s,energy_j,matrix_flops,memory_bytes,estimated_s
idle,1.0,80,0,0,0
idle,2.0,160,0,0,0
matmul,0.1,14,1e13,0,0.09
matmul long,0.2,28,2e13,0,0.18
copy,0.1,12,0,1e11,0
copy long,0.3,36,0,3e11,0
"""

STUDY = """
title = "Ours"
topology = "v6e:2x4"
batch = [8]
[[group]]
name = "dense plans"
controls = ["partitioner"]
models = ["llama-3.1-8b"]
meshes = ["tp8", "dp2tp4"]
[[trace]]
run = "a"
arm = "jax"
phase = "decode"
"""

RUN_LINE = (
    "Congestion_Unaware --num-queues-per-dim=2 --injection-scale=3 --rendezvous-protocol=true --comm-scale 1\n",
    'ASTRA_SIM --system-configuration="a/system.json" --logging-folder x # of ours\n',
)
MEMORY = json.dumps(
    {
        "memory-type": "PER_NODE_MEMORY_EXPANSION",
        "remote-mem-latency": 100,
        "remote-mem-bw": 50,
        "num-nodes": 2,
        "num-npus-per-node": 2,
    }
)

COST = (
    "--collective all-reduce --bytes 4096 --dims ring:4,ring:2 --bandwidth 90,9 --latency 1000,1 --algorithm ring,ring",
    "--collective all-to-all --bytes 64 --dims switch:8 --bandwidth 90 --latency 5 --algorithm direct:3 --as astra-sim",
    "--pairs 0-4,1-5:4096 --bytes 100 --dims fully-connected:2,line:4 --bandwidth 90,45.5 --latency 1000,1 --json",
    "--collective reduce-scatter --bytes 65536 --group 0,2,4,6 --machine v6e:2x4 --chunks 2",
)

SQL = (
    "select arm, sum(wire_bytes) from totals where phase = 'decode' group by all order by arm limit 7",
    "with x as (copy (select 1) to '{0}/run/report.json') select * from x, totals",
    "with x as (insert into runs (run) values ('x') returning run) select arm, count(*) from totals group by all",
    "select * from read_csv('{0}/secret.csv'), runs where run like 'r%'",
    "from 'runs://{0}/secret.csv' select word; select * from glob('{0}/*')",
    "attach '{0}/new.db' as other; from totals select phase",
)
"""With a place for the folder in which a run and a secret lie."""

TEMPLATE = (
    '{% set row = rows("moves").one(mesh="tp8") %}{{ row.wire_bytes | bytes }} {{ table(rows("moves"), {"mesh": "a"},'
    ' name="a", caption="A.") }} {{ see("a") }} {{ claim(row.wire_bytes > 1, "much <b>moves</b>") }}',
    "{% for row in rows('moves') %}* {{ row.mesh }}: {{ cycler.__init__ }} {{ ().__class__ }}\n{% endfor %}",
)


def read_card_of(path: Path) -> object:
    card = read_card(path.parent)
    return card and card.number("workload", "data", "batch_size")


def calibrate_from(path: Path) -> object:
    """Constants, which the reader of coefficients then takes."""
    out = path.with_suffix(".toml")
    out.unlink(missing_ok=True)
    with redirect_stdout(io.StringIO()):
        calibrate.main(["--windows", str(path), "--generation", "v5e", "--out", str(out)])
    return read_chip(out, GENERATIONS["v5e"])


def list_sweeps(path: Path) -> object:
    return list(sweep_commands(read_study(path)))


def simulate_natively(folder: Path) -> None:
    """A trace on our own engine, which takes some that ASTRA-sim's rules refuse."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        replay.main([str(folder)])


def ask_cost(given: str, _: Path) -> object:
    """Words of a command line: an answer that is a time, or one line."""
    out, said = io.StringIO(), io.StringIO()
    set_level("ERROR")
    try:
        with redirect_stdout(out), redirect_stderr(said):
            cost.main([word.replace("\0", "") for word in given.split()])
    except SystemExit as end:
        if end.code:
            raise TimingError(said.getvalue().removesuffix("\n")) from None
    if re.search(r"\bnan\b|(?<![\w.])-0*[1-9.]", out.getvalue()):
        raise Wrong("a time that is none")
    return out.getvalue()


def ask(given: str, folder: Path) -> object:
    """A query that changes or shows what is not the run's is a finding."""
    home = folder / "asked"
    if not home.exists():
        write_run(home / "run")
        (home / "secret.csv").write_text("word\ngone-42\n")
    before = {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))}
    rows: list[Any] = []
    try:
        answer_question(
            read_runs([home / "run"]),
            given.replace("{0}", str(home)),
            lambda connection, sql: rows.extend(connection.execute(sql).fetchmany(1000)),
        )
    finally:
        if before != {path: path.stat().st_mtime_ns for path in sorted(home.rglob("*"))}:
            raise Wrong("a query changed a file")
        if "gone-42" in str(rows):
            raise Wrong("a query read what is not its run's")
    return rows


def export_again(given: str, folder: Path) -> object:
    """An export onto one whose mark was damaged: the user's file stays, or nothing happens."""
    place = folder / "export"
    shutil.rmtree(place, ignore_errors=True)
    with open_export(place, to="chakra") as first:
        (first.path / "program").mkdir()
        (first.path / "program/a.json").write_text("{}")
        first.finish(["program"])
    (place / "program/notes.txt").write_text("mine")
    (place / MARK).write_bytes(given.encode(errors="surrogatepass"))
    try:
        with open_export(place, to="chakra") as again:
            again.finish([])
    finally:
        if not (place / "program/notes.txt").exists():
            raise Wrong("an export removed a file of the user's")
    return None


def mark() -> list[str]:
    digest = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of `{}`
    files = {"program/a.json": digest, "program/notes.txt": digest}
    return [json.dumps({"to": "chakra", "folders": ["program"], "files": files})]


def find_damaged(given: bytes, folder: Path) -> object:
    """An entry of which a file was damaged is made anew, whatever the damage."""
    shutil.rmtree(folder / "cache", ignore_errors=True)
    cache = Cache(folder / "cache")
    out = cache.begin()
    (out / "about.json").write_bytes(entry()[0])
    place = cache.keep(out, kind="program", key="k")
    (place / "about.json").write_bytes(given)
    found = cache.find("program", "k", results=("about.json",))
    if found and given != entry()[0]:
        raise Wrong("a damaged entry was believed")
    return found


def entry() -> list[bytes]:
    return [b'{"status": "ok", "seconds": {"import": 1.5}}']


def fill_in(given: str, _: Path) -> object:
    rows = make_answer("moves", ("mesh", "wire_bytes"), [("tp8", 7), ("<script>", None)])
    text = Text(answers={"moves": rows}.__getitem__, sql=str, names=(), draw=lambda name: None, own=(), data="x/data")  # type: ignore[arg-type,return-value]
    return make_page(render_text(given, text), title="T", pictures={})


def template(given: str, rng: random.Random) -> str:
    """Without loops that may take for ever: the words of a text alone."""
    return mutate.text(given, rng).replace("range", "rows")


def long_trace() -> list[str]:
    """Forty events, where `Chrome trace` has seven."""
    trace = Trace()
    for device in range(2):
        for step in range(6):
            trace.step(device, step, 20 * step, 10)
            trace.op(device, "fusion.2", 20 * step, 6, "loop fusion", bytes_accessed="4096", run_id=str(step))
            trace.op(device, "all-reduce.1", 20 * step + 6, 3, "all-reduce", long_name=all_reduce(1, 9, "{{0,1}}"))
    trace.host("step", 0, 11, step_num="0")
    return [trace.text()]


def read_chip_file(path: Path) -> object:
    return read_chip(path, GENERATIONS["v5e"])
