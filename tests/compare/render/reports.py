"""A report made by hand: the check tables of docs/definitions.md, section 5, and a TorchXLA that gathers q, k and v."""

import copy
from typing import Any

from compare.contract.reference_algorithms import required_rows
from compare.report.build import lay_out_mesh
from compare.report.differences import find_differences
from compare.report.model.codec import decode, encode
from compare.report.model.program import CollectiveRow
from compare.report.plan import served_row
from meshes.case import Case
from tests.compare.report.records import collective, totals

Row = dict[str, Any]

TP = [[0, 1, 2, 3], [4, 5, 6, 7]]
FORWARD = [[0, 4], [1, 5], [2, 6], [3, 7]]
RING = [*FORWARD, [4, 0], [5, 1], [6, 2], [7, 3]]

_NUMBERS = ("inherent", "inflated", "induced", "common", "framework_induced", "missing", "wire_bytes")


def row(name: str, kind: str, axes: str, scope: str, **more: Any) -> Row:
    """One row of `collectives`; what is not said is small and ordinary."""
    hlo = (
        f"  %{name} = bf16[2048,4096]{{1,0:T(8,128)(2,1)}} {kind}(%fusion.1), channel_id=3, "
        f'replica_groups=[2,4]<=[8], metadata={{op_name="jit(prefill)/{scope}/dot_general"}}'
    )
    ordinary = {"groups": TP, "source_line": "jax_impl/decoder/layers.py:61", "hlo": hlo}
    return encode(collective(name=name, kind=kind, axes=axes, scope=scope, **ordinary)) | more


def _jax_rows() -> list[Row]:
    """The pinned JAX prefill of tp4pp2, judged by hand."""
    layer = {
        "executions": 80,
        "payload_bytes": 16_777_216,
        "wire_bytes": 25_165_824,
        "loops": [5, 16],
        "step_wire_bytes": 2_013_265_920,
        "inherent_bytes": 1_610_612_736,
        "inflated_bytes": 402_653_184,
        "causes": {"bubble": 402_653_184},
    }
    return [
        row("all-reduce.1", "all-reduce", "tp", "embed", executions=5, payload_bytes=16_777_216, loops=[5],
            wire_bytes=25_165_824, step_wire_bytes=125_829_120, inherent_bytes=50_331_648, inflated_bytes=75_497_472,
            causes={"bubble": 25_165_824, "replicated": 50_331_648}, serves=[2]),
        row("all-reduce.2", "all-reduce", "tp", "layer.attention.out", serves=[0], **layer),
        row("all-reduce.3", "all-reduce", "tp", "layer.mlp.down", serves=[1], **layer),
        row("collective-permute.1", "collective-permute", "pp", "pipeline.shift", executions=5, loops=[5],
            payload_bytes=16_777_216, wire_bytes=16_777_216, step_wire_bytes=83_886_080, groups=RING,
            inherent_bytes=33_554_432, inflated_bytes=50_331_648,
            causes={"wrap": 41_943_040, "bubble": 8_388_608}, serves=[3]),
        row("all-gather.1", "all-gather", "tp", "sample", dtype="s32", payload_bytes=128, wire_bytes=96,
            step_wire_bytes=96, inherent_bytes=48, inflated_bytes=48, causes={"replicated": 48}, serves=[4]),
        row("all-gather.2", "all-gather", "tp", "sample", payload_bytes=64, wire_bytes=48, step_wire_bytes=48,
            inherent_bytes=24, inflated_bytes=24, causes={"replicated": 24}, serves=[4]),
        row("collective-permute.2", "collective-permute", "pp", "pipeline.collect", dtype="s32", payload_bytes=32,
            wire_bytes=16, step_wire_bytes=16, inherent_bytes=16, groups=[[4, 0], [5, 1], [6, 2], [7, 3]],
            serves=[5]),
        row("all-reduce.4", "all-reduce", "pp", "pipeline.collect", dtype="s32", payload_bytes=32, wire_bytes=32,
            step_wire_bytes=32, inflated_bytes=32, causes={"replicated": 32}, serves=[5],
            groups=[[0, 4], [1, 5], [2, 6], [3, 7]]),
    ]  # fmt: skip


