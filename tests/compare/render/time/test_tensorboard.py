"""A run folder in TensorBoard: the real server, with the profile plugin, serves the profiles of both arms."""

import gzip
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

from tests.places import PROFILES

ARMS = ("jax", "torchxla")
TOOLS = ("trace_viewer@", "overview_page", "framework_op_stats")

pytestmark = pytest.mark.skipif(
    not (find_spec("tensorboard") and find_spec("xprof")),
    reason="no TensorBoard with the profile plugin: pip install -e '.[profile]'",
)


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder as `--execute cpu` leaves it, of both arms' own profiles."""
    folder = tmp_path_factory.mktemp("runs")
    for arm in ARMS:
        place = folder / arm / "prefill" / "cpu" / "trace" / "plugins" / "profile" / "prefill" / f"{arm}.xplane.pb"
        place.parent.mkdir(parents=True)
        (profile,) = PROFILES.glob(f"{arm}.xplane.pb*")
        place.write_bytes(gzip.decompress(profile.read_bytes()) if profile.suffix == ".gz" else profile.read_bytes())
    return folder


@pytest.fixture(scope="module")
def server(logdir: Path) -> Iterator[str]:
    """The address of `tensorboard --logdir`, on a port of its own choice."""
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(logdir),
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--load_fast",
        "false",
    ]
    log = logdir / "tensorboard.log"
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            yield _address(log, process)
        finally:
            process.terminate()


def _address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end and process.poll() is None:
        if match := re.search(r"http://127\.0\.0\.1:\d+", log.read_text(errors="replace")):
            return match[0]
        time.sleep(0.2)
    raise AssertionError(f"TensorBoard did not start: {log.read_text(errors='replace')[-2000:]}")


def _fetched(server: str, what: str, **parameters: str) -> Any:
    query = f"{server}/data/plugin/profile/{what}?{urlencode(parameters)}"
    with urlopen(Request(query, headers={"Accept-Encoding": "gzip"}), timeout=60) as answer:
        body = answer.read()
        packed = answer.headers.get("Content-Encoding") == "gzip"
    return json.loads(gzip.decompress(body) if packed else body)


def _run(arm: str) -> str:
    return f"{arm}/prefill/cpu/trace/prefill"


@pytest.mark.slow
def test_the_runs_of_both_arms_are_listed_with_their_tools(server: str) -> None:
    assert sorted(_fetched(server, "runs")) == sorted(map(_run, ARMS))
    for arm in ARMS:
        assert set(TOOLS) <= set(_fetched(server, "run_tools", run=_run(arm)))
        assert _fetched(server, "hosts", run=_run(arm), tag="trace_viewer@") == [{"hostname": arm}]


@pytest.mark.parametrize("arm", ARMS)
def test_the_trace_viewer_shows_the_collectives(server: str, arm: str) -> None:
    trace = _fetched(server, "data", run=_run(arm), tag="trace_viewer@", host=arm)
    names = {event.get("name", "") for event in trace["traceEvents"]}
    assert any(name.startswith(("all-reduce", "all-gather", "collective-permute")) for name in names), names


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("tool", TOOLS[1:])
def test_a_table_of_the_profile_is_served(server: str, arm: str, tool: str) -> None:
    tables = _fetched(server, "data", run=_run(arm), tag=tool, host=arm)
    assert any(table.get("rows") for table in tables)


def test_the_server_is_asked_for_by_the_name_that_the_readme_gives() -> None:
    assert shutil.which("tensorboard", path=str(Path(sys.executable).parent))
