"""The arms: which frameworks are compared, and in which cells each arm's program is compiled.

A new arm is a folder with the worker protocol, its name in `choices.FRAMEWORKS`, and a row here.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import MappingProxyType

from compare.report.compiler_options import CELL, OPTIONS
from compare.report.witnesses import WITNESSES
from compare.run.choices import CONTROLS, DEFAULT_CONTROLS, EARLIER_LIBTPU, JAX, TORCHXLA
from compare.run.errors import WorkError
from meshes.case import Case
from meshes.choices import CHOICES
from meshes.process.packages import installed_version, is_overwritten
from meshes.reduced import reduce_case
from meshes.twins.caches import CACHE_USES, choose_cache_use
from meshes.variants import VARIANTS

COMPILER = ("jaxlib", "libtpu")
"""The distributions that compile every arm's program."""


_LAST = "pip install --no-deps --force-reinstall torchax==0.0.13 google-tunix==0.1.7 qwix==0.1.8"
"""What pip cannot resolve: torch_xla brings a copy of torchax, which may be installed over it; the metadata of
google-tunix asks for a training stack, which its models do not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowering:
    """A worker that lowers a program in place of its arm: `python -m MODULE CASE.json OUTDIR ARGUMENTS`."""

    module: str
    arguments: tuple[str, ...] = ()
    packages: tuple[str, ...]
    """Distributions that it needs besides the arm's."""
    install_hint: str
    """What a user types to install them."""

    def versions(self) -> dict[str, str]:
        return _without_missing(self.packages)

    def missing(self) -> str:
        """One line if it cannot run here; else empty."""
        absent = [name for name in self.packages if not installed_version(name)]
        absent += [] if find_spec(self.module.partition(".")[0]) else [self.module]
        if absent:
            return f"{', '.join(absent)} not installed; get it with {self.install_hint}"
        overwritten = [name for name in self.packages if is_overwritten(name)]
        return (
            f"another package was installed over {', '.join(overwritten)}; put it back with {_LAST}"
            if overwritten
            else ""
        )


@dataclass(frozen=True, slots=True)
class Cell:
    """One variant of an arm's program: the words of the case that it changes."""

    name: str
    changes: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[str, ...] = ("lower", "compile")
    platform: str = ""
    """Of a cell that is run and measured: `cpu` or `tpu`."""
    control: str = ""
    """Of a control: its word in `CONTROLS`."""
    libtpu: str = ""
    """The version that compiles it, if not the installed one."""
    lowering: Lowering | None = None
    """The worker that lowers it, if not the arm's."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags of XLA, beside those that the arm compiles with."""

    def case_of(self, case: Case) -> Case:
        """The case of its program: on CPU devices, a reduced model of the same structure."""
        changed = case.at(**self.changes)
        return reduce_case(changed) if self.platform == "cpu" else changed

    def differs(self, case: Case) -> bool:
        """Whether it is another program than the default one of the case."""
        return bool(self.libtpu or self.lowering or self.flags) or any(
            getattr(case, word) != value for word, value in self.changes.items()
        )


REWRITTEN = ("lower", "rewrite", "compile")
"""The steps of a program that is lowered as by default, and translated for another partitioner before the compile."""

DEFAULT = Cell("tpu")

