"""The house plan as a test: who may import whom, and where things that must be in one place are."""

import ast
import functools
import graphlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compare.cli import front_door
from compare.render.report import kept_pictures
from compare.run import tasks
from tests.conftest import LONGEST
from tests.places import ROOT

FRAMEWORKS = {"jax", "flax", "torch", "torch_xla", "torchax", "orbax", "transformers", "tunix"}
DRAWING = {"matplotlib", "jinja2", "rich"}
NEVER = {
    "meshes": {"pandas", "pyarrow", "jaxlib", "jax_impl", "torchxla_impl", "witnesses", "compare"}
    | FRAMEWORKS
    | DRAWING,
    "jax_impl": {"torch", "torch_xla", "torchax", "torchxla_impl", "witnesses", "compare"},
    "torchxla_impl": {"jax", "flax", "torchax", "jax_impl", "witnesses", "compare"},
    # The only room in which frameworks meet.
    "witnesses": {"compare"},
    "compare": {"jax_impl", "torchxla_impl", "witnesses"} | FRAMEWORKS,
}
REMEDIES = ROOT / "compare" / "compile" / "rewrite.py"
"""Writes into a user's program of JAX what a user of JAX would write."""


PARTS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Attributes of a statement that have statements inside."""


@functools.cache
def statements(file: Path) -> list[ast.stmt]:
    """Of a file; parsed once for all tests."""
    return ast.parse(file.read_text(encoding="utf-8")).body


@functools.cache
def import_statements(file: Path) -> list[ast.Import | ast.ImportFrom]:
    """Of a file, inside functions too."""
    found, waiting = [], [*statements(file)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for name in PARTS:
            waiting += getattr(node, name, [])
    return found


@functools.cache
def imports(file: Path) -> list[str]:
    """The modules that a file imports, by their full names."""
    found = []
    for node in import_statements(file):
        found += [name.name for name in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    return found


@functools.cache
def files(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


@pytest.mark.parametrize("room", NEVER)
def test_a_room_imports_only_lower_floors(room):
    assert files(room)
    for file in files(room):
        outside = {name.partition(".")[0] for name in imports(file)} & NEVER[room]
        outside -= {"jax"} if file == REMEDIES else set()
        assert not outside, f"{file.relative_to(ROOT)} may not import {sorted(outside)}"


def test_the_mesh_room_needs_numpy_and_nothing_else():
    allowed = set(sys.stdlib_module_names) | {"numpy", "meshes"}
    for file in files("meshes"):
        outside = {name.partition(".")[0] for name in imports(file)} - allowed
        assert not outside, f"{file.relative_to(ROOT)} imports {sorted(outside)}"


def test_the_torch_twin_has_of_jaxlib_what_makes_and_edits_stablehlo():
    users = {file.name for file in files("torchxla_impl") if any(n.startswith("jaxlib") for n in imports(file))}
    assert users == {"locations.py", "stablehlo.py"}


TIMES = ("timeline", "schedule", "network", "chakra", "profile", "metrics", "energy")
SPINE = (
    "hlo",
    "passes",
    "compile",
    "contract",
    "verdict",
    "report",
    *TIMES,
    "run",
    "user_program",
    "render",
)
"""The rooms of `compare`, lowest first: each imports only those before it."""
SLICES = (
    "sweep",
    "gallery",
    "remedy",
    "diff",
    "history",
    "query",
    "export",
    "ccl_bench_metrics",
    "simulate",
    "calibrate",
    "energy.speeds",
)
"""Each hangs on the spine, and knows no other slice."""


def room_of(module: str) -> str:
    """`compare.hlo.text.module` -> `hlo`; a command line is no room.

    Energy is one folder on two floors: coefficients and joules on the spine, questions about whole runs a slice.
    """
    names = module.split(".")[1:] if module.startswith("compare.") else [""]
    return ".".join(names[:2]) if ".".join(names[:2]) in SLICES else names[0]


def is_command(file: Path) -> bool:
    """On top of all rooms: `compare/cli/`, shims (`compare/run/__main__.py`, `compare/plan.py`), the Python API."""
    parts = file.relative_to(ROOT / "compare").parts if file.is_relative_to(ROOT / "compare") else ()
    return file.name == "__main__.py" or parts[:1] == ("cli",) or len(parts) == 1


def is_slice_or_command(file: Path) -> bool:
    return is_command(file) or room_of(module_of(file)) in SLICES


def module_of(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def graph() -> dict[str, set[str]]:
    """Which module of ours imports which, command lines left out: nothing imports those."""
    every = {module_of(file): file for top in NEVER for file in files(top)}
    return {
        name: {module for module in imported_modules(file) if module in every and module != name}
        for name, file in every.items()
        if not is_command(file) or file.name == "__init__.py"
    }


def imported_modules(file: Path) -> Iterator[str]:
    """Also those that are imported as names of their package: `from compare.run import cache`."""
    for node in import_statements(file):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        else:
            yield from (
                f"{node.module}.{name.name}" if is_module(node.module, name.name) else str(node.module)
                for name in node.names
            )


@functools.cache
def is_module(package: str | None, name: str) -> bool:
    path = ROOT.joinpath(*(package or "").split("."), name)
    return path.with_suffix(".py").is_file() or path.is_dir()


def cycles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Those that reach each other, as sets of more than one."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return [set(error.args[1])]
    return []


def test_the_rooms_of_compare_are_the_spine_and_the_slices():
    rooms = {path.name for path in (ROOT / "compare").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms == {"cli", *SPINE, *(name for name in SLICES if "." not in name)}


@pytest.mark.parametrize("room", [*SPINE, *SLICES])
def test_a_room_imports_the_rooms_below_it_and_no_slice_another(room):
    allowed = {*SPINE[: SPINE.index(room) + 1]} if room in SPINE else {*SPINE, room}
    for name, imported in graph().items():
        if room_of(name) == room:
            outside = {module for module in imported if room_of(module) not in {*allowed, ""}}
            assert not outside, f"{name} may not import {sorted(outside)}"


SHIMS = ("compare.cli.", "compare.metric.", "compare.plan.", "compare.trace.", "compare.teach.")


def test_nobody_imports_a_command():
    """But its shim and the front door: commands counted, too, rooms import downwards and there is no cycle."""
    for top in NEVER:
        for file in files(top):
            commands = {name for name in imported_modules(file) if name.endswith("__main__") or name.startswith(SHIMS)}
            assert not commands or is_command(file), f"{file.relative_to(ROOT)} imports {sorted(commands)}"


def test_no_file_imports_itself_by_way_of_others():
    assert not cycles(graph())


def test_no_package_imports_itself_by_way_of_others():
    packages: dict[str, set[str]] = {}
    for name, imported in graph().items():
        package = package_of(name)
        packages.setdefault(package, set()).update(module for module in map(package_of, imported) if module != package)
    assert not cycles(packages)


def package_of(module: str) -> str:
    return module if ROOT.joinpath(*module.split(".")).is_dir() else module.rpartition(".")[0]


def test_only_the_compile_imports_the_compiler():
    users = {
        file.relative_to(ROOT).parts[1]
        for file in files("compare")
        if any(name.startswith(("jaxlib", "libtpu")) for name in imports(file))
    }
    assert users == {"compile"}


def test_only_rendering_draws():
    for file in files("compare"):
        drawn = {name.partition(".")[0] for name in imports(file)} & (DRAWING | {"pyarrow"})
        parts = file.relative_to(ROOT / "compare").parts
        draws = parts[0] == "render" or room_of(module_of(file)) in SLICES
        on_top = ("cli", "run", "user_program", "whole_run.py")
        assert not drawn or draws or (drawn == {"rich"} and parts[0] in on_top), file


def test_tables_are_made_of_timelines_and_to_be_drawn():
    users = {file.relative_to(ROOT / "compare").parts[0] for file in files("compare") if "pandas" in set(imports(file))}
    assert users <= {*TIMES, "render", "user_program", "notebook.py", *SLICES}


def test_a_timeline_knows_no_case_and_reads_no_environment():
    for file in (file for room in TIMES for file in files(f"compare/{room}") if not is_slice_or_command(file)):
        known = {name for name in imports(file) if name.startswith("compare.contract")} | (
            set(imports(file)) & {"meshes.case", "os", "subprocess"}
        )
        assert not known, f"{file.relative_to(ROOT)} imports {sorted(known)}"


def test_the_contract_shares_nothing_with_what_makes_the_shardings():
    reference = [file for file in files("compare/contract") if file.name != "notes.py"]
    assert len(reference) >= 4
    for file in reference:
        foreign = {name for name in imports(file) if not name.startswith("compare.contract")}
        assert foreign <= {
            "collections.abc",
            "dataclasses",
            "fractions",
            "itertools",
            "math",
            "typing",
            "meshes.assignment",
            "meshes.case",
        }, file


def test_a_verdict_takes_rows_and_knows_no_case():
    for file in files("compare/verdict"):
        names = set(imports(file))
        assert not any(name.startswith("meshes") for name in names), file
        assert {name for name in names if name.startswith("compare.contract")} <= {"compare.contract.row"}, file


COMMANDS = {
    "run",
    "plan",
    "hlo",
    "report",
    "trace",
    "sweep",
    "diff",
    "history",
    "remedy",
    "teach",
    "query",
    "export",
    "metric",
    "simulate",
    "calibrate",
    "energy",
}
"""Each `python -m compare.<name>` that the documents name."""


def test_command_lines_parse_call_and_print():
    commands = {file.stem: file for file in (ROOT / "compare" / "cli").glob("*.py") if file.name != "__init__.py"}
    assert set(commands) == COMMANDS | {"front_door", "completion", "what_if", "cost", "replay"}
    for file in commands.values():
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 100, file


def test_rooms_take_typed_arguments_and_parse_no_command_line():
    parse = {"argparse", "meshes.process.command_line.Parser", "meshes.process.command_line.command_parser"}
    for file in files("compare"):
        names = {
            f"{node.module}.{name.name}"
            for node in import_statements(file)
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        assert is_command(file) or not parse & {*names, *imports(file)}, file


def test_every_documented_module_is_a_shim_of_its_command():
    shims = [file for file in files("compare") if file.name == "__main__.py"]
    whole = ("__init__.py", "notebook.py", "whole_run.py")
    shims += [file for file in (ROOT / "compare").glob("*.py") if file.name not in whole]
    names = {file.parent.name if file.name == "__main__.py" else file.stem for file in shims}
    assert names - {"compare"} == COMMANDS
    for file in shims:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith('"""')]
        assert len(lines) <= 4, file


