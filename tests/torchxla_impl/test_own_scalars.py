"""Scalar tensors that PyTorch/XLA compiles as constants are told, numbers in the source are not."""

import ast
from pathlib import Path

import pytest

from compare import collectives
from tests.torchxla_impl.workers import script

BUT = "; with an argument there the program may communicate more (a tensor of shape [1] is one)"
SOURCE = Path(__file__).with_name("own_scalars.py").read_text(encoding="utf-8").splitlines()


def line(name: str) -> str:
    """Where the script asks for it."""
    (number,) = (at for at, text in enumerate(SOURCE, 1) if text.startswith(f'results("{name}"'))
    return f"own_scalars.py:{number}"


def count_writes() -> int:
    return next(at for at, text in enumerate(SOURCE, 1) if "index_copy" in text)


def results(how: str, out: Path) -> dict[str, list[str]]:
    lines = (text.partition(": ") for text in script("own_scalars.py", out, how, out).splitlines())
    return {name: ast.literal_eval(notes) for name, _, notes in lines}


@pytest.fixture(scope="module")
def notes_and_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, list[str]], Path]:
    """The notes of each program, and the folder that holds them."""
    out = tmp_path_factory.mktemp("own")
    return results("own", out), out


@pytest.mark.slow
def test_they_are_told_with_their_values_and_lines(
    notes_and_folder: tuple[dict[str, list[str]], Path], tmp_path: Path
) -> None:
    notes, _ = notes_and_folder
    heading = "1 scalar tensor was compiled as a constant: "
    assert notes == {
        "five": [],  # an argument, as where PyTorch/XLA runs
        "one": [f"{heading}1 ({line('one')}){BUT}"],
        "on the device": [f"{heading}0 ({line('on the device')}){BUT}"],
        "two": [
            f"2 scalar tensors were compiled as constants: 1 ({line('two')}), -1.0 ({line('two')}){BUT}",
        ],
        "of one element": [],
        "literals": [],
        "unused": [],
        "made there": [],
        "a buffer": [f"{heading}1.0 ({line('a buffer')}){BUT}"],
    }
    # The twins keep every number a constant: there the five is told as well.
    twins = results("twins", tmp_path)
    assert twins["five"] == [f"{heading}5 ({line('five')}){BUT}"]
    assert twins | {"five": []} == notes


@pytest.mark.slow
def test_an_argument_there_gathers_the_cache_and_the_constant_does_not(
    notes_and_folder: tuple[dict[str, list[str]], Path],
) -> None:
    """bf16 [8, 1024, 64], split over data=2 and tensor=4: a device gathers 3 of 4 parts of its half of the cache."""
    _, out = notes_and_folder
    axes = {"data": 2, "tensor": 4}
    argument = collectives(out / "five.hlo", axes=axes, topology="v5e:2x4")
    assert argument.step_wire_bytes >= 8 // 2 * 1024 * 64 * 2 * 3 // 4
    # Who asked is the script's own line, and not what watches the scalars.
    (moved,) = [row for row in argument if row.kind == "all-gather"]
    assert moved.source_line is not None
    assert moved.source_line.endswith(f"own_scalars.py:{count_writes()}")
    assert moved.op_name.endswith("aten__index_copy")
    constant = collectives(out / "one.hlo", axes=axes, topology="v5e:2x4")
    assert constant.counts() == {}
