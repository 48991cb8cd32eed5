"""The constants, the page of errors, and the schedules of real programs."""

import gzip
import json

import pytest

from benchmarks.model import PAGE, check_model, fit_links, page
from benchmarks.published import measurements, programs
from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.text.module import read
from compare.schedule.hardware import Hardware
from compare.schedule.links import Torus
from compare.schedule.schedule import model_module
from meshes.devices.generations import GENERATIONS
from meshes.devices.topology import Topology
from tests.places import CORPUS


@pytest.mark.parametrize("generation", ["v5e", "v5p", "v6e", "tpu7x"])
def test_the_constants_of_links_are_what_the_fit_rows_give(generation):
    rates = GENERATIONS[generation].time
    fit_rows = [measurement for measurement in measurements() if measurement.generation == generation]
    hop_s = None if rates["hop_s"].source.startswith("fit") else rates["hop_s"].value
    fitted = fit_links(fit_rows, programs(), hop_s=hop_s)
    assert fitted == pytest.approx([rates[key].value for key in ("launch_s", "hop_s", "link_bytes_per_s")], rel=1e-4)


def test_the_model_gives_every_row_that_it_was_fitted_to():
    held = [entry for entry in check_model(measurements(), programs()) if entry.measured.role == "fit"]
    assert len(held) == 13
    assert [entry.error for entry in held] == pytest.approx([0] * 13, abs=1e-4)


def test_constants_name_the_rows_that_they_were_fitted_to():
    ids = {entry.id for entry in measurements() if entry.role == "fit"}
    sources = [figure.source for chip in GENERATIONS.values() for figure in chip.time.values()]
    named = {word for source in sources if source.startswith("fit: ") for word in source[5:].split(", ")}
    assert named == ids


@pytest.mark.slow
def test_the_page_is_what_the_model_gives_now():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text


def model_step(name: str, where: str):
    """A program of the corpus, on the slice that it was compiled for."""
    axes = read_axes(json.loads((CORPUS / f"{name}.json").read_text())["axes"])
    module = read(gzip.decompress((CORPUS / f"{name}.hlo.gz").read_bytes()).decode())
    rows = collectives(module, axes)
    shape = Topology.parse(where)
    hardware = Hardware.of(shape.generation)
    torus = Torus(shape.places(), shape.sides, shape.wraps)
    return rows, model_module(module, rows, torus, hardware=hardware, slices=shape.slices, name=where)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("pipe_cond", "v5e:2x4"),
        ("cond_counters", "v5e:2x4"),
        ("both_branches", "v5e:2x4"),
        ("switch_tick", "v5e:2x4"),
        ("two_chains", "v5e:2x4"),
        ("win_direct_v5e_tp8", "v5e:2x4"),
        ("axes_permute", "v5e:2x4"),
        ("fsdp_7x", "tpu7x:2x2x2"),
        ("sp_v5p_small", "v5p:2x2x2"),
        ("h_dcn_stages", "2xv5e:2x4"),
        ("big_mesh", "v5e:16x16"),
    ],
)
def test_every_device_runs_each_collective_as_often_as_the_rows_say(name, where):
    rows, timeline = model_step(name, where)
    comms = timeline.events[timeline.events["role"] == "communication"]
    counts = comms.groupby(["device", "collective"], observed=True).size()
    shown = {device: first for first, alike in timeline.stands_for.items() for device in alike}
    for row in rows:
        assert row.executions_are == "exact"
        value = tuple(counts.get((shown[device], row.name), 0) for device in range(len(shown)))
        assert value == row.device_executions


def test_classes_cover_every_device_once_and_times_are_sane():
    _, timeline = model_step("big_mesh", "v5e:16x16")
    assert sorted(device for alike in timeline.stands_for.values() for device in alike) == list(range(256))
    events = timeline.events
    assert (events["start_ns"] >= 0).all()
    assert (events["duration_ns"] >= 0).all()
    assert (events["start_ns"] + events["duration_ns"] <= timeline.steps["duration_ns"].max() + 1e-6).all()
    # The operations of one core do not overlap.
    core = events[(events["line"] == "XLA Ops") & (events["role"] != "container")]
    for _, rows in core.sort_values(["start_ns", "duration_ns"]).groupby("device"):
        ends = (rows["start_ns"] + rows["duration_ns"]).to_numpy()
        assert (rows["start_ns"].to_numpy()[1:] >= ends[:-1] - 1e-6).all()