@pytest.mark.parametrize("arm", ["jax_impl", "torchxla_impl"])
def test_sharding_is_touched_in_the_sharding_room_of_an_arm_alone(arm):
    words = re.compile(
        r"\b(PartitionSpec|NamedSharding|with_sharding_constraint|shard_map|mark_sharding|"
        r"get_op_sharding|_xla_annotate_custom_sharding)\b"
    )
    # The gallery's patterns are what somebody would write who has no layout: they show the API itself.
    # Microbenchmarks measure devices: they have no layout either.  The plain layer shows what the layout's words mean.
    without = ("patterns", "microbenchmarks", "plain_layer.py")
    checked = [file for file in files(arm) if not {file.name, file.parent.name} & {*without}]
    users = {file.parent.name for file in checked if words.search(file.read_text(encoding="utf-8"))}
    assert users == {"sharding"}


LOADED = """
import contextlib, io, json, runpy, sys
ends = []
for line in sys.argv[1:]:
    sys.argv = line.split()
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        except SystemExit as end:
            ends.append(end.code)
own = [module for name, module in sys.modules.items() if name.partition(".")[0] in ("compare", "meshes")]
num_own = sum(getattr(module, "__file__", None) is not None for module in own)
print(json.dumps([ends, num_own, list(sys.modules)]))
"""
HEAVY = {"pandas", "pyarrow", "matplotlib", "duckdb"}
"""Each takes longer to load than a program takes to read."""


