"""A machine from a TOML file: dims, algorithms, chunks and queues; whatever is wrong is one line that names its key.

```toml
name = "two rings"
chip = "v6e"               # left out: none; whose links and launch the file does not repeat (`--chip FILE`: your own)
memory = 2765              # GB/s (1e9), of one rank; left out: reductions cost nothing
peak = 197                 # TFLOP/s of one rank; left out: compute lasts as the graph says
multi = "local-bw-aware"   # or "baseline"; "greedy" of one collective alone
compiled = ["all-reduce"]  # kinds that follow the algorithm in a compiled program, where the dims are a torus
chunks = 1                 # also: active-chunks, queues, policy, links, in-flight, endpoint (ns), launch (ns)

[[dims]]
kind = "ring"              # or "line", "switch", "fully-connected"
size = 4
bandwidth = 90             # GB/s (1e9), one link, one direction; left out, as latency: the chip's
latency = 1000             # ns, one hop
algorithm = "ring"         # of every collective in this dim

[algorithms]               # of one collective, one for each dim
all-to-all = ["direct"]
all-reduce = ["custom:tree"]

[custom.tree]              # an algorithm of one's own, message by message: see `machines.custom`
collective = "all-reduce"
```
"""

from collections.abc import Mapping
from pathlib import Path

from compare.network.machines.custom import parse_custom
from compare.network.machines.kinds import KINDS, LOCAL_BW_AWARE, SHARED
from compare.network.machines.machine import MOST_DIMS, Algorithm, Algorithms, CustomAlgorithm, Dim, Machine
from compare.network.machines.tpu import astra_sim_machine, find_rates, tpu_machine
from compare.network.machines.words import is_words, parse_algorithm, parse_kind
from compare.schedule.hardware import Hardware
from compare.timeline.errors import TimingError, name_file, name_place
from meshes.devices.chip import Chip
from meshes.devices.generations import generation
from meshes.process.documents import name_unknown_key, read_toml
from meshes.process.errors import MeshError
from meshes.process.one_line import quote

Table = Mapping[str, object]

MACHINE_KEYS = ("name", "memory", "peak", "multi", "compiled", "chunks", "active-chunks", "queues", "policy", "links",
                "in-flight", "endpoint", "launch", "dims", "algorithms", "custom")  # fmt: skip
_DIM_KEYS = ("kind", "size", "bandwidth", "latency", "algorithm")


def find_machine(word: str, *, chip: Chip | None = None, as_astra_sim: bool = False) -> Machine:
    """The machine of a TOML file, or the TPU slice of that name.  Raises as `read_machine` and `tpu_machine`."""
    if word.endswith(".toml"):
        return read_machine(Path(word), chip)
    if ":" not in word:
        raise TimingError(f"machine {quote(word)}: write a TPU slice like v5e:2x4, or a file whose name ends in .toml")
    return (astra_sim_machine if as_astra_sim else tpu_machine)(word, chip=chip)


def read_machine(path: Path, chip: Chip | None = None) -> Machine:
    """The machine of a file.  `OSError` where it can't be opened, `TimingError`, one line, where it is none.

    chip: a user's, instead of the generation that the file names; a machine of other chips, or of none, is without it.
    """
    with name_file(path):
        table: Table = read_toml(path)
        rates = _read_rates(table, chip)
        return parse_machine({key: table[key] for key in table if key != "chip"}, name=path.stem, rates=rates)


