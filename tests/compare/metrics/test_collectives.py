"""Counts and shapes of messages, against the formulas of Xu et al. (arXiv:2507.14392)."""

import pytest

from compare.timeline.tracks.tracks import DeviceTracks
from tests.compare.timeline.build import comm, messages, row, steps, timeline


def count(events, rows, devices=(0,)):
    return messages(DeviceTracks.of(timeline(events, steps(0, 10_000, devices=devices))), rows)


@pytest.mark.parametrize(("phase", "tokens"), [("prefill", 128), ("decode", 1)])
def test_tensor_parallelism_sends_two_messages_a_layer_and_one_for_the_embedding(phase, tokens):
    """Their Llama-3.1-8B: 32 layers, 2·L + 1 all-reduces of [tokens, 4096] bf16 in each phase."""
    size = tokens * 4096 * 2
    shapes = [f"bf16[{tokens},4096]"]
    names = ["attention", "mlp", "embed"]
    rows = [row(name, "all-reduce", "tp", size, [range(4)], shapes=tuple(shapes)) for name in names]
    events = [comm(number * 10, number * 10 + 5, name=names[number % 2], payload=size) for number in range(64)]
    events.append(comm(700, 710, name="embed", payload=size))
    (counted,) = count(events, rows)
    assert counted == {
        "kind": "all-reduce",
        "axes": "tp",
        "scope": "layer.mlp.down",
        "dtype": "bf16",
        "shapes": shapes,
        "payload_bytes": size,
        "count": 65,
    }, phase


def test_other_shapes_kinds_axes_and_scopes_are_other_messages_the_largest_first():
    rows = [
        row("a", "all-reduce", "tp", 8, [range(4)], shapes=("f32[2]",)),
        row("b", "all-reduce", "tp", 8, [range(4)], shapes=("f32[2,1]",)),
    ]
    events = [
        comm(0, 1, name="a", payload=8),
        comm(2, 3, name="b", payload=8),
        comm(4, 5, name="c", payload=80, scope="embed"),
        comm(6, 7, name="a", payload=8),
    ]
    counted = count(events, rows)
    assert [(item["payload_bytes"], item["shapes"], item["count"]) for item in counted] == [
        (80, None, 1),
        (8, ["f32[2]"], 2),
        (8, ["f32[2,1]"], 1),
    ]


def test_counts_are_of_one_device_and_step():
    events = [comm(0, 1, device=device, payload=8) for device in range(4)]
    assert count(events, [], devices=range(4))[0]["count"] == 1


def test_what_lies_outside_all_steps_is_not_counted():
    assert count([comm(20_000, 20_001)], []) == []


def test_an_unknown_payload_is_shown_as_unknown():
    (counted,) = count([comm(0, 1, payload=float("nan"), name="", axes="?")], [])
    assert (counted["payload_bytes"], counted["dtype"], counted["axes"], counted["count"]) == (None, None, "?", 1)
