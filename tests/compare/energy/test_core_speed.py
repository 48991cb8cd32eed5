"""Time and energy at other speeds, on toy programs whose parts are known in nanoseconds."""

from dataclasses import replace

import numpy as np
import pytest

from compare.energy.core_speed import (
    COMPUTE,
    Workload,
    best_delay,
    best_energy,
    measure_marginal,
    place_on_voltage,
)
from compare.energy.voltage import Voltage
from compare.hlo.collectives.collectives import collectives
from compare.hlo.text.module import read
from meshes.devices.chip_file import parse_chip
from meshes.devices.generations import GENERATIONS
from meshes.mesh_argument import read_mesh
from tests.compare.schedule.toys import ALL_REDUCE_NS, BETWEEN_SLICES, ROUND, STAGES, X, program

CHIP = parse_chip(
    {
        "energy": {
            "matrix": {"value": 0.5, "unit": "pJ/FLOP"},
            "vector": {"value": 1, "unit": "pJ/op"},
            "memory": {"value": 5, "unit": "pJ/bit"},
            "ici": {"value": 2, "unit": "pJ/bit"},
            "dcn": {"value": 25, "unit": "pJ/bit"},
            "static": {"value": 80, "unit": "W"},
        }
    },
    GENERATIONS["v5e"],
    name="by hand",
)
FLOPS, HOPS = 1e9, 5e6
"""Of the full mesh; 0.5 mJ of arithmetic, 80 µJ of links."""
AMOUNTS = np.array([FLOPS, 0, 0, HOPS, 0, 0])
MATRIX_J, ICI_J = 0.5e-3, 16e-12 * HOPS
COMPUTE_NS = 500
LINK_NS = 4000 * 1.5 / 10
"""What the bytes of the all-reduce take, of ALL_REDUCE_NS."""


def workload(entry, *, amounts=AMOUNTS, mesh="tp4pp2@v5e:2x4", partitions=8):
    plan = read_mesh(mesh)
    module = read(program(entry, head=f"num_partitions={partitions}"))
    rows = collectives(module, plan.mesh.split_axes)
    return replace(Workload.of(module, rows, plan, hardware=ROUND), amounts=np.array(amounts))


ONE_AFTER_THE_OTHER = f"""
  y = {X} compute(x, {COMPUTE_NS})
  ROOT z = {X} all-reduce(y), channel_id=1, replica_groups={STAGES}, use_global_device_ids=true, to_apply=sum
"""


def scale_frequency(workload, frequencies, chip, voltage):
    times = {frequency: workload.step_ns(COMPUTE, frequency) for frequency in frequencies}
    return place_on_voltage(workload, times, chip, voltage)


def test_at_half_the_frequency_arithmetic_takes_twice_as_long_and_nothing_else():
    """V is 0.75: dynamic energy of the arithmetic × 0.5625; of static power 40 % × 0.75, the rest as it was."""
    (point,) = scale_frequency(workload(ONE_AFTER_THE_OTHER), [0.5], CHIP, Voltage(core_share=0.4))
    assert (point.voltage, point.step_ns) == (0.75, pytest.approx(2 * COMPUTE_NS + ALL_REDUCE_NS))
    static = 8 * 80 * (0.6 + 0.4 * 0.75) * point.step_ns / 1e9
    assert point.step_j == pytest.approx(0.5625 * MATRIX_J + ICI_J + static)
    assert point.delay_j_s == pytest.approx(point.step_j * point.step_ns / 1e9)
    assert (point.low_j, point.high_j) == pytest.approx((point.step_j, point.step_j))


def test_the_range_of_a_frequency_holds_the_range_of_the_cores_share():
    """Of v5e 29 % of static power is on the core's supply, 6 to 70 %: at 0.75 V that is × 0.9275, 0.985 to 0.825."""
    (point,) = scale_frequency(workload(ONE_AFTER_THE_OTHER), [0.5], CHIP, Voltage())
    static, rest = 640 * (2 * COMPUTE_NS + ALL_REDUCE_NS) / 1e9, 0.5625 * MATRIX_J + ICI_J
    by_hand = [rest + static * factor for factor in (0.825, 0.9275, 0.985)]
    assert [point.low_j, point.step_j, point.high_j] == pytest.approx(by_hand)


def test_at_the_nominal_frequency_the_step_is_what_it_was():
    (point,) = scale_frequency(workload(ONE_AFTER_THE_OTHER), [1.0], CHIP, Voltage())
    assert point.step_ns == pytest.approx(COMPUTE_NS + ALL_REDUCE_NS)
    assert point.step_j == pytest.approx(MATRIX_J + ICI_J + 8 * 80 * point.step_ns / 1e9)


