"""Which measured programs of two arms are held against each other; a modelled step with a user's constants."""

from dataclasses import replace

import pytest

from compare.run.errors import WorkError
from compare.run.folder.chip import CHIP, read_chip_of
from compare.run.folder.load_run import judge_run, read_run
from compare.run.folder.timelines import build_timelines
from meshes.devices.generations import GENERATIONS
from tests.places import EXAMPLE


def test_a_step_is_modelled_with_the_constants_of_the_folder_and_says_where_they_are_from(tmp_path):
    """Links of half the rate: the same compute, and more communication."""
    run = read_run(EXAMPLE)
    decode = judge_run(replace(run, results=run.select(("jax", "decode", "tpu")))).programs
    (usual,) = build_timelines(decode, folder=tmp_path).by_key.values()
    (tmp_path / CHIP).write_text(
        'generation = "v5e"\ncalibrated-on = "our pod, June"\n'
        '[time.link_bytes_per_s]\nvalue = 18.65e9\nunit = "byte/s"\n'
    )
    (slow,) = build_timelines(decode, folder=tmp_path).by_key.values()
    assert usual.label == "modelled for v5e:2x4"
    assert slow.label == "modelled for v5e:2x4, calibrated on our pod, June"
    assert _ns(slow, "compute") == pytest.approx(_ns(usual, "compute"))
    assert 1.05 * _ns(usual, "communication") < _ns(slow, "communication") < 2 * _ns(usual, "communication")


def _ns(timeline, role):
    events = timeline.events
    return float((events["duration_ns"] - events["wait_ns"].fillna(0))[events["role"] == role].sum())


def test_constants_that_cannot_be_read_are_one_line(tmp_path):
    (tmp_path / CHIP).write_text("[voltage]\ngamma = 3\n")
    with pytest.raises(WorkError, match=r"chip\.toml: voltage\.gamma: a number from 0 to 1, not 3$"):
        read_chip_of(tmp_path / CHIP, GENERATIONS["v5e"])
