"""The example run on other machines.  On its own slice the engine and the schedule model come to the same times."""

import json
import re
from dataclasses import replace

import pytest

from compare.ccl_bench_metrics.subject import Request, read_subject
from compare.ccl_bench_metrics.traffic import scale_up_bw_utility
from compare.cli.simulate import main
from compare.simulate.what_if.changed_machine import build_simulation
from compare.simulate.what_if.framework import list_induced
from compare.simulate.what_if.subjects import Outcome, load_subjects, simulate_subject
from compare.simulate.what_if.what_if_result import simulate_run
from compare.timeline.errors import TimingError
from tests.compare.simulate.asking import refuse
from tests.compare.simulate.what_if.requests import parse_what_if
from tests.places import ROOT

RUN = ROOT / "docs" / "example-run"
SWEPT = [str(RUN), "--json", "--sweep", "ici=0.5:2:log", "--points", "3"]
CLOSE = 2e-6
"""Durations of compute are whole ns in a graph."""


@pytest.fixture(scope="module")
def subjects():
    return load_subjects(RUN)[0]


@pytest.fixture(scope="module")
def results(subjects):
    """One search for enough bandwidth, of every program."""
    return simulate_run(parse_what_if(SWEPT), subjects)


@pytest.fixture(scope="module")
def report():
    return json.loads((RUN / "report.json").read_text())


def simulate(subjects, *words):
    request = parse_what_if([str(RUN), *words])
    return {
        (each.arm, each.phase): simulate_subject(each, build_simulation(request, each.topology)) for each in subjects
    }


def test_on_its_own_slice_a_program_takes_as_long_as_modelled(subjects, report):
    for (arm, phase), outcome in simulate(subjects).items():
        timing = report["phases"][phase]["arms"][arm]["timing"]
        assert outcome.step_ns == pytest.approx(timing["per_step"]["step_ns"], rel=CLOSE)
        for verdict, ns in outcome.exposed_ns.items():
            assert ns == pytest.approx(timing["by_verdict"][verdict]["exposed_ns"], rel=1e-4, abs=5)


def test_a_machine_twice_as_fast_in_all_takes_half_the_time(subjects):
    now = simulate(subjects)
    faster = simulate(subjects, "--scale", "bandwidth=2,latency=0.5,compute=2")
    for key, outcome in now.items():
        assert faster[key].step_ns == pytest.approx(outcome.step_ns / 2, rel=1e-4)


def test_set_and_scale_say_the_same_in_two_ways(subjects):
    scaled = simulate(subjects, "--scale", "ici=2")
    written = simulate(subjects, "--set", "dims.0.bandwidth=74.606", "--set", "dims.1.bandwidth=74.606")
    for key, outcome in scaled.items():
        assert written[key].step_ns == pytest.approx(outcome.step_ns, rel=1e-5)


def test_copies_side_by_side_on_links_of_their_own_change_nothing(subjects):
    """Each copy is a slab of 4×2 on a 4×4: as long as alone on lines of 4 and 2."""
    twice = build_simulation(parse_what_if([str(RUN), "--machine", "v5e:4x4", "--repeat", "2"]), "")
    line, other = twice.machine.dims
    alone = replace(twice, repeat=1, machine=replace(twice.machine, dims=(line, replace(other, size=2))))
    for subject in subjects[:2]:
        assert simulate_subject(subject, twice).step_ns == pytest.approx(
            simulate_subject(subject, alone).step_ns, rel=1e-9
        )


