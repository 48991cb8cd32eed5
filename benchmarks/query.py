"""`python -m benchmarks.query`: the volume query over 500 run folders, beside pandas doing the same.

The folders are copies of the example run, each of another case.  Both give the same rows; times are without imports.
"""

import json
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchmarks.measuring import measure, python
from compare.query import query_runs

RUNS = 500
AIM_S = 3.0
ROUNDS = 5
EXAMPLE = Path(__file__).parents[1] / "docs/example-run"
KEYS = ["run", "model", "mesh", "phase", "arm", "cell", "axes"]
SUMS = ["executions", "step_wire_bytes", "inherent_bytes", "inflated_bytes", "induced_bytes"]


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        runs = Path(scratch) / "runs"
        for number in range(RUNS):
            _copy_run(runs / f"run-{number:03d}", seq=1024 * (number + 1))
        query_s, pandas_s = [], []
        for _ in range(ROUNDS):  # in turn, so that both meet the same machine
            begun = time.perf_counter()
            rows = query_runs("volume-by-axis", runs).fetchall()
            query_s.append(time.perf_counter() - begun)
            begun = time.perf_counter()
            frame = _by_pandas(runs)
            pandas_s.append(time.perf_counter() - begun)
        table = query_runs("volume-by-axis", runs).df().set_index(KEYS).sort_index()
        table, frame = table[[*SUMS, "wire_bytes_per_token"]], frame.sort_index()
        pd.testing.assert_frame_equal(table, frame, check_dtype=False, check_index_type=False)
        query, pandas = statistics.median(query_s), statistics.median(pandas_s)
        print(
            f"{RUNS} run folders, {len(rows):,} rows: {query:.2f} s, aim {AIM_S:g} s; pandas {pandas:.2f} s, "
            f"{query / pandas:.2f} ×"
        )
        whole = measure(python("compare.query", str(runs), "--name", "volume-by-axis", "--csv"))
        print(f"the whole command: {whole.seconds:.2f} s, {whole.peak_bytes / 2**20:.0f} MiB")


def _copy_run(folder: Path, *, seq: int) -> None:
    """The tables of the example run with another case beside them."""
    shutil.copytree(EXAMPLE / "tables", folder / "tables")
    case = json.loads((EXAMPLE / "case.json").read_text(encoding="utf-8"))
    (folder / "case.json").write_text(json.dumps({**case, "seq": seq}), encoding="utf-8")


def _by_pandas(runs: Path) -> pd.DataFrame:
    """The same sums, as somebody would write them in a notebook."""
    frames = []
    for folder in sorted(runs.iterdir()):
        case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
        frame = pd.read_parquet(folder / "tables/collectives.parquet", columns=["phase", "arm", "cell", "axes", *SUMS])
        devices = 1
        for size in case["mesh"]["axes"].values():
            devices *= size
        frames.append(
            frame.assign(
                run=folder.name,
                model=case["model"]["name"],
                mesh=case["mesh"]["name"],
                devices=devices,
                tokens=case["batch"] * frame["phase"].map({"prefill": case["seq"], "decode": 1}),
            )
        )
    groups = pd.concat(frames).groupby(KEYS)
    table = groups[SUMS].sum()
    means = groups[["devices", "tokens"]].first()
    return table.assign(wire_bytes_per_token=table["step_wire_bytes"] * means["devices"] / means["tokens"])


if __name__ == "__main__":
    main()