def _torchxla_rows() -> list[Row]:
    """The same, and q, k and v made whole in every layer."""
    gathers = [
        row(
            f"all-gather.{number}",
            "all-gather",
            "tp",
            "layer.attention.core",
            executions=80,
            loops=[5, 16],
            payload_bytes=payload,
            wire_bytes=payload * 3 // 4,
            step_wire_bytes=payload * 60,
            induced_bytes=payload * 60,
            causes={"activation-gather": payload * 60},
            source_line="torchxla_impl/decoder/layers.py:88",
        )
        for number, payload in ((11, 16_777_216), (12, 4_194_304), (13, 4_194_304))
    ]
    rows = _jax_rows()
    return [rows[0], *gathers, *(row for row in rows[1:] if row["name"] != "all-reduce.4")]


def _totals(rows: list[Row], required: int) -> dict[str, Any]:
    sums = {part: sum(row[f"{part}_bytes"] for row in rows) for part in ("inherent", "inflated", "induced")}
    wire = sum(row["step_wire_bytes"] for row in rows)
    unserved = max(0, required - sums["inherent"])
    return encode(totals(wire_bytes=wire, ici_wire_bytes=wire, dcn_wire_bytes=0, **sums, unserved=unserved))


def _cell(name: str, rows: list[Row], *, required: list[Row], partitioner: str) -> dict[str, Any]:
    total = sum(item["step_wire_bytes"] for item in required)
    return {
        "cell": name, "status": "ok", "error": None, "partitioner": partitioner,
        "versions": {"jaxlib": "0.10.2", "libtpu": "0.0.42.1"},
        "compile_options": {"num_partitions": 8, "allow_spmd_sharding_propagation_to_output": [True]},
        "seconds": {"import": 2.1, "trace": 1.5, "compile": 6.2},
        "memory": {"argument_bytes": 2_300_000_000, "output_bytes": 70_000_000, "temp_bytes": 410_000_000,
                   "alias_bytes": 70_000_000, "generated_code_bytes": 1_000_000, "peak_bytes": 2_800_000_000},
        "cost": {"flops": 1.4e13}, "loop": "scan", "attention": "einsum" if "einsum" in name else "idiomatic",
        "style": "pinned", "program_digest": "4f1c", "collectives": rows, "origins": [], "origins_why_not": "",
        "served": required, "totals": _totals(rows, total),
    }  # fmt: skip


def _line(arm: str, title: str, cell: dict[str, Any], *, required: int) -> dict[str, Any]:
    totals = cell["totals"] or {}
    return {
        "arm": arm,
        "title": title,
        "cell": cell["cell"],
        "partitioner": cell["partitioner"],
        "status": cell["status"],
        "error": cell["error"],
        **{name: totals.get(name) for name in _NUMBERS},
        "ratio": totals["wire_bytes"] / required if totals else None,
        "qualifier": "",
    }


def _differences(jax: list[Row], torchxla: list[Row]) -> list[dict[str, Any]]:
    arms = {"jax": jax, "torchxla": torchxla}
    rows = {arm: [decode(CollectiveRow, row) for row in table] for arm, table in arms.items()}
    entries = [encode(entry) for entry in find_differences(rows, controls={})]
    for entry in entries:
        entry["controls"] = {"tpu+einsum": 0} if entry["cause"] == "activation-gather" else {}
    return entries


