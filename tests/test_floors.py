"""The house plan as a test: who may import whom, and where things that must be in one place are."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.places import ROOT

FRAMEWORKS = {"jax", "flax", "torch", "torch_xla", "orbax", "transformers"}
DRAWING = {"matplotlib", "jinja2", "rich"}
NEVER = {
    "meshes": {"pandas", "pyarrow", "jaxlib", "jax_impl", "torchxla_impl", "compare"} | FRAMEWORKS | DRAWING,
    "jax_impl": {"torch", "torch_xla", "torchxla_impl", "compare"},
    "torchxla_impl": {"jax", "flax", "jax_impl", "compare"},
    "compare": {"jax_impl", "torchxla_impl"} | FRAMEWORKS,
}


def imports(file: Path) -> Iterator[str]:
    """The modules that a file imports, by their full names, inside functions too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", NEVER)
def test_a_room_imports_only_lower_floors(room):
    assert files(room)
    for file in files(room):
        outside = {name.partition(".")[0] for name in imports(file)} & NEVER[room]
        assert not outside, f"{file.relative_to(ROOT)} may not import {sorted(outside)}"


def test_the_mesh_room_needs_numpy_and_nothing_else():
    allowed = set(sys.stdlib_module_names) | {"numpy", "meshes"}
    for file in files("meshes"):
        outside = {name.partition(".")[0] for name in imports(file)} - allowed
        assert not outside, f"{file.relative_to(ROOT)} imports {sorted(outside)}"


def test_the_torch_twin_has_of_jaxlib_what_makes_and_edits_stablehlo():
    users = {file.name for file in files("torchxla_impl") if any(n.startswith("jaxlib") for n in imports(file))}
    assert users == {"locations.py", "stablehlo.py"}


def test_only_the_compile_imports_the_compiler():
    users = {file.name for file in files("compare") if any(n.startswith(("jaxlib", "libtpu")) for n in imports(file))}
    assert users
    assert all(name.startswith("aot") for name in users)


def test_only_the_views_draw():
    for file in files("compare"):
        drawn = {name.partition(".")[0] for name in imports(file)} & (DRAWING | {"pyarrow"})
        room = file.relative_to(ROOT / "compare").parts[0]
        assert not drawn or room == "views" or (drawn == {"rich"} and room in ("work", "hlo.py", "run.py")), file


def test_tables_are_made_of_timelines_and_for_views():
    users = {file.relative_to(ROOT / "compare").parts[0] for file in files("compare") if "pandas" in set(imports(file))}
    assert users == {"timing", "views"}


def test_a_timeline_knows_no_case_and_reads_no_environment():
    for file in files("compare/timing"):
        known = set(imports(file)) & {"meshes.case", "compare.contract.reference_algorithms", "os", "subprocess"}
        assert not known, f"{file.relative_to(ROOT)} imports {sorted(known)}"


@pytest.mark.parametrize("name", ["inherent", "inherent_layers", "inherent_ends", "letters"])
def test_the_contract_shares_nothing_with_what_makes_the_shardings(name):
    assert set(imports(ROOT / f"compare/judge/{name}.py")) <= {
        "collections.abc", "dataclasses", "fractions", "itertools", "meshes.assignment", "meshes.case",
        *(f"compare.judge.{part}" for part in ("contract", "inherent_ends", "inherent_layers", "letters")),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["contract", "shares", "serving", "measures", "causes", "verdict"])
def test_a_verdict_takes_rows_and_knows_no_case(name):
    assert not any(module.startswith("meshes") or module.endswith("inherent")
                   for module in imports(ROOT / f"compare/judge/{name}.py"))  # fmt: skip


def test_doors_are_doors_only():
    doors = [file for file in (ROOT / "compare").glob("*.py") if file.name != "__init__.py"]
    assert {file.stem for file in doors} >= {"run", "plan", "hlo", "report"}
    for file in doors:
        assert len(file.read_text(encoding="utf-8").splitlines()) < 80, file
        assert not (ROOT / "compare" / file.stem).is_dir(), f"the room {file.stem} bears a door's name"


@pytest.mark.parametrize("arm", ["jax_impl", "torchxla_impl"])
def test_sharding_is_touched_by_the_layouts_of_an_arm_alone(arm):
    words = re.compile(r"\b(PartitionSpec|NamedSharding|with_sharding_constraint|shard_map|mark_sharding|"
                       r"get_op_sharding|_xla_annotate_custom_sharding)\b")  # fmt: skip
    # The gallery's patterns are what somebody would write who has no layout: they show the API itself.
    own = [file for file in files(arm) if file.parent.name != "patterns"]
    users = {file.name for file in own if words.search(file.read_text(encoding="utf-8"))}
    # The layout of style `explicit` is one, too.
    assert users == {"layout.py", "explicit.py"}


def test_the_twins_have_the_same_files_and_classes():
    def classes(arm: str) -> dict[str, list[str]]:
        return {
            file.name: [n.name for n in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
            for file in files(arm)
        }

    jax, torch = classes("jax_impl"), classes("torchxla_impl")
    for name in (
        "layout.py", "layers.py", "model.py", "pipeline.py", "cache.py", "step.py", "loading.py", "start.py",
        "worker.py", "lower.py", "profile.py", "generate.py",
    ):  # fmt: skip
        assert name in jax, name
        assert name in torch, name
        assert jax[name] == torch[name], name