def parse_machine(table: Table, *, name: str, rates: Hardware | None = None) -> Machine:
    """The machine of a table.  rates: of links that it leaves out.  Raises `TimingError`, which names the key."""
    _check_keys(table, MACHINE_KEYS)
    rows = table.get("dims")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MOST_DIMS:
        raise TimingError(f"dims: a machine has 1 to {MOST_DIMS} tables [[dims]]")
    dims, algorithms, custom = [], [], _read_custom(table)
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            raise TimingError(f"dims.{index}: a table, not {quote(row)}")
        with name_place(f"dims.{index}."):
            _check_keys(row, _DIM_KEYS)
            word = _text(row, "kind")
            with name_place("kind: "):
                kind = parse_kind(word)
            bandwidth, latency = find_rates(kind, rates) if rates else (None, None)
            dims.append(
                Dim(
                    kind=kind,
                    size=_whole(row, "size"),
                    bytes_per_ns=_number(row, "bandwidth", bandwidth),
                    latency_ns=_number(row, "latency", latency),
                )
            )
            word = _text(row, "algorithm", "ring")
            with name_place("algorithm: "):
                algorithms.append(parse_algorithm(word, custom))
    return Machine(
        name=_text(table, "name", name),
        dims=tuple(dims),
        algorithms=_read_algorithms(table, tuple(algorithms), custom),
        multi=_text(table, "multi", LOCAL_BW_AWARE),
        compiled=_read_compiled(table),
        chunks=_whole(table, "chunks", 1),
        active_chunks=_whole(table, "active-chunks", 1),
        queues=_whole(table, "queues", 1),
        policy=_text(table, "policy", "fifo"),
        links=_text(table, "links", SHARED),
        in_flight=_whole(table, "in-flight") if "in-flight" in table else None,
        memory_bytes_per_ns=_number(table, "memory") if "memory" in table else None,
        # TFLOP/s are 1,000 flops a ns.
        peak_flops_per_ns=1000 * _number(table, "peak") if "peak" in table else None,
        endpoint_ns=_whole(table, "endpoint") if "endpoint" in table else None,
        launch_ns=_number(table, "launch", rates.launch_ns if rates else 0.0),
        custom=tuple(custom.values()),
    )


def _read_rates(table: Table, chip: Chip | None) -> Hardware | None:
    if "chip" not in table:
        return None
    try:
        row = generation(_text(table, "chip"))
    except MeshError as error:
        raise TimingError(f"chip: {error}") from None
    return Hardware.of(chip if chip is not None and chip.name == row.name else row)


def _read_custom(table: Table) -> dict[str, CustomAlgorithm]:
    rows = table.get("custom", {})
    if not isinstance(rows, dict):
        raise TimingError(f"custom: tables [custom.name], not {quote(rows)}")
    custom = {}
    for name, row in rows.items():
        with name_place(f"custom.{name[:40]}: "):
            custom[name] = parse_custom(row, name=name)
    return custom


def _read_algorithms(table: Table, of_dims: tuple[Algorithm, ...], custom: Mapping[str, CustomAlgorithm]) -> Algorithms:
    """Those of the dims, but where a collective has its own."""
    own = table.get("algorithms", {})
    if not isinstance(own, dict):
        raise TimingError(f"algorithms: a table, not {quote(own)}")
    by_kind = {}
    with name_place("algorithms."):
        _check_keys(own, KINDS)
        for kind, words in own.items():
            if not is_words(words) or len(words) != len(of_dims):
                raise TimingError(f"{kind}: a list of {len(of_dims)} words, one for each dim, not {quote(words)}")
            with name_place(f"{kind}: "):
                by_kind[kind] = tuple(parse_algorithm(word, custom) for word in words)
    return Algorithms.alike(of_dims).replace(by_kind)


def _read_compiled(table: Table) -> tuple[str, ...]:
    words = table.get("compiled", [])
    if not is_words(words):
        raise TimingError(f"compiled: a list of kinds of collectives, not {quote(words)}")
    return tuple(words)


def _check_keys(table: Table, known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise TimingError(name_unknown_key(key, known))


def _text(table: Table, key: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or not value:
        raise TimingError(f"{key}: a word, not {quote(value)}")
    return value


def _whole(table: Table, key: str, default: int | None = None) -> int:
    value = table.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise TimingError(f"{key}: a whole number, not {quote(value)}")
    return value


def _number(table: Table, key: str, default: float | None = None) -> float:
    value = table.get(key, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e15 or value != value:
        raise TimingError(f"{key}: a number, not {quote(value)}")
    return float(value)