SLOW = {"dataclasses", "importlib.metadata", "pathlib", "tempfile", "tomllib"}
"""Of Python's own: each takes a tenth of the time of `--help`, or more."""


def load(*lines: str) -> tuple[list[int], int, set[str]]:
    """How these command lines end, how many of our files they load together, and all modules that they load."""
    done = subprocess.run([sys.executable, "-c", LOADED, *lines], capture_output=True, text=True, cwd=ROOT, check=True)
    ends, num_own, loaded = json.loads(done.stdout)
    return ends, num_own, set(loaded)


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("compare --help", 10),
        ("compare metric --list", 17),
        ("compare.plan --mesh tp4pp2", 47),
        ("compare.hlo --help", 15),
        ("compare cost --collective all-reduce --bytes 64 --machine v5e:2x4", 59),
        ("compare query", 71),
    ],
)
def test_a_command_loads_few_of_our_files(words, most):
    ends, num_own, loaded = load(words)
    assert ends == [0]
    assert 5 < num_own <= most
    assert not loaded & HEAVY


@pytest.mark.parametrize("command", sorted({*COMMANDS, *front_door.COMMANDS}))
def test_help_and_a_wrong_option_are_told_before_anything_else_is_loaded(command):
    """By the front door, as its own module, or both."""
    ways = [f"compare {command}"] * (command in front_door.COMMANDS) + [f"compare.{command}"] * (command in COMMANDS)
    for words, status, slow in ((f"{ways[0]} --help", 0, SLOW), (f"{ways[-1]} --no-such-option", 2, set())):
        ends, num_own, loaded = load(words)
        assert ends == [status]
        assert 5 < num_own <= 26
        assert not loaded & ({*HEAVY, "numpy", "rich"} | slow)


