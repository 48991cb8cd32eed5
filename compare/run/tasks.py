"""The steps of a cell: the process of each, its environment, and its cache key."""

import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache as once
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from compare.report.model.about import About
from compare.report.model.codec import Json
from compare.run.arms import COMPILER, Arm, Cell, Lowering, read_versions
from compare.run.cache import file_digest, make_key, sources_digest
from compare.run.errors import WorkError
from compare.run.processes import ProcessEnd
from meshes.assignment import assign_chips
from meshes.case import Case
from meshes.memory import explain_misfit
from meshes.process.documents import read_json
from meshes.process.last_word import DOES_NOT_FIT

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = 1
"""Version of the worker protocol, for changes that no source digest or version shows."""

# A fixed iteration order of sets, so that the same case gives the same program.
REPEATABLE = {"PYTHONHASHSEED": "0"}
QUIET = {
    **REPEATABLE,
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    # Otherwise the second process that loads libtpu aborts on a lock file.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
}
"""Environment variables for loading libtpu without a TPU."""

PROFILES = "trace/plugins/profile/*/*.xplane.pb"
"""Profiles in a cell: the layout that TensorBoard opens."""

PREFIXES = ("JAX_", "XLA_", "LIBTPU_", "TPU_", "PJRT_", "PT_XLA_", "TORCH")
"""Prefixes of environment variables that can change a program."""

# libtpu sets the last in every process that imports it, by way of JAX; the compile loads the installed one regardless.
UNCHANGING = {*QUIET, "TPU_LIBRARY_PATH"}
"""Environment variables with such a prefix that change no program."""

REWRITER_SOURCES = (
    "compare/compile",
    # What reads a sharding's tiles, for Shardy.
    "compare/hlo/devices/tiles.py",
    "compare/hlo/text/errors.py",
    "meshes/devices/mesh_spec.py",
    "meshes/process",
)
COMPILER_SOURCES = (
    "compare/compile",
    "compare/passes/archive.py",
    # What restores the names that libtpu drops, and reads which chip is which device.
    "compare/hlo/collective.py",
    "compare/hlo/counts",
    "compare/hlo/dataflow",
    "compare/hlo/devices/groups.py",
    "compare/hlo/devices/tiles.py",
    "compare/hlo/emission/megascale.py",
    "compare/hlo/proto",
    "compare/hlo/text",
    "meshes",
)
"""Where the files are that these workers import: a change of any is another key."""

NOT_LOWERED = ("name", "topology", "order")
"""Words of a case that do not affect lowering: programs use logical device ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One process to run, unless the cache has its results."""

    name: str
    kind: str
    key: str
    module: str
    request: str
    """The text of its request file."""
    results: tuple[str, ...]
    """Files, or glob patterns, that it must have written."""
    arguments: tuple[str, ...] = ()
    """Further command line arguments."""
    libtpu: Path | None = None
    """The folder of the libtpu to use, if not the installed one."""
    platform: str = ""
    """Of a measurement: its platform.  It runs alone, and is not cached."""

    def argv(self, request: Path, out: Path) -> list[str]:
        # -P: a folder in the working directory with a package's name must not shadow it.
        return [sys.executable, "-P", "-m", self.module, str(request), str(out), *self.arguments]

    def environment(self) -> dict[str, str]:
        """The user's environment, with this project on the path; without a TPU, also `QUIET`."""
        first = [ROOT, self.libtpu] if self.libtpu else [ROOT]
        path = os.pathsep.join([*map(str, first), *filter(None, [os.environ.get("PYTHONPATH")])])
        return os.environ | (REPEATABLE if self.platform == "tpu" else QUIET) | {"PYTHONPATH": path}


