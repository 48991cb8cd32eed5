"""The arms: which frameworks are compared, and into which cells each one's program is made.

The one place that names them.  A new arm is a folder with the worker protocol, and a row here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from types import MappingProxyType

from compare.report.witnesses import WITNESSES
from compare.run.errors import WorkError
from meshes.case import CHOICES, Case
from meshes.process.packages import is_overwritten
from meshes.reduced import reduce_case

COMPILER = ("jaxlib", "libtpu")
"""The distributions that compile every arm's program."""


_LAST = "pip install --no-deps --force-reinstall torchax==0.0.13 google-tunix==0.1.7 qwix==0.1.8"
"""What pip cannot resolve: torch_xla brings a copy of torchax, which may be installed over it; the metadata of
google-tunix asks for a training stack, which its models do not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lowering:
    """What lowers a program where its arm does not: `python -m MODULE CASE.json OUTDIR ARGUMENTS`."""

    module: str
    arguments: tuple[str, ...] = ()
    packages: tuple[str, ...]
    """Distributions beside the arm's own."""
    get: str
    """How to install them."""

    def versions(self) -> dict[str, str]:
        return {name: found for name in self.packages if (found := _version(name))}

    def missing(self) -> str:
        """One line when it can't run here; else nothing."""
        absent = [name for name in self.packages if not _version(name)]
        absent += [] if find_spec(self.module.partition(".")[0]) else [self.module]
        if absent:
            return f"{', '.join(absent)} not installed; get it with {self.get}"
        over = [name for name in self.packages if is_overwritten(name)]
        return f"another package was installed over {', '.join(over)}; put it back with {_LAST}" if over else ""


@dataclass(frozen=True, slots=True)
class Cell:
    """One way to make an arm's program: words of the case that it changes."""

    name: str
    changes: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[str, ...] = ("lower", "compile")
    platform: str = ""
    """Of one that is run and measured: what it runs on, `cpu` or `tpu`."""
    control: str = ""
    """Of a control: the word of `CONTROLS` that asks for it."""
    libtpu: str = ""
    """The version that compiles it, where that is not the one installed."""
    lowering: Lowering | None = None
    """What lowers it, where that is not the arm."""

    def case_of(self, case: Case) -> Case:
        """The case that its program is for: on CPU devices a model of the same structure that fits them."""
        asked = case.at(**self.changes)
        return reduce_case(asked) if self.platform == "cpu" else asked

    def differs(self, case: Case) -> bool:
        """Whether it is another program than that of the case itself."""
        return bool(self.libtpu or self.lowering) or any(
            getattr(case, word) != value for word, value in self.changes.items()
        )


REWRITTEN = ("lower", "rewrite", "compile")
"""The steps of a program that is lowered as it is by default, and said to another partitioner before the compile."""

CONTROLS = ("partitioner", "attention", "style", "loop", "tracer", "libtpu")
"""What a control changes: one thing at a time, so that what goes away with it was its doing."""
DEFAULT_CONTROLS = ("partitioner", "attention")

EARLIER_LIBTPU = "0.0.41"
"""What the control `libtpu` compiles with: an earlier release than the pinned one, which takes the same programs."""

DEFAULT = Cell("tpu")

PLATFORMS = ("cpu", "tpu")
"""What programs can be executed on: this machine's CPU as many devices, or its TPUs."""
EXECUTED = {
    "cpu": Cell("cpu", steps=("profile",), platform="cpu"),
    "tpu": Cell("tpu+run", steps=("profile",), platform="tpu"),
}
"""By platform: the arm's program on its own runtime, measured."""
SAME_RUNTIME = Cell("cpu+jaxlib", steps=("lower", "execute"), platform="cpu")
"""An arm's program on the CPU runtime of JAX: what differs then from `cpu` is the runtime's doing."""