@pytest.mark.slow
def test_enough_bandwidth_is_where_doubling_no_longer_pays(subjects, results):
    result = results[0]
    assert result.enough is not None
    steps = [
        simulate(subjects[:1], "--scale", f"bandwidth={factor}")[subjects[0].arm, subjects[0].phase].step_ns
        for factor in (result.enough, 2 * result.enough, result.enough / 1.02, 2 * result.enough / 1.02)
    ]
    assert 100 * (steps[0] - steps[1]) / steps[0] < 1 <= 100 * (steps[2] - steps[3]) / steps[2]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--machine", "v5e:4x4"), "v5e:4x4 has 16 ranks, and jax/prefill/tpu 8; --repeat 2 runs that many copies"),
        (("--machine", "v5e:2x2"), "v5e:2x2 has 4 ranks, and jax/prefill/tpu 8"),
        (("--scale", "ice=2"), "scale: unknown 'ice'; known are bandwidth, ici, dcn, latency, launch, memory, compute"),
        (("--scale", "ici=0"), "scale: ici times a number more than 0 and at most 1e9, not 0"),
        (("--scale", "dcn=2"), "scale: v5e:2x4 has no dims that dcn is the bandwidth of"),
        (("--set", "dims.0.bandwidth=0"), "dims.0.bandwidth: the bandwidth of a dim is more than 0, not 0"),
        (("--set", "dims.7.bandwidth=1"), "set: v5e:2x4 has no 'dims.7.bandwidth'"),
        (("--set", "speed=1"), "speed: unknown key; known are name"),
        (("--algorithm", "all-reduce=spiral"), "unknown algorithm 'spiral'; known are ring"),
        (("--algorithm", "all-sum=ring"), "algorithm: unknown collective 'all-sum'; known are all-reduce"),
        (("--sweep", "ici=8:1:log"), "--sweep: from a number more than 0 to a larger one, not 8 to 1"),
        (("--sweep", "ici"), "--sweep: 'ici' is no range; write one like ici=0.25:8:log"),
        (("--sweep", "machine=v5e:2x4"), "--sweep: a list has 2 to 200 values, each once, not 'v5e:2x4'"),
        (("--sweep", "machine=v5e:2x4,v5e:4x4"), "v5e:4x4 has 16 ranks, and jax/prefill/tpu 8"),
        (("--sweep", "all-reduce=ring,spiral"), "unknown algorithm 'spiral'; known are ring"),
        (("--sweep", "=1,2"), "--sweep: '=1,2' names nothing; write one like ici=0.25:8:log"),
        (("--points", "3"), "--points belongs to --sweep"),
        (("--sweep", "dims.0.size=2,4"), "v5e:2x4 with dims.0.size=4 has 16 ranks, and jax/prefill/tpu 8"),
        (("--scale", "ici=2", "--sweep", "dims.0.size=2,4"), "v5e:2x4 with ici=2, dims.0.size=4 has 16 ranks"),
        (("--sweep", "foo=1:2"), "--sweep: unknown 'foo'; known are bandwidth, ici, dcn, latency, launch, memory, "),
        (("--sweep", "foo=1,2"), "all-to-all, and the keys of a machine's file: name, peak, multi,"),
        (("--sweep", "ici=1:2", "--points", "0"), "argument --points: 2 to 200, not '0'"),
        (("--sweep", "ici=1:2", "--points", "1"), "argument --points: 2 to 200, not '1'"),
        (("--sweep", "ici=1:2", "--points", "201"), "argument --points: 2 to 200, not '201'"),
        (("--sweep", "ici=2,1"), "--sweep: ascending numbers more than 0, not '2,1'"),
        (("--sweep", "ici=1,2", "--points", "3"), "--points belongs to a range, not to the list '1,2'"),
        (("--sweep", "dims.0.kind=ring,spiral"), "dims.0.kind: unknown dim 'spiral'; known are ring"),
        (("--set", "dims.3.algorithm=ring"), "set: v5e:2x4 has no 'dims.3.algorithm'; it has 2 dims"),
        (("--algorithm", "all-reduce=custom:tree"), "the machine's file has no table [custom.tree]; known are none"),
    ],
)
def test_a_bad_machine_is_one_line(subjects, words, why, monkeypatch):
    monkeypatch.setattr("compare.simulate.what_if.subjects.load_subjects", lambda _, chip: (subjects, ()))
    assert why in refuse(RUN, *words)


def test_a_file_that_does_not_fit_is_named(subjects, tmp_path):
    path = tmp_path / "four.toml"
    path.write_text('[[dims]]\nkind = "ring"\nsize = 4\nbandwidth = 1\nlatency = 1\n')
    with pytest.raises(TimingError, match=f"^{path}: four has 4 ranks, and jax/prefill/tpu 8$"):
        simulate_run(parse_what_if([str(RUN), "--machine", str(path)]), subjects[:1])


def test_what_cannot_be_written_prints_nothing(subjects, tmp_path, monkeypatch):
    monkeypatch.setattr("compare.simulate.what_if.subjects.load_subjects", lambda _, chip: (subjects[:1], ()))
    path = tmp_path / "file"
    path.write_text("mine")
    refuse(RUN, "--out", path)
    assert path.read_text() == "mine"


@pytest.mark.slow
def test_the_answer_as_json_names_every_program(subjects, results, capsys, monkeypatch):
    def simulate_once(request, programs):
        assert request == parse_what_if(SWEPT)
        assert programs is subjects
        return results

    monkeypatch.setattr("compare.simulate.what_if.subjects.load_subjects", lambda _, chip: (subjects, ()))
    monkeypatch.setattr("compare.simulate.what_if.what_if_result.simulate_run", simulate_once)
    assert main(SWEPT) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer["programs"]) == [
        "jax/prefill/tpu",
        "torchxla/prefill/tpu",
        "jax/decode/tpu",
        "torchxla/decode/tpu",
    ]
    rows = answer["programs"]["jax/prefill/tpu"]
    assert [row["value"] for row in rows["sweep"]] == [0.5, 1, 2]
    assert rows["sweep"][1]["step_ns"] == rows["step_ns"]
    assert rows["sweep"][2]["step_ns"] == rows["twice_the_bandwidth"]["step_ns"]


@pytest.mark.slow
def test_the_utility_of_bandwidth_is_that_of_the_schedule_model(results):
    """`compare.metric` doubles the links' rate in the model, here the machine's dims are doubled."""
    subject = read_subject(Request(trace=RUN, arm="jax", phase="prefill", cell="tpu"))
    assert results[0].scale_up_bw_utility == pytest.approx(scale_up_bw_utility(subject).number, rel=1e-5)