def next_task(cell: Cell, *, case: Case, arm: Arm, folders: Mapping[str, Path], passes: bool = True) -> Task | None:
    """The next step of a cell, or `None`; `folders`: those of finished steps; `case`: the cell's.

    passes: whether the compile records the program between libtpu's passes.
    """
    name = next((name for name in cell.steps if name not in folders), None)
    if name == "install":
        return install_task(cell.libtpu)
    if name == "lower":
        return lower_task(arm.worker_case(case), arm, lowering=cell.lowering)
    if name == "rewrite":
        return rewrite_task(case, arm, program=folders["lower"])
    if name == "compile":
        program = folders.get("rewrite", folders["lower"])
        libtpu = cell.libtpu, folders.get("install")
        return compile_task(case, arm, program=program, passes=passes, libtpu=libtpu, flags=cell.flags)
    if name == "execute":
        return execute_task(program=folders["lower"])
    return profile_task(case, arm, platform=cell.platform) if name else None


def lower_task(case: Case, arm: Arm, *, lowering: Lowering | None = None) -> Task:
    """Lower a case to StableHLO, by the arm or by another lowering."""
    case_words = {word: value for word, value in case.to_dict().items() if word not in NOT_LOWERED}
    made_by: dict[str, object] = {"arm": arm.name, "versions": arm.versions(), "sources": arm_sources(arm.module)}
    if lowering:
        room = lowering.module.partition(".")[0]
        made_by |= {
            "lowering": [lowering.module, *lowering.arguments],
            "versions": arm.versions() | lowering.versions(),
            "sources": [arm_sources(name) for name in dict.fromkeys((arm.module, "jax_impl", "torchxla_impl", room))],
        }
    return Task(
        name="lower",
        kind="program",
        key=make_key({"case": case_words, **made_by, **describe_environment()}),
        module=lowering.module if lowering else f"{arm.module}.lower",
        arguments=lowering.arguments if lowering else (),
        request=case.to_json(),
        results=("program.mlirbc", "about.json"),
    )


def rewrite_task(case: Case, arm: Arm, *, program: Path) -> Task:
    """Translate a GSPMD program to Shardy.  `program` is the folder that `lower` wrote."""
    digest, axes = file_digest(program / "program.mlirbc"), case.mesh.axes
    sources = sources_digest(*(ROOT / source for source in REWRITER_SOURCES))
    made_by = {
        "about": file_digest(program / "about.json"),
        "versions": read_versions(COMPILER[:1]),
        "sources": sources,
    }
    return Task(
        name="rewrite",
        kind="program",
        key=make_key({"program": digest, "axes": axes, **made_by, **describe_environment()}),
        module="compare.compile.workers.gspmd_to_shardy",
        request=json.dumps({"program": str(program), "axes": axes}),
        results=("program.mlirbc", "about.json"),
    )


def install_task(version: str) -> Task:
    """Install another version of libtpu into a folder."""
    return Task(
        name="install",
        kind="libtpu",
        key=make_key({"version": version, **describe_environment()}),
        module="compare.run.install_libtpu",
        request=json.dumps({"version": version}),
        results=("libtpu",),
    )


def compile_task(
    case: Case,
    arm: Arm,
    *,
    program: Path,
    passes: bool = True,
    libtpu: tuple[str, Path | None] = ("", None),
    flags: Mapping[str, str] = MappingProxyType({}),
) -> Task:
    """Compile StableHLO to scheduled TPU HLO with libtpu.  `program` is the folder that has it.

    passes: also record the program between libtpu's passes, to find the origin of each collective.
    libtpu: (version, folder) of another libtpu than the installed one.  flags: of XLA, beside the program's own.

    Raises `WorkError` when its about.json has no compile options.
    """
    try:
        options = About.from_json(read_json(program / "about.json")).compile_options
    except (OSError, ValueError) as error:
        raise WorkError(f"{arm.module}.lower wrote an about.json that cannot be read: {error}") from None
    if options is None:
        raise WorkError(f"{arm.module}.lower wrote an about.json without compile_options")
    request = {
        "topology": case.topology.slice_name,
        "num_slices": case.topology.slices,
        "places": assign_chips(case.plan),
        "compile_options": _with_flags(options, flags) if flags else options,
        "passes": passes,
    }
    digest = file_digest(program / "program.mlirbc")
    version, folder = libtpu
    versions = read_versions(COMPILER) | ({"libtpu": version} if folder else {})
    made_by = {"versions": versions, "sources": compiler_sources()}
    full_request = request | {"program": str(program / "program.mlirbc"), "strip": source_prefixes(arm)}
    return Task(
        name="compile",
        kind="compiled",
        key=make_key({"program": digest, **request, **made_by, **describe_environment()}),
        module="compare.compile.workers.compile_request",
        request=json.dumps(full_request),
        results=("optimized.hlo.gz", "compiled.json"),
        libtpu=folder,
    )