@pytest.mark.parametrize(
    "words",
    [
        "compare what-if docs/example-run --sweep ici",
        "compare cost --collective all-reduce --bytes 64 --machine v5e:2x4 --group x",
        "compare energy docs/example-run --frequency 1:0:1",
        "compare sweep --meshes tp8 --microbatches 0",
        "compare remedy --mesh tp0",
        "compare run --mesh tp4pp2 --controls nothing",
    ],
)
def test_a_wrong_value_is_told_before_what_would_work_with_it_is_loaded(words):
    ends, _, loaded = load(words)
    assert ends == [2]
    assert not loaded & HEAVY


PROGRAM = """HloModule step, num_partitions=4

sum {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT add = f32[] add(x, y)
}

ENTRY main {
  p = f32[128]{0} parameter(0)
  ROOT r = f32[128] all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=sum
}
"""


@pytest.mark.parametrize(("command", "names", "most"), [("compare.hlo", "a", 90), ("compare.diff", "ab", 160)])
def test_compiled_text_is_read_without_runs_and_without_profiles(command, names, most, tmp_path):
    for name in names:
        (tmp_path / f"{name}.hlo").write_text(PROGRAM)
    ends, num_own, loaded = load(" ".join([command, *(f"{tmp_path / name}.hlo" for name in names)]))
    assert ends == [0]
    assert 5 < num_own <= most
    assert not loaded & {*HEAVY, "compare.run.folder.load_run", "compare.profile", "compare.schedule.schedule"}


def test_one_word_names_at_most_three_files_or_classes():
    """Errors and commands aside: who looks for a name finds it."""
    files = [path for path in (ROOT / "compare").rglob("*.py") if path.stem not in ("__init__", "__main__", "errors")]
    classes = [node.name for path in files for node in statements(path) if isinstance(node, ast.ClassDef)]
    often = Counter([path.name for path in files] + classes)
    assert {name: number for name, number in often.items() if number > 3} == {}