def test_a_sweep_over_machines_or_algorithms_is_each_of_them_alone(subjects):
    request = parse_what_if([str(RUN), "--sweep", "machine=v5e:2x4,v6e:2x4"])
    (result,) = simulate_run(request, subjects[:1])
    key = subjects[0].arm, subjects[0].phase
    assert [value for value, _ in result.sweep] == ["v5e:2x4", "v6e:2x4"]
    assert result.sweep[1][1] == simulate(subjects[:1], "--machine", "v6e:2x4")[key]
    request = parse_what_if([str(RUN), "--sweep", "all-reduce=ring,direct"])
    (result,) = simulate_run(request, subjects[:1])
    assert result.sweep[1][1] == simulate(subjects[:1], "--algorithm", "all-reduce=direct")[key]


def test_rows_of_other_chips_say_whose_compute_they_have(subjects, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("compare.simulate.what_if.subjects.load_subjects", lambda _, chip: (subjects[:1], ()))
    mine = tmp_path / "mine.toml"
    rates = "bandwidth = 1\nlatency = 1\n"
    mine.write_text(f'[[dims]]\nkind = "ring"\nsize = 8\n{rates}')
    assert main([str(RUN), "--sweep", f"machine=v5e:2x4,v6e:2x4,{mine}"]) == 0
    rows = capsys.readouterr().out.splitlines()[3:6]
    names = ["v5e:2x4", "v6e:2x4, compute of v5e:2x4", f"{mine}, compute of v5e:2x4"]
    for row, name in zip(rows, names, strict=True):
        assert re.match(rf"  {re.escape(name)}  +\d", row)


def test_the_algorithm_of_one_dim_is_set_for_every_kind(subjects):
    machine = build_simulation(parse_what_if([str(RUN), "--set", "dims.1.algorithm=direct"]), "v5e:2x4").machine
    assert [each.text for each in machine.algorithms.of("all-gather")] == ["ring", "direct"]
    assert machine.compiled == ()


def test_framework_induced_time_is_what_a_place_has_beyond_the_least_of_all_frameworks():
    def outcome(**avoidable):
        places = {(scope, "tp"): ns for scope, ns in avoidable.items()}
        return Outcome(step_ns=1.0, compute_ns=1.0, exposed_ns={}, avoidable_ns=places)

    outcomes = {"a": outcome(mlp=7.0, head=5.0), "b": outcome(mlp=3.0, embed=2.0), "c": outcome(mlp=4.0, head=5.0)}
    # 3 are common, in mlp: head and embed are not in all.
    assert list_induced(outcomes) == {"a": 4 + 5, "b": 2, "c": 1 + 5}


@pytest.mark.slow
def test_what_a_faster_network_hides_of_the_time_that_only_one_framework_has(subjects, results):
    """In prefill all that JAX could avoid TorchXLA has, too: induced is the difference of the two."""
    pair = [each for each in subjects if each.phase == "prefill"]
    results = {each.subject.arm: each for each in results if each.subject.phase == "prefill"}
    induced = results["torchxla"].induced
    assert results["jax"].induced.cell == "tpu+gspmd"
    both = {arm: results[arm].outcome.total_avoidable_ns for arm in results}
    assert induced.now_ns == pytest.approx(both["torchxla"] - both["jax"], rel=1e-3)
    faster = simulate(pair, "--scale", "bandwidth=2")
    twice = [faster[arm, "prefill"].total_avoidable_ns for arm in ("torchxla", "jax")]
    assert induced.twice_ns == pytest.approx(twice[0] - twice[1], rel=1e-3)
    at_enough = simulate(pair, "--scale", f"bandwidth={induced.enough}")
    left = [at_enough[arm, "prefill"].total_avoidable_ns for arm in ("torchxla", "jax")]
    assert left[0] - left[1] == pytest.approx(at_enough["torchxla", "prefill"].step_ns / 100, rel=0.02)


def test_the_choice_of_the_compiler_is_held_against_the_fastest_algorithm(subjects):
    """All-reduces of tp4 on the line of 4: a ring with S/4 in each of 6 steps, 3 hops a step; and the launch."""
    request = parse_what_if([str(RUN), "--best"])
    (result,) = simulate_run(request, subjects[:1])
    row = next(each for each in result.best if each.num_bytes == 16_777_216)
    assert (row.by_compiler, row.best, row.executions) == (True, "ring", 80)
    assert row.best_ns == pytest.approx(6 * (3 * 465.67 + 16_777_216 / 4 / 37.303) + 3_967.7)
    assert row.distance == pytest.approx(100 * (row.chosen_ns / row.best_ns - 1))
    assert row.distance < 0


def test_a_folder_of_neither_kind_is_named(tmp_path):
    with pytest.raises(TimingError, match=r"is no run folder, it has no case.json; a Chakra trace"):
        load_subjects(tmp_path)
