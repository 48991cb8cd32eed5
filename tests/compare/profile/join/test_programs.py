"""Compiled TPU programs, run by a toy TPU: their profiles tell each collective as often as it ran, over its axes."""

import gzip
import json
import subprocess
import sys
from collections import Counter

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.text.module import read
from tests.compare.hlo.proto.test_program import SERIALIZE
from tests.compare.timeline.scenes import timeline
from tests.compare.timeline.spaces import Space
from tests.compare.timeline.toy_tpu import ToyTpu, write_program
from tests.places import CORPUS

PROGRAMS = [
    "async_all_reduce",
    "two_chains",
    "fsdp_v5e_fuse",
    "combined",
    "nested_cond",
    "pipe_cond_layers",
    "moe_ragged",
    "sp_v5p_small",
    "win_v6e_tp8",
    "fsdp_7x",
    "overlap_7x",
    "sp_7x",
    "dcn_7x",
    "dcn_pipe",
    "ring_attention",
]
STEPS = 2


@pytest.fixture(scope="module")
def protos(tmp_path_factory):
    pytest.importorskip("jaxlib._hlo")
    out = tmp_path_factory.mktemp("protos")
    paths = [str(CORPUS / f"{name}.hlo.gz") for name in PROGRAMS]
    subprocess.run([sys.executable, "-c", SERIALIZE, str(out), *paths], check=True, timeout=120)
    return out


def program(name):
    axes = json.loads((CORPUS / f"{name}.json").read_text())["axes"]
    return read(gzip.decompress((CORPUS / f"{name}.hlo.gz").read_bytes()).decode()), read_axes(axes)


@pytest.mark.parametrize("own_line", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_the_profile_carries(tmp_path, protos, name, own_line):
    module, axes = program(name)
    space = Space()
    write_program(space, module, (protos / f"{name}.pb").read_bytes())
    tpu = ToyTpu(space, module, own_line=own_line)
    tpu.steps(STEPS)
    joined = timeline(space, tmp_path, axes)
    comms = joined.events[joined.events["role"] == "communication"]
    seen = Counter(comms[["collective", "kind", "axes", "payload_bytes"]].itertuples(index=False, name=None))
    rows = collectives(module, axes)
    expected = {(row.name, row.kind, row.axes, row.payload_bytes): tpu.executed[row.name] for row in rows}
    assert seen == Counter(expected)
    assert joined.unjoined_events == 0
    assert not any("not in the program" in note for note in joined.notes)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not name.startswith("dcn")])
def test_lines_of_hlo_alone_tell_as_many(tmp_path, name):
    """What fusions hold they do not tell, nor what is called; but how often, and of all others the axes."""
    module, axes = program(name)
    space = Space()
    tpu = ToyTpu(space, module)
    tpu.steps(STEPS)
    joined = timeline(space, tmp_path, axes)
    comms = joined.events[joined.events["role"] == "communication"]
    rows = collectives(module, axes)
    assert len(comms) == sum(tpu.executed[row.name] for row in rows)
    words = comms[comms["axes"] != "?"].groupby("axes", observed=True).size().to_dict()
    most = Counter[str]()
    for row in rows:
        most[row.axes] += tpu.executed[row.name]
    assert all(words[name] <= most[name] for name in words)
    if {row.form for row in rows} <= {"sync", "start-done", "windowed-einsum", "sparsecore-call"}:
        assert words == {name: count for name, count in most.items() if count}