def test_the_files_of_tests_that_begin_first_are_there():
    assert [file for file in LONGEST if not (ROOT / "tests" / file).is_file()] == []


def test_the_root_holds_what_it_should():
    done = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        pytest.skip("this is no checkout")
    assert {name.partition("/")[0] for name in done.stdout.splitlines()} == {
        ".ci",
        ".gitignore",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "benchmarks",
        "compare",
        "docs",
        "jax_impl",
        "meshes",
        "pyproject.toml",
        "tests",
        "torchxla_impl",
        "witnesses",
    }


def test_no_test_imports_jax_where_tests_are_collected():
    """But for the arm's own, whose conftest.py says how many devices there are, which JAX reads as it is imported."""
    early = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = "" if "jax_impl" in path.parts else path.read_text(encoding="utf-8")
        # Perhaps in a text that a test runs; few files are parsed.
        lines = ast.parse(text).body if re.search(r"^(import|from) .*\bjax\b", text, re.MULTILINE) else []
        names = [alias.name for line in lines if isinstance(line, ast.Import) for alias in line.names]
        names += [line.module or "" for line in lines if isinstance(line, ast.ImportFrom)]
        early += [path.name for name in names if name.partition(".")[0] == "jax"]
    assert not early


def test_the_architecture_page_names_the_rooms_in_their_order():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = re.findall(r"^\| `compare/(\w+)/` \|", text, re.MULTILINE)
    assert tuple(rooms) == (*SPINE, *(name for name in SLICES if "." not in name))


def test_every_path_on_the_architecture_page_is_there():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:compare|meshes|jax_impl|torchxla_impl|tests)/[\w/.]*)`", text)
    assert len(paths) > 30
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing


def test_the_files_that_are_said_to_be_off_the_path_of_a_verdict_are():
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    said = text.partition("Not on the path are")[2].partition("## ")[0]
    off = {path.removesuffix(".py").strip("/").replace("/", ".") for path in re.findall(r"`([\w/.]+)`", said)}
    assert len(off) == 7
    on = reached("compare.hlo.collectives.collectives", "compare.verdict.verdict")
    assert not {name for name in on if name in off or name.rpartition(".")[0] in off}


def reached(*names: str) -> set[str]:
    """The modules of ours that these import, and those that they import, and so on."""
    found, waiting = set(), list(names)
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += graph()[name]
    return found


ARMS = ("jax_impl", "torchxla_impl")
KEYS = {
    "compare.compile.workers.compile_request": tasks.COMPILER_SOURCES,
    "compare.compile.workers.compile_any": tasks.COMPILER_SOURCES,
    "compare.compile.workers.gspmd_to_shardy": tasks.REWRITER_SOURCES,
    "compare.compile.workers.compile_batch": tasks.REWRITER_SOURCES,
    "compare.render.report.figure_process": kept_pictures.SOURCES,
    **{f"{arm}.{entry}": ("meshes", arm) for arm in ARMS for entry in ("lower", "patterns.__main__")},
}
"""Worker -> the sources in the keys of what it makes."""


@pytest.mark.parametrize("worker", KEYS)
def test_the_key_of_what_a_worker_makes_has_every_file_that_it_imports(worker):
    """Else a change of that file leaves stale entries in the cache."""
    entry = ROOT.joinpath(*worker.split(".")).with_suffix(".py")
    names = reached(*(module for module in imported_modules(entry) if module in graph())) | {worker}
    # A package is imported with its modules; it has nothing but a docstring.
    places = [place for place in map(place_of, names) if place.name != "__init__.py"]
    covered = [ROOT / source for source in KEYS[worker]]
    assert [place for place in places if not any(place.is_relative_to(source) for source in covered)] == []


def place_of(module: str) -> Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