def test_the_best_frequency_is_that_of_the_least_energy_and_of_the_least_energy_times_delay():
    """E = 0.5 mJ·V² + 0.08 mJ + 640 W·V·(500/f + 760) ns: with V = f, 0.5 f² + 0.08 + 0.32 + 0.4864 f mJ falls with f,
    and E × delay at 0.5 is 0.7682 mJ × 1760 ns, at 1 1.3864 mJ × 1260 ns, at 0.7 0.9855 mJ × 1474 ns.
    All static power is on the core's supply."""
    points = scale_frequency(workload(ONE_AFTER_THE_OTHER), [0.5, 0.7, 1.0], CHIP, Voltage(1.0, core_share=1.0))
    assert [1e3 * point.step_j for point in points] == pytest.approx([0.7682, 0.98548, 1.3864])
    assert best_energy(points).frequency == 0.5
    assert best_delay(points).frequency == 0.5
    # A fixed voltage saves nothing dynamic: the step is longer, and static power costs more.
    fixed = scale_frequency(workload(ONE_AFTER_THE_OTHER), [0.5, 0.7, 1.0], CHIP, Voltage(0.0))
    assert best_energy(fixed).frequency == best_delay(fixed).frequency == 1.0


HIDDEN = f"""
  s = ({X}, {X}) collective-permute-start(x), channel_id=1, source_target_pairs={{{{0,4}},{{1,5}},{{2,6}},{{3,7}}}}
  y = {X} compute(x, 900)
  d = {X} collective-permute-done(s)
  ROOT z = {X} compute(d, 100)
"""


@pytest.mark.parametrize("entry", [ONE_AFTER_THE_OTHER, HIDDEN], ids=["one after the other", "hidden"])
@pytest.mark.parametrize("flops", [1e8, 1e9, 4e9])
@pytest.mark.parametrize("voltage", [Voltage(), Voltage(0.0), Voltage(1.0), Voltage(0.5, core_share=1.0)])
def test_a_marginal_efficiency_is_the_slope_of_the_energies_at_other_frequencies(entry, flops, voltage):
    """−d ln E / d ln f of the core at f = 1, from `--frequency`, is what `--marginal` says of compute: one rule."""
    given = workload(entry, amounts=[flops, 0, 0, HOPS, 0, 0])
    slow, fast = scale_frequency(given, [0.99, 1.01], CHIP, voltage)
    slope = -np.log(fast.step_j / slow.step_j) / np.log(1.01 / 0.99)
    (compute,) = (each for each in measure_marginal(given, CHIP, voltage) if each.part == COMPUTE)
    assert compute.efficiency == pytest.approx(slope, abs=1e-9)
    assert compute.range.low - 1e-3 <= slope <= compute.range.high + 1e-3


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_marginal_efficiency_is_static_power_of_exposed_time_less_what_a_higher_voltage_costs(gamma, share):
    """(P_static · (t_exposed − γ · κ · step) − 2γ · E_dyn) ÷ E of the arithmetic, κ of static power on its supply;
    of the links without κ.  By hand."""
    step_s = (COMPUTE_NS + ALL_REDUCE_NS) / 1e9
    total = MATRIX_J + ICI_J + 640 * step_s
    voltage = Voltage(gamma, core_share=share)
    marginals = {each.part: each for each in measure_marginal(workload(ONE_AFTER_THE_OTHER), CHIP, voltage)}
    assert set(marginals) == {COMPUTE, "ici"}
    by_hand = {
        COMPUTE: (640 * (COMPUTE_NS / 1e9 - gamma * share * step_s) - 2 * gamma * MATRIX_J) / total,
        "ici": (640 * LINK_NS / 1e9 - 2 * gamma * ICI_J) / total,
    }
    for part, exposed_ns in ((COMPUTE, COMPUTE_NS), ("ici", LINK_NS)):
        assert marginals[part].efficiency == pytest.approx(by_hand[part], abs=2e-4)
        assert marginals[part].bound_ns == pytest.approx(exposed_ns, rel=1e-3)
    assert marginals["ici"].dynamic_j == pytest.approx(ICI_J)


