"""The first section on time: steps, reasons and longest operations, on a report made by hand and on the example."""

import io
import json
from typing import Any

from compare.render.blocks import Details, Heading, Sentence, Table
from compare.render.report.show import print_report
from compare.render.terminal import console
from compare.render.time.speed.operations import operation_sentence, operation_words, operations_table
from compare.render.time.speed.section import speed_section
from compare.report.model.codec import decode
from compare.report.model.report import Report
from compare.report.model.timing import Operation
from tests.compare.render.time.programs import make_program, operation
from tests.places import EXAMPLE

SHAPE = "bf16[32,1,8,1152,128]"


def read(**fields: Any) -> Operation:
    return decode(Operation, operation(5.3, "copy", SHAPE, "layer.attention.core") | fields)


def example() -> Report:
    return decode(Report, json.loads((EXAMPLE / "report.json").read_text()))


def test_an_operation_in_a_sentence() -> None:
    copies = read(executions=64, tensors=["cache.k"], memory_bytes=7.25e9)
    assert operation_sentence(copies) == f"64 × copy of {SHAPE}, cache.k, 5.30 ms, 7.25 GB"


def test_a_fusion_has_the_frameworks_name_a_wait_says_so_and_a_mean_of_devices_is_no_whole_number() -> None:
    assert operation_words(read(opcode="fusion", path="dot_general")) == f"4 × fusion (dot_general) of {SHAPE}"
    assert operation_words(read(path="while")) == f"4 × copy of {SHAPE}"
    assert operation_words(read(role="copy", opcode="slice")) == f"4 × wait for slice of {SHAPE}"
    assert operation_words(read(executions=2.5, shape="")) == "2.5 × copy"


def test_a_row_has_its_amounts_and_below_it_its_place() -> None:
    rows = (
        operation(5.3, "copy", SHAPE, "layer.attention.core", memory_bytes=7.25e9, bound="memory",
                  tensors=["cache.k", "cache.v"], source_line="cache.py:55"),
        operation(1, "all-reduce", "f32[8]", "layer.mlp.down", role="communication", matrix_flops=None,
                  memory_bytes=None, payload_bytes=32_000, bound="collective"),
    )  # fmt: skip
    table = operations_table("decode", make_program("TorchXLA", 58, {}, operations=rows))
    assert (table.columns[0].heading, table.columns[0].code) == ("TorchXLA", "tpu")
    copy, reduce = table.rows
    assert [cell.words for cell in copy.cells] == ["5.30 ms", "7.25 GB", "0 FLOP", "memory"]
    assert copy.note == "layer.attention.core, cache.k and cache.v, cache.py:55"
    assert [cell.words for cell in reduce.cells] == ["1.00 ms", "32.0 kB", "–", "collective"]
    assert reduce.note == "layer.mlp.down"


def test_the_example_s_section_has_steps_reasons_then_operations_of_each_default_program() -> None:
    (details,) = speed_section(example()).blocks
    assert isinstance(details, Details)
    kinds = [type(block) for block in details.blocks]
    assert kinds[:3] == [Sentence, Heading, Table]
    tables = [block for block in details.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [5, 10, 10] * 2
    assert [table.columns[0].heading for table in tables[1:3]] == ["JAX", "TorchXLA"]


def test_the_reasons_of_the_example() -> None:
    """Prefill: the control without the gathers keeps 5.7 of 164 ms.  Decode: it keeps 0.12 of 1.49 ms."""
    (details,) = speed_section(example()).blocks
    assert isinstance(details, Details)
    words = [block.words for block in details.blocks if isinstance(block, Sentence)]
    prefill, decode_words = (text for text in words if "longer than JAX: " in text)
    assert (
        "each of the 4 devices computes what they divide in JAX. 4.00 × the work would take 83.3 ms; the other 103 ms"
        in prefill
    )
    assert "are written out and read back. `tpu+einsum`" in prefill
    assert "each of the 4 devices computes what they divide in JAX. `tpu+einsum`" in decode_words
    assert "computes 123 µs longer than JAX" in decode_words


def test_a_terminal_prints_it_with_details_only() -> None:
    printed = {}
    for details in (False, True):
        out = io.StringIO()
        print_report(example(), details=details, out=console(out))
        printed[details] = out.getvalue()
    assert "Step time and longest operations" not in printed[False]
    assert printed[True].index("Step time and longest operations") < printed[True].index("Prefill: the plan needs")


def test_a_report_without_times_has_no_such_section() -> None:
    read_report = json.loads((EXAMPLE / "report.json").read_text())
    for phase in read_report["phases"].values():
        for arm in phase["arms"].values():
            for program in (arm, *arm["controls"].values()):
                program.pop("timing")
        phase.pop("time_differences", None)
    assert speed_section(decode(Report, read_report)).blocks == ()


def test_a_report_of_an_earlier_version_has_steps_and_no_operations() -> None:
    read_report = json.loads((EXAMPLE / "report.json").read_text())
    for phase in read_report["phases"].values():
        for arm in phase["arms"].values():
            for program in (arm, *arm["controls"].values()):
                program["totals"].pop("compute_over_floor")
                program["timing"].pop("operations")
                for name in ("floor_ns", "floor_bytes", "floor_flops"):
                    program["timing"]["work"].pop(name)
                for part in program["timing"]["work"]["by_scope"].values():
                    for name in ("arithmetic_ns", "memory_ns", "floor_ns"):
                        part.pop(name, None)
    (details,) = speed_section(decode(Report, read_report)).blocks
    assert isinstance(details, Details)
    tables = [block for block in details.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [5, 5]
    assert {cell.words for table in tables for row in table.rows for cell in row.cells[-2:]} == {"–"}
