"""Calibrating on what the schedule model gives yields the constants that it has: the same counts of the same programs,
compiled by libtpu for slices of v6e of up to 256 chips."""

import pytest

from benchmarks.model import model_s
from benchmarks.published import chip, measurements, programs
from compare.calibrate.constants import convert_time, fit_time
from compare.calibrate.windows import make_table
from compare.calibrate.work import Device, count_work
from compare.schedule.hardware import Hardware
from meshes.devices.generations import GENERATIONS


@pytest.fixture(scope="module")
def fit():
    """From permutes, all-reduces, all-to-alls, products and a copy; each takes as long as it is modelled."""
    compiled, rows = programs(), []
    for row in measurements():
        if row.generation == "v6e" and row.id in compiled:
            program, hardware = compiled[row.id], Hardware.of(chip(row))
            whole = model_s(_as_host(row), program, hardware)
            work = count_work(program.text, Device(chip(row), tuple(program.places)))
            rows.append({"name": row.id, "kind": row.what, "time_s": whole, **work})
    return fit_time(make_table(rows))


def _as_host(row):
    """The measurement as one of the whole program."""
    return type(row)(row.id, row.what, row.role, row.generation, row.source, row.quoted, "host", row.fields)


@pytest.mark.slow
def test_links_launches_and_steps_come_back(fit):
    """To one per cent of the rate; launches and steps, which are small beside it, to four."""
    fitted = {each.name: each for each in filter(None, map(convert_time, fit.estimates))}
    known = GENERATIONS["v6e"].time
    assert fitted["link_bytes_per_s"].value == pytest.approx(known["link_bytes_per_s"].value, rel=0.01)
    for name in ("launch_s", "hop_s"):
        truth = known[name].value
        assert fitted[name].value == pytest.approx(truth, rel=0.04)
        assert fitted[name].low < truth < fitted[name].high
    truth = GENERATIONS["v6e"].hbm_bytes_per_s * known["hbm_reach"].value
    assert fitted["memory_bytes_per_s"].value == pytest.approx(truth, rel=0.01)
    assert fitted["cycle_factor"].low < known["cycle_factor"].value < fitted["cycle_factor"].high


@pytest.mark.slow
def test_what_no_program_shows_is_not_fitted(fit):
    assert set(fit.unseen) == {
        "dispatch_s",
        "matrix_flops_per_s",
        "vector_ops_per_s",
        "dcn_launch_s",
        "dcn_bytes_per_s",
    }
    assert fit.collinear == ()