def _with_flags(options: Mapping[str, Json], flags: Mapping[str, str]) -> Mapping[str, Json]:
    known = options.get("flags")
    return {**options, "flags": {**(known if isinstance(known, Mapping) else {}), **flags}}


def profile_task(case: Case, arm: Arm, *, platform: str) -> Task:
    """Execute and profile a case with the arm's own runtime and profiler."""
    return Task(
        name="profile",
        kind="profile",
        key="",
        module=f"{arm.module}.profile",
        request=case.to_json(),
        results=("about.json", PROFILES),
        arguments=(platform,),
        platform=platform,
    )


def execute_task(*, program: Path) -> Task:
    """Compile and execute StableHLO with JAX's CPU runtime.  `program` is the folder that `lower` wrote."""
    return Task(
        name="execute",
        kind="profile",
        key="",
        module="compare.compile.workers.execute_cpu",
        request=json.dumps({"program": str(program)}),
        results=("about.json", PROFILES),
        platform="cpu",
    )


def explain(ended: ProcessEnd, *, case: Case) -> str:
    """A worker's error line; for a program that exceeds the memory, with the smallest mesh that should fit."""
    reason = ended.reason
    if not reason or reason.kind != DOES_NOT_FIT:
        return ended.error
    return explain_misfit(case, needed=reason.needed_bytes, capacity=reason.available_bytes)


def source_prefixes(arm: Arm) -> list[str]:
    """Folder prefixes to strip from source paths, so that run folders are the same on every machine.

    The arm itself strips those of installed files, which keep the name of their last folder.
    """
    return _spelled(ROOT, _folder(arm.module).parent)


def strip_prefixes(text: str, arm: Arm) -> str:
    """A worker's text with those prefixes stripped from its paths.

    An installed file becomes `site-packages/torch/functional.py`, also where the environment is in the checkout.
    """
    paths = sysconfig.get_paths()
    installed = {paths[name]: 1 for name in ("purelib", "platlib")} | {paths["stdlib"]: 2}
    replacements: dict[str, str] = {}
    for folder, last in installed.items():
        replacements |= dict.fromkeys(_spelled(Path(folder)), "/".join([*Path(folder).parts[-last:], ""]))
    replacements |= dict.fromkeys(source_prefixes(arm), "")
    for prefix in sorted(replacements, key=len, reverse=True):
        text = text.replace(f"{prefix}/", replacements[prefix])
    return text


def _spelled(*folders: Path) -> list[str]:
    return sorted({str(spelled) for folder in folders for spelled in (folder, folder.resolve())})


def _folder(module: str) -> Path:
    """The folder of a package, without importing it."""
    spec = find_spec(module)
    if not spec or not spec.submodule_search_locations:
        raise WorkError(f"there is no folder {module}")
    return Path(next(iter(spec.submodule_search_locations)))


@once
def arm_sources(module: str) -> str:
    """Digest of what an arm lowers with: its package, and meshes."""
    return sources_digest(ROOT / "meshes", _folder(module))


@once
def compiler_sources() -> str:
    """Digest of the sources of the compile workers."""
    return sources_digest(*(ROOT / source for source in COMPILER_SOURCES))


def describe_environment() -> Mapping[str, object]:
    """The parts of the environment that can change a program, for cache keys."""
    variables = {name: text for name, text in sorted(os.environ.items()) if name.startswith(PREFIXES)}
    environment = {name: text for name, text in variables.items() if name not in UNCHANGING}
    return {"protocol": PROTOCOL, "python": sys.version_info[:3], "environment": environment}