def test_what_is_hidden_bounds_nothing_and_faster_only_costs():
    """An asynchronous permute of 510 ns behind 900 ns of compute: −2γ · E_dyn ÷ E."""
    marginals = {each.part: each for each in measure_marginal(workload(HIDDEN), CHIP, Voltage(0.5))}
    total = MATRIX_J + ICI_J + 640 * 1000e-9
    assert marginals["ici"].bound_ns == pytest.approx(0, abs=1e-6)
    assert marginals["ici"].efficiency == pytest.approx(-ICI_J / total, rel=1e-3)
    assert marginals[COMPUTE].bound_ns == pytest.approx(1000, rel=1e-3)


def test_where_gamma_is_assumed_the_range_holds_every_gamma():
    """From γ = 1 to γ = 0 with coefficients that are certain, and nothing of static power on the core's supply."""
    voltage = Voltage(core_share=0.0)
    assumed = {each.part: each for each in measure_marginal(workload(ONE_AFTER_THE_OTHER), CHIP, voltage)}[COMPUTE]
    total = MATRIX_J + ICI_J + 640 * (COMPUTE_NS + ALL_REDUCE_NS) / 1e9
    ends = [(640 * COMPUTE_NS / 1e9 - 2 * gamma * MATRIX_J) / total for gamma in (1, 0)]
    assert (assumed.range.low, assumed.range.high) == pytest.approx(ends, rel=1e-3)
    certain = Voltage(0.5, is_assumed=False, core_share=0.3)
    given = measure_marginal(workload(ONE_AFTER_THE_OTHER), CHIP, certain)[0]
    assert given.range.low == pytest.approx(given.range.high)


def test_the_range_of_a_marginal_efficiency_holds_the_range_of_the_cores_share():
    """v5e's 6 to 70 % of static power, × γ, of a step of 1,260 ns."""
    given = measure_marginal(workload(ONE_AFTER_THE_OTHER), CHIP, Voltage(0.5, is_assumed=False))[0]
    step_s = (COMPUTE_NS + ALL_REDUCE_NS) / 1e9
    total = MATRIX_J + ICI_J + 640 * step_s
    ends = [(640 * (COMPUTE_NS / 1e9 - 0.5 * share * step_s) - MATRIX_J) / total for share in (0.7, 0.06)]
    assert (given.range.low, given.range.high) == pytest.approx(ends, rel=1e-3)


def test_the_work_of_a_step_is_that_of_all_devices_that_an_event_stands_for():
    """1,000 elements on each of 8 devices; 4000 bytes, 2·3/4 of them out of each device, over one link each but for
    the way back along a line of four: 3 links for one device's."""
    plan = read_mesh("tp4pp2@v5e:2x4")
    module = read(program(ONE_AFTER_THE_OTHER))
    amounts = Workload.of(module, collectives(module, plan.mesh.split_axes), plan, hardware=ROUND).amounts
    by_line = 4000 * 1.5 / 2 * 2 * (3 * 1 + 3)
    assert amounts.tolist() == pytest.approx([0, 8 * 1000, 0, 2 * by_line, 0, 0])


def test_memory_bounds_what_reads_it():
    """A fusion that reads 400 kB at 100 a ns, 4000 ns, for 3.2 mJ of memory on 8 chips; then 500 ns on chip."""
    entry = f"""
  big = f32[100000]{{0}} parameter(1)
  near = f32[100000]{{0:S(1)}} negate(big)
  ROOT y = {X} compute(x, {COMPUTE_NS})
"""
    marginals = measure_marginal(workload(entry, amounts=[0, 1, 8e7, 0, 0, 0]), CHIP, Voltage(1.0))
    memory = next(each for each in marginals if each.part == "memory")
    assert memory.bound_ns == pytest.approx(4000, rel=1e-3)
    static = 640 * 4500e-9
    assert memory.efficiency == pytest.approx((640 * 4000e-9 - 2 * 3.2e-3) / (static + 3.2e-3), abs=1e-3)


def test_dcn_bounds_what_waits_for_another_slice():
    """4000 bytes at 1 a ns after 1000 ns that no speed changes; 16 kB on 8 chips, 3.2 µJ."""
    between = workload(BETWEEN_SLICES, amounts=[0, 0, 0, 0, 4 * 4000, 0], mesh="dp2tp4@2xv5e:2x2", partitions=4)
    (dcn,) = measure_marginal(between, CHIP, Voltage(0.5))
    assert (dcn.part, dcn.bound_ns) == ("dcn", pytest.approx(4000, rel=1e-3))
    joules = 4 * 4000 * 200e-12
    static = 640 * 5000e-9
    assert dcn.efficiency == pytest.approx((640 * 4000e-9 - joules) / (static + joules), abs=1e-3)
