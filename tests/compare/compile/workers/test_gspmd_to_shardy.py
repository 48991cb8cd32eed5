"""GSPMD shardings translated to Shardy: what each means, and that libtpu's own Shardy then places the arrays."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

pytest.importorskip("libtpu", reason="needs libtpu: pip install -e '.[jax]'")

from compare.compile.errors import RefusedError
from compare.compile.workers.gspmd_to_shardy import parse_sharding
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from compare.run.tasks import QUIET

AXES = {"dp": 1, "pp": 2, "cp": 1, "ep": 1, "tp": 4}
"""Device d is at pp = d ÷ 4, tp = d mod 4."""
V5E = [(0, x, y, 0, 0) for y in range(4) for x in range(2)]

# y = x @ w with the contracted dim over tp, rows over pp: one all-reduce over tp.
PROGRAM = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<512x1024xbf16> {mhlo.sharding = "{devices=[2,4]<=[8]}"},
                  %w: tensor<1024x512xbf16>
                    {mhlo.sharding = "{devices=[4,1,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}"})
                  -> tensor<512x512xbf16> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
         : (tensor<512x1024xbf16>, tensor<1024x512xbf16>) -> tensor<512x512xbf16>
    %1 = stablehlo.custom_call @TARGET(%0) {backend_config = "",
         mhlo.sharding = "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"}
         : (tensor<512x512xbf16>) -> tensor<512x512xbf16>
    return %1 : tensor<512x512xbf16>
  }
}"""
OPTIONS = {
    "num_replicas": 1,
    "num_partitions": 8,
    "use_spmd_partitioning": True,
    "use_shardy_partitioner": False,
    "allow_spmd_sharding_propagation_to_output": [True],
}


@pytest.mark.parametrize(
    ("sharding", "split"),
    [
        # row-major over the mesh: the outer tiles are the stages
        ("{devices=[2,1,4]0,1,2,3,4,5,6,7}", (("pp",), (), ("tp",))),
        ("{devices=[2,1,4]<=[8]}", (("pp",), (), ("tp",))),
        # one dim over both axes
        ("{devices=[1,8,1]<=[8]}", ((), ("pp", "tp"), ())),
        # tiles of devices 0 and 4, 1 and 5 …: the stages are the replicas
        ("{devices=[1,1,4,2]0,4,1,5,2,6,3,7 last_tile_dim_replicate}", ((), (), ("tp",))),
        ("{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}", ((), (), ("tp",))),
        ("{devices=[1,2,1,4]<=[8] last_tile_dim_replicate}", ((), ("pp",), ())),
        # the same devices hold each tile, whatever the order in which they are listed
        ("{devices=[1,2,1,4]1,0,3,2,4,5,7,6 last_tile_dim_replicate}", ((), ("pp",), ())),
        ("{replicated}", ((), (), ())),
    ],
)
def test_the_tiles_of_a_sharding_are_said_as_axes(sharding, split):
    assert parse_sharding(sharding, rank=3, axes=AXES) == split


@pytest.mark.parametrize(
    ("sharding", "says"),
    [
        # two tiles along a dim, of the even and the odd devices: half of tp
        ("{devices=[1,1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}", "splits no whole axes of dp=1,pp=2"),
        # along the dim the last shard comes first
        ("{devices=[1,1,8]7,6,5,4,3,2,1,0}", "splits no whole axes"),
        ("{devices=[1,1,4]0,1,2,3}", "of 3 dims splits no whole axes of dp=1,pp=2"),
        ("{devices=[2,2,1]0,1,2,3,4,5,6,7}", "has sizes whose product is not the number of ids"),
        ("{maximal device=0}", "tiles and replicas have one"),
        # Two dims, as the array has not.
        ("{devices=[2,4]<=[8]}", "of 3 dims splits no whole axes"),
    ],
)
def test_what_axes_cannot_say_is_not_offered(sharding, says):
    with pytest.raises(RefusedError, match=f"^not offered: .*{re.escape(says)}"):
        parse_sharding(sharding, rank=3, axes=AXES)


def worker(module: str, request: dict, out: Path, **more: str) -> subprocess.CompletedProcess:
    (out / "request.json").write_text(json.dumps(request))
    return subprocess.run(
        [sys.executable, "-m", module, str(out / "request.json"), str(out)],
        cwd=ROOT,
        env=os.environ | QUIET | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def rewrite(tmp_path: Path, *, target: str = "Sharding") -> subprocess.CompletedProcess:
    (tmp_path / "program.mlirbc").write_text(PROGRAM.replace("TARGET", target))
    (tmp_path / "about.json").write_text(
        json.dumps({"partitioner": "gspmd", "compile_options": OPTIONS, "loop": "scan"})
    )
    (tmp_path / "shardy").mkdir()
    return worker(
        "compare.compile.workers.gspmd_to_shardy", {"program": str(tmp_path), "axes": AXES}, tmp_path / "shardy"
    )


def compile_text(folder: Path, options: dict) -> tuple[set[str], list[tuple[str, str, int]]]:
    """The passes that were seen by name, and the collectives of the optimized program."""
    dump = folder / "dump"
    asked = {
        "program": str(folder / "program.mlirbc"),
        "topology": "v5e:2x4",
        "num_slices": 1,
        "places": V5E,
        "compile_options": options,
        "strip": [],
        "passes": False,
    }
    flags = f"--xla_dump_to={dump} --xla_dump_hlo_pass_re=shardy-xla --xla_dump_hlo_as_text"
    done = worker("compare.compile.workers.compile_request", asked, folder, XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    text = next(dump.glob("*after_optimizations.txt")).read_text()
    rows = collectives(read(text), {"pp": 2, "tp": 4})
    return {path.name.split("after_")[-1] for path in dump.glob("*shardy-xla*")}, [
        (row.kind, row.axes, row.payload_bytes) for row in rows
    ]


@pytest.mark.slow
def test_libtpu_s_shardy_takes_the_rewritten_program_and_only_that(tmp_path):
    done = rewrite(tmp_path)
    assert done.returncode == 0, done.stderr
    about = json.loads((tmp_path / "shardy" / "about.json").read_text())
    assert (about["partitioner"], about["loop"]) == ("shardy", "scan")
    assert about["rewritten"] == {"from": "gspmd", "pins": 1}
    asked = about["compile_options"]
    assert asked == OPTIONS | {"use_shardy_partitioner": True}
    passes, rows = compile_text(tmp_path / "shardy", asked)
    assert any(name.startswith("shardy-xla") for name in passes), "libtpu fell back to GSPMD"
    # 512 ÷ 2 rows of 512 partial sums, bf16
    assert rows == [("all-reduce", "tp", 256 * 512 * 2)]
    # The same options without the rewrite: GSPMD, and no word of it.
    before, same = compile_text(tmp_path, asked)
    assert (before, same) == (set(), rows)


def test_collectives_by_hand_have_no_form_for_shardy(tmp_path):
    done = rewrite(tmp_path, target="SPMDFullToShardShape")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("not offered: collectives written by hand for GSPMD")
    assert "Traceback" not in done.stderr