def _phase(case: Case) -> dict[str, Any]:
    required = [encode(served_row(need, served_bytes=need.step_wire_bytes)) for need in required_rows(case)]
    total = sum(need["step_wire_bytes"] for need in required)
    jax, torchxla = _jax_rows(), _torchxla_rows()
    arms = {
        "jax": _cell("tpu", jax, required=required, partitioner="shardy"),
        "torchxla": _cell("tpu", torchxla, required=required, partitioner="gspmd"),
    }
    controls = {
        "jax": _cell("tpu+gspmd", copy.deepcopy(jax), required=required, partitioner="gspmd"),
        "torchxla": _cell("tpu+einsum", [*_jax_rows()[:-1]], required=required, partitioner="gspmd"),
    }
    for arm, cell in arms.items():
        cell |= {"controls": {controls[arm]["cell"]: controls[arm]}, "profiles": {}}
        extra = cell["totals"]["inflated"] + cell["totals"]["induced"]
        cell["totals"] |= {"common": 931_135_560, "framework_induced": extra - 931_135_560, "partitioner_induced": 0}
    cells = [(arm, cell) for arm in arms for cell in (arms[arm], controls[arm])]
    titles = {"jax": "JAX", "torchxla": "TorchXLA"}
    return {
        "inherent": required,
        "inherent_total": total,
        "notes": [],
        "compared_cells": {"jax": "tpu+gspmd", "torchxla": "tpu"},
        "arms": arms,
        "differences": _differences(jax, torchxla),
        "pairs": [],
        "attribution": [],
        "headline": [_line(arm, titles[arm], cell, required=total) for arm, cell in cells],
        "time_differences": {},
    }


def make_mesh(name: str) -> dict[str, Any]:
    """The `mesh` of a report."""
    return encode(lay_out_mesh(Case.read(name, batch=256)))


def make_report(mesh: str = "tp4pp2", phases: tuple[str, ...] = ("prefill",)) -> dict[str, Any]:
    """A whole report; its bytes are those of a tp4pp2 prefill whatever the mesh."""
    case = Case.read(mesh, phases=phases)
    return {
        "schema": 1,
        "sentence": "In prefill, TorchXLA moves 1.7 × what the plan needs (JAX: 1.3 ×); 100 % of TorchXLA's "
        "overhead comes from its attention call, which all-gathers tensors over tp in every layer; with attention as "
        "einsum, TorchXLA moves 1.3 ×.",
        "case": case.to_dict(),
        "mesh": make_mesh(mesh),
        "arms": {
            arm: {"title": title, "status": "ok", "error": None, "versions": {arm: "0.10.2"}}
            for arm, title in (("jax", "JAX"), ("torchxla", "TorchXLA"))
        },
        "controls": [
            _control("jax", "tpu+gspmd", "partitioner", 0, phases),
            _control("torchxla", "tpu+einsum", "attention", 2_264_924_160, phases),
        ],
        "phases": {phase: _phase(case.at(phases=(phase,))) for phase in phases},
    }


def _control(arm: str, cell: str, changes: str, removed: int, phases: tuple[str, ...]) -> dict[str, Any]:
    showed = {
        "status": "ok",
        "error": None,
        "default_bytes": 931_135_592 + removed,
        "control_bytes": 931_135_592,
        "removed_bytes": removed,
        "added_bytes": 0,
    }
    return {"arm": arm, "cell": cell, "changes": [changes], "phases": dict.fromkeys(phases, showed)}


def make_report_without_torchxla() -> dict[str, Any]:
    """TorchXLA is not installed: its cells have a line that says so, and nothing is compared."""
    report = make_report()
    error = "torch, torch_xla not installed; get it with pip install 'wirediff[torchxla]'"
    report["arms"]["torchxla"] |= {"status": "not installed", "error": error}
    phase = report["phases"]["prefill"]
    for cell in (phase["arms"]["torchxla"], *phase["arms"]["torchxla"]["controls"].values()):
        cell |= {
            "status": "not installed",
            "error": error,
            "totals": None,
            "collectives": [],
            "served": [],
            "partitioner": None,
            "versions": None,
            "memory": None,
            "seconds": None,
        }
    for line in phase["headline"]:
        if line["arm"] == "torchxla":
            line |= {"status": "not installed", "error": error, "ratio": None}
            line |= dict.fromkeys(_NUMBERS, None) | {"partitioner": None}
    phase["compared_cells"] = {"jax": "tpu"}
    phase["differences"] = [
        entry | {"others": {}, "excess_bytes": entry["bytes"]}
        for entry in phase["differences"]
        if entry["arm"] == "jax"
    ]
    return report