MEASURED: Mapping[str, Cell] = MappingProxyType({cell.name: cell for cell in (*EXECUTED.values(), SAME_RUNTIME)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One framework's twin: a folder that is run as `python -m <module>.lower`, never imported."""

    name: str
    module: str
    title: str
    packages: tuple[str, ...]
    """Its distributions; their versions are part of what made a program."""
    extra: str
    """The extra of `wirediff` that installs them."""
    controls: tuple[Cell, ...] = ()
    own_runtime: bool
    """Whether it brings a runtime of its own, so that its program on JAX's is another measurement."""
    ignored_words: tuple[str, ...] = ()
    """Words of a case that change nothing in what it lowers."""
    start_s: int
    """Roughly what its start costs: the slowest begins first."""

    def cells(
        self,
        case: Case,
        *,
        controls: Sequence[str] = DEFAULT_CONTROLS,
        libtpu: str = "",
        execute: str = "",
        same_runtime: bool = False,
        witnesses: Sequence[str] = (),
    ) -> tuple[Cell, ...]:
        """The default cell, each control that is another program, witnesses, and what is to be measured on `execute`.

        controls: words of `CONTROLS`.  libtpu: the version that the control of this name compiles with.
        witnesses: names in `WITNESSES`; those of this arm are taken.
        """
        offered = (*self.controls, *_words(case), _other_libtpu(libtpu or EARLIER_LIBTPU))
        compiled = (DEFAULT, *(cell for cell in offered if cell.control in controls and cell.differs(case)))
        others = (_witness_cell(name) for name in witnesses if WITNESSES[name].arm == self.name)
        measured = (EXECUTED[execute],) if execute else ()
        return (*compiled, *others, *measured, *((SAME_RUNTIME,) if same_runtime and self.own_runtime else ()))

    def worker_case(self, case: Case) -> Case:
        """The case as its own worker is asked: words that other steps heed are as they are by default."""
        return case.at(**{word: CHOICES[word][0] for word in self.ignored_words})

    def versions(self) -> dict[str, str]:
        """Of its packages that are there, read from their metadata: nothing is imported."""
        return {name: found for name in self.packages if (found := _version(name))}

    def missing(self) -> str:
        """One line when it can't run here: what is not installed, and how to get it; else nothing."""
        absent = [name for name in (*self.packages, *COMPILER) if not _version(name)]
        absent += [] if find_spec(self.module) else [self.module]
        if not absent:
            return ""
        return (
            f"{', '.join(absent)} not installed; get it with pip install -e '.[{self.extra}]' "
            f"(without a checkout: pip install 'wirediff[{self.extra}]')"
        )


_WITNESS = "pip install -e '.[witness]' (without a checkout: pip install 'wirediff[witness]')"
_TORCHAX = Lowering(module="witnesses.torchax_twin", packages=("torchax", "jax"), get=_WITNESS)


def _witness_cell(name: str) -> Cell:
    packages: tuple[str, ...] = ("google-tunix", "qwix") if WITNESSES[name].arm == "jax" else ("transformers",)
    packages += ("torchax", "jax") if "torchax" in name else ()
    get = _LAST if WITNESSES[name].arm == "jax" else _WITNESS
    return Cell(name, lowering=Lowering(module="witnesses.lower", arguments=(name,), packages=packages, get=get))


_ROWS = (
    Arm(
        name="jax",
        module="jax_impl",
        title="JAX",
        packages=("jax", "flax"),
        extra="jax",
        # PyTorch/XLA's partitioner: what a framework adds is computed between cells of the same one.
        # None for attention: JAX's own call is an einsum, and moves the same bytes as one that is written out.
        controls=(Cell("tpu+gspmd", {"partitioner": "gspmd"}, control="partitioner"),),
        own_runtime=False,
        start_s=3,
    ),
    Arm(
        name="torchxla",
        module="torchxla_impl",
        title="TorchXLA",
        packages=("torch", "torch_xla"),
        extra="torchxla",
        controls=(
            # JAX's partitioner: what both partitioners make of a traced program is the program's.
            Cell("tpu+shardy", {"partitioner": "shardy"}, steps=REWRITTEN, control="partitioner"),
            # Shows what its own attention call costs.
            Cell("tpu+einsum", {"attention": "einsum"}, control="attention"),
            # The same classes, traced by JAX: what stays is what PyTorch's own operations ask for.
            Cell("tpu+torchax", control="tracer", lowering=_TORCHAX),
        ),
        own_runtime=True,
        ignored_words=("partitioner",),
        start_s=10,
    ),
)


def _words(case: Case) -> tuple[Cell, ...]:
    """The controls that every arm has: each other style, and the other loop form."""
    styles = (Cell(f"tpu+{word}", {"style": word}, control="style") for word in CHOICES["style"])
    loops = (Cell(f"tpu+{word}", {"loop": word}, control="loop") for word in CHOICES["loop"])
    return (*styles, *loops)


def _other_libtpu(version: str) -> Cell:
    steps = ("lower", "install", "compile")
    return Cell(f"tpu+libtpu-{version}", steps=steps, control="libtpu", libtpu=version)


ARMS: Mapping[str, Arm] = MappingProxyType({arm.name: arm for arm in _ROWS})


def find_arm(name: str) -> Arm:
    """The arm of this name.  Raises `WorkError` for any other."""
    if name not in ARMS:
        raise WorkError(f"unknown arm {name!r}; choose from {', '.join(ARMS)}")
    return ARMS[name]


def parse_arms(words: str) -> list[Arm]:
    """The arms of `jax,torchxla`.  Raises `WorkError` for an unknown name, one named twice, or none."""
    names = [name.strip() for name in words.split(",")]
    if names == [""]:
        raise WorkError(f"no arm was named; choose from {', '.join(ARMS)}")
    for name in names:
        if names.count(name) > 1:
            raise WorkError(f"arm {name!r} is named twice in --arm {words}")
    return [find_arm(name) for name in names]


def parse_controls(words: str) -> tuple[str, ...]:
    """The controls of `partitioner,style`, of `all` or `none`.  Raises `WorkError` for any other word."""
    if words in ("all", "none"):
        return CONTROLS if words == "all" else ()
    names = tuple(name.strip() for name in words.split(","))
    for name in names:
        if name not in CONTROLS:
            raise WorkError(f"unknown control {name!r}; choose from {', '.join(CONTROLS)}, or write all, or none")
    return tuple(word for word in CONTROLS if word in names)


def parse_witnesses(words: str, *, arms: Sequence[str]) -> tuple[str, ...]:
    """The witnesses of `hf-torchxla,tunix`; of nothing none.

    Raises `WorkError` for an unknown name, or for one whose arm is not among `arms`.
    """
    names = tuple(dict.fromkeys(name.strip() for name in words.split(","))) if words else ()
    for name in names:
        if name not in WITNESSES:
            raise WorkError(f"unknown witness {name!r}; choose from {', '.join(WITNESSES)}")
        if WITNESSES[name].arm not in arms:
            raise WorkError(f"the witness {name} stands beside the arm {WITNESSES[name].arm}, which --arm leaves out")
    return names


def read_versions(packages: tuple[str, ...]) -> dict[str, str]:
    """Versions of distributions, from their metadata; `""` for one that is not there."""
    return {name: _version(name) for name in packages}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
