"""Graphs of compiled programs: each rank has the collectives that the reader counts, with their bytes and groups.

The programs are those of the corpus, whose rows were worked out by hand; the example run's are tests/compare/export's.
"""

import gzip
import json
from functools import cache
from math import prod

import pytest

from compare.hlo.collectives.collectives import collectives
from compare.hlo.devices.axes import read_axes
from compare.hlo.devices.groups import SLICE_UNIT
from compare.hlo.text.module import read
from compare.network.graph.expand import expand_step, number_ranks
from compare.network.graph.graph import COMPUTE
from compare.schedule.hardware import Hardware
from compare.schedule.links import Torus
from compare.schedule.schedule import model_module, simulate_module
from meshes.devices.generations import generation
from meshes.devices.topology import Place
from meshes.mesh_argument import read_mesh
from tests.compare.chakra.counting import check_trace
from tests.compare.energy.conserving import check_timeline
from tests.places import CORPUS

PROGRAMS = sorted(path.name.removesuffix(".json") for path in CORPUS.glob("*.json"))


@cache
def load(name):
    """(table by hand, module, rows as read, torus, slices): the devices of a slice stand in a line, by their ids."""
    by_hand = json.loads((CORPUS / f"{name}.json").read_text())
    axes = read_axes(by_hand["axes"])
    module = read(gzip.decompress((CORPUS / f"{name}.hlo.gz").read_bytes()).decode())
    rows = collectives(module, axes, device_ids=by_hand.get("device_ids", ()))
    size = prod(axes.values())
    slices = size // (module.num_devices or size)
    side = size // slices
    ids = by_hand.get("device_ids") or [SLICE_UNIT * (1 + at // side) + at % side for at in range(size)]
    places = tuple(Place(number // SLICE_UNIT - 1, number % SLICE_UNIT, 0, 0, 0) for number in ids)
    torus = Torus(places, (side, 1, 1), (False, False, False))
    return by_hand, module, rows, torus, slices


@cache
def expand(name):
    """(rows by hand, rows as read, the graph): rank = device."""
    by_hand, module, rows, torus, slices = load(name)
    simulated = simulate_module(module, rows, torus, hardware=Hardware.of(generation("v5e")), slices=slices)
    return by_hand["rows"], rows, expand_step(simulated, tuple(range(len(torus.places))), name=name)


@cache
def count_held(name):
    _, rows, graph = expand(name)
    return check_trace(graph, rows, range(graph.num_ranks))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_file_holds_what_the_reader_counts(name):
    by_hand, rows, _ = expand(name)
    assert [hand["payload_bytes"] for hand in by_hand] == [row.payload_bytes for row in rows]
    assert [hand["executions"] for hand in by_hand] == [row.executions for row in rows]
    assert count_held(name) <= len(rows)


@pytest.mark.parametrize("name", PROGRAMS)
def test_its_energy_is_that_of_its_events_and_of_waiting_chips(name):
    _, module, rows, torus, slices = load(name)
    v5e = generation("v5e")
    timeline = model_module(module, rows, torus, hardware=Hardware.of(v5e), slices=slices, name=name)
    assert check_timeline(timeline, (), v5e) > 0


def test_most_rows_of_the_corpus_are_held_to_it():
    assert sum(map(count_held, PROGRAMS)) >= 150


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_wait_for_earlier_ones_and_transfers_count_up(name):
    _, _, graph = expand(name)
    assert [each.key for each in graph.transfers] == sorted({each.key for each in graph.transfers})
    for table in graph.tables:
        assert table.ids.tolist() == list(range(1, table.size + 1))
        for node in range(table.size):
            deps = table.deps_of(node).tolist()
            assert deps == sorted(set(deps))
            assert all(dep < node for dep in deps)
        assert (table.duration_ps[table.ops == COMPUTE] > 0).all()


@pytest.mark.parametrize(
    ("mesh", "ranks"),
    [
        ("tp4pp2", [0, 2, 4, 6, 1, 3, 5, 7]),  # stages on the side of 2
        ("tp8", [0, 2, 4, 6, 7, 5, 3, 1]),  # up one column and down the other
        ("dp2tp4@2xv5e:2x2", [0, 2, 3, 1, 4, 6, 7, 5]),  # slices behind all sides
        ("tp4@v4:1x2x1", [0, 2, 3, 1]),  # two devices a chip, behind the sides
    ],
)
def test_ranks_are_places_on_the_machine(mesh, ranks):
    assert list(number_ranks(read_mesh(mesh))) == ranks