EXECUTED = {
    "cpu": Cell("cpu", steps=("lower", "execute"), platform="cpu"),
    "tpu": Cell("tpu+run", steps=("profile",), platform="tpu"),
}
"""Platform -> the cell that measures the arm's program: on JAX's CPU runtime, whose profiles name the device of each
operation, or on the TPUs of the arm's own runtime."""
MEASURED: Mapping[str, Cell] = MappingProxyType(
    {
        **{cell.name: cell for cell in EXECUTED.values()},
        "cpu+jaxlib": Cell("cpu+jaxlib", platform="cpu"),  # of run folders in which `cpu` was the arm's own runtime
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One framework's twin: a package that is run as `python -m <module>.lower`, never imported."""

    name: str
    module: str
    title: str
    packages: tuple[str, ...]
    """Its distributions; their versions are part of a program's cache key."""
    extra: str
    """The extra of `wirediff` that installs them."""
    controls: tuple[Cell, ...] = ()
    lacks: tuple[str, ...] = ()
    """Styles that its twin has no way to write: they are no controls of it."""
    ignored_words: tuple[str, ...] = ()
    """Words of a case that do not change what it lowers."""
    start_s: int
    """Rough start-up time: the slowest starts first."""

    def cells(
        self,
        case: Case,
        *,
        controls: Sequence[str] = DEFAULT_CONTROLS,
        libtpu: str = "",
        execute: str = "",
        witnesses: Sequence[str] = (),
    ) -> tuple[Cell, ...]:
        """The default cell, each control that differs from it, witnesses, and the cell to measure on `execute`.

        controls: words of `CONTROLS`.  libtpu: the version of the control `libtpu`.
        witnesses: names in `WITNESSES`; those of this arm are used.
        """
        offered = (
            *self.controls,
            *(cell for cell in _words() if cell.changes.get("style") not in self.lacks),
            *_caches(case),
            _other_libtpu(libtpu or EARLIER_LIBTPU),
            *OPTION_CELLS,
        )
        compiled = (DEFAULT, *(cell for cell in offered if cell.control in controls and cell.differs(case)))
        others = (_witness_cell(name) for name in witnesses if WITNESSES[name].arm == self.name)
        return (*compiled, *others, *((EXECUTED[execute],) if execute else ()))

    def worker_case(self, case: Case) -> Case:
        """The case for its own worker: ignored words have their defaults."""
        return case.at(**{word: CHOICES[word][0] for word in self.ignored_words})

    def versions(self) -> dict[str, str]:
        """The versions of its installed packages, from their metadata; nothing is imported."""
        return _without_missing(self.packages)

    def missing(self) -> str:
        """One line if it cannot run here: what is not installed, and how to install it; else empty."""
        absent = [name for name in (*self.packages, *COMPILER) if not installed_version(name)]
        absent += [] if find_spec(self.module) else [self.module]
        if not absent:
            return ""
        return (
            f"{', '.join(absent)} not installed; get it with pip install -e '.[{self.extra}]' "
            f"(without a checkout: pip install 'wirediff[{self.extra}]')"
        )


_WITNESS = "pip install -e '.[witness]' (without a checkout: pip install 'wirediff[witness]')"
_TORCHAX = Lowering(module="witnesses.torchax_twin", packages=("torchax", "jax"), install_hint=_WITNESS)


def _witness_cell(name: str) -> Cell:
    packages: tuple[str, ...] = ("google-tunix", "qwix") if WITNESSES[name].arm == "jax" else ("transformers",)
    packages += ("torchax", "jax") if "torchax" in name else ()
    hint = _LAST if WITNESSES[name].arm == "jax" else _WITNESS
    return Cell(
        name, lowering=Lowering(module="witnesses.lower", arguments=(name,), packages=packages, install_hint=hint)
    )


_ROWS = (
    Arm(
        name=JAX,
        module="jax_impl",
        title="JAX",
        packages=("jax", "flax"),
        extra="jax",
        # PyTorch/XLA's partitioner: framework-induced bytes are computed between cells of the same partitioner.
        # No control for attention: JAX's own call is an einsum, and moves the same bytes as a written-out one.
        controls=(Cell("tpu+gspmd", {"partitioner": "gspmd"}, control="partitioner"),),
        start_s=3,
    ),
    Arm(
        name=TORCHXLA,
        module="torchxla_impl",
        title="TorchXLA",
        packages=("torch", "torch_xla"),
        extra="torchxla",
        controls=(
            # JAX's partitioner: what both partitioners emit for a traced program is due to the program.
            Cell("tpu+shardy", {"partitioner": "shardy"}, steps=REWRITTEN, control="partitioner"),
            # Shows the cost of its own attention call.
            Cell("tpu+einsum", {"attention": "einsum"}, control="attention"),
            # The same classes, traced by JAX: what remains is due to PyTorch's own operations.
            Cell("tpu+torchax", control="tracer", lowering=_TORCHAX),
        ),
        lacks=("typed",),
        ignored_words=("partitioner",),
        start_s=10,
    ),
)


def _words() -> tuple[Cell, ...]:
    """The controls of every arm: each style that it does not lack, and each loop form."""
    styles = (Cell(f"tpu+{word}", {"style": word}, control="style") for word in CHOICES["style"])
    loops = (Cell(f"tpu+{word}", {"loop": word}, control="loop") for word in CHOICES["loop"])
    return (*styles, *loops)


def _caches(case: Case) -> Iterator[Cell]:
    """The other ways in which a decode step writes and reads its cache; none where all is written by hand."""
    if case.style == "explicit" or "decode" not in case.phases:
        return
    default = choose_cache_use(case)
    others = tuple(name for name in case.variants if VARIANTS[name].site != "cache")
    for name, use in CACHE_USES.items():
        if use != default:
            yield Cell(f"tpu+{name}", {"variants": (*others, name)}, control="cache")


def _other_libtpu(version: str) -> Cell:
    steps = ("lower", "install", "compile")
    return Cell(f"tpu+libtpu-{version}", steps=steps, control="libtpu", libtpu=version)


OPTION_CELLS = tuple(Cell(f"{CELL}{word}", control=word, flags=option.flags) for word, option in OPTIONS.items())
"""The default program compiled with other options; a sweep asks for them by their words."""

ARMS: Mapping[str, Arm] = MappingProxyType({arm.name: arm for arm in _ROWS})


def find_arm(name: str) -> Arm:
    """The arm of this name.  Raises `WorkError` for any other."""
    if name not in ARMS:
        raise WorkError(f"unknown framework {name!r}; choose from {', '.join(ARMS)}")
    return ARMS[name]


def parse_arms(words: str) -> list[Arm]:
    """The arms in `jax,torchxla`.  Raises `WorkError` for an unknown name, a duplicate, or no name."""
    names = [name.strip() for name in words.split(",")]
    if names == [""]:
        raise WorkError(f"no framework was named; choose from {', '.join(ARMS)}")
    for name in names:
        if names.count(name) > 1:
            raise WorkError(f"framework {name!r} is named twice in --framework {words}")
    return [find_arm(name) for name in names]


def parse_controls(words: str) -> tuple[str, ...]:
    """The controls in `partitioner,style`, `all` or `none`.  Raises `WorkError` for any other word."""
    if words in ("all", "none"):
        return CONTROLS if words == "all" else ()
    if {"all", "none"} & {word.strip() for word in words.split(",")}:
        raise WorkError(f"--controls {words}: none and all stand alone")
    names = _names(words, CONTROLS, "control", ", or write all, or none")
    return tuple(word for word in CONTROLS if word in names)


def parse_options(words: str) -> tuple[str, ...]:
    """The compiler options in `async-off,scheduler-off`, or all; none for an empty text.  `WorkError` for others."""
    if words == "all":
        return tuple(OPTIONS)
    return _names(words, OPTIONS, "compiler options", ", or write all") if words else ()


def parse_witnesses(words: str, *, arms: Sequence[str]) -> tuple[str, ...]:
    """The witnesses in `hf-torchxla,tunix`; none for an empty text.

    Raises `WorkError` for an unknown name, or for one whose arm is not among `arms`.
    """
    names = _names(words, WITNESSES, "reference model") if words else ()
    for name in names:
        if WITNESSES[name].arm not in arms:
            raise WorkError(f"the reference model {name} is of {WITNESSES[name].arm}, which --framework leaves out")
    return names


def _names(words: str, known: Collection[str], what: str, more: str = "") -> tuple[str, ...]:
    """Those in `a,b`, each once.  more: what else may be written."""
    names = tuple(dict.fromkeys(name.strip() for name in words.split(",")))
    for name in names:
        if name not in known:
            raise WorkError(f"unknown {what} {name!r}; choose from {', '.join(known)}{more}")
    return names


def read_versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of distributions, from their metadata; `""` for a missing one."""
    return {name: installed_version(name) for name in packages}


def _without_missing(packages: tuple[str, ...]) -> dict[str, str]:
    return {name: version for name, version in read_versions(packages).items() if version}
