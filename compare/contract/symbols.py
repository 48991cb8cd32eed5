"""The symbols of the contract's formulas, from the numbers of a `Case` alone, and the row that they make."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from compare.contract.row import FLOATS, ContractRow, round_half_up, wire_factor
from meshes.assignment import network_of
from meshes.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbols:
    """The symbols of the formulas in docs/definitions.md, section 2."""

    sizes: Mapping[str, int]
    """Axis -> size, outermost first."""
    networks: Mapping[str, str]
    """Axis -> network of its groups: `ici`, `dcn` or `ici+dcn`."""
    prefill: bool
    m: int
    layers: int
    """L, of the full model."""
    embed: int
    """D."""
    b: int
    batch: int
    """B_local: the sequences whose next token one device chooses."""
    t: int
    """Tokens of one microbatch on one device."""
    heads: int
    """On one device, like `kv`, which counts copies."""
    kv: int
    head_dim: int
    vocab: int
    scattered: bool
    """Whether tp splits the residual stream: sequence parallelism, where tp divides the tokens."""

    @classmethod
    def of(cls, case: Case) -> "Symbols":
        sizes, model, prefill = case.mesh.axes, case.model, case.phase == "prefill"
        local = case.batch // (sizes["dp"] * sizes["ep"])
        tokens = local * (case.seq // sizes["cp"] if prefill else 1) // case.microbatches
        shards = sizes["tp"] if case.plan.rules["heads"] else 1
        sequence_parallel = sizes["tp"] > 1 and "tp" in str(case.plan.rules["stream_seq"]).split(",")
        return cls(
            sizes=sizes,
            networks={axis: network_of(case.plan, axis) for axis in sizes},
            prefill=prefill,
            m=case.microbatches,
            layers=model.layers,
            embed=model.embed,
            b=case.dtype_bytes,
            batch=local,
            t=tokens,
            heads=model.heads // shards,
            kv=case.kv_heads // shards,
            head_dim=model.head_dim,
            vocab=model.vocab,
            scattered=sequence_parallel and (prefill or tokens % sizes["tp"] == 0),
        )

    def size(self, axis: str) -> int:
        return self.sizes[axis]

    @property
    def times(self) -> int:
        """How often a layer of a stage runs: (L/pp)·m."""
        return self.layers // self.size("pp") * self.m

    @property
    def hidden(self) -> int:
        """t·D·b: the bytes of one microbatch on one device."""
        return self.t * self.embed * self.b

    @property
    def times_formula(self) -> str:
        """`times`, as a formula."""
        return f"(L/pp)·m = ({self.layers}/{self.size('pp')})·{self.m} times"

    def wire_formula(self, axis: str, kind: str) -> str:
        """The part of its payload that a device sends, as a formula."""
        n, twice, two = self.size(axis), *(("2", "2·") if kind == "all-reduce" else ("", ""))
        return f"{twice}({axis}−1)/{axis} = {two}{n - 1}/{n} on the wire"

    def stage(self, which: str) -> frozenset[int]:
        """The devices of the `first` stage or the `last`."""
        return self.devices(pp=[0 if which == "first" else self.size("pp") - 1])

    def sampling_devices(self) -> frozenset[int]:
        """The devices that choose tokens: the last stage; in prefill those with the last part of a sequence."""
        ranks = range(self.size("cp"))
        return self.devices(pp=[self.size("pp") - 1], cp=ranks[-1:] if self.prefill else ranks)

    def stage_text(self, *, which: str) -> str:
        """The stage, and in prefill the cp rank with the last part of a sequence, as the formulas write them."""
        number = 0 if which == "first" else self.size("pp") - 1
        stage = f", stage {number} only" if self.size("pp") > 1 else ""
        return stage + (self.rank_text() if which == "last" else "")

    def rank_text(self) -> str:
        """In prefill, the cp rank that samples: the one with the last part of a sequence."""
        return f", cp rank {self.size('cp') - 1} only" if self.prefill and self.size("cp") > 1 else ""

    def devices(self, **allowed_coordinates: list[int] | range) -> frozenset[int]:
        """Device ids with one of the given coordinates on each named axis; any on the others.  Ids are row-major."""
        ids = set()
        for coordinates in product(*(range(size) for size in self.sizes.values())):
            if all(
                coordinates[list(self.sizes).index(axis)] in allowed for axis, allowed in allowed_coordinates.items()
            ):
                device = 0
                for coordinate, size in zip(coordinates, self.sizes.values(), strict=True):
                    device = device * size + coordinate
                ids.add(device)
        return frozenset(ids)

    @property
    def num_devices(self) -> int:
        return len(self.devices())


def make_row(
    n: Symbols,
    *,
    scope: str,
    kind: str,
    axis: str,
    executions: int,
    payload: int,
    formula: str,
    source: str,
    devices: frozenset[int] | None = None,
    carries: str = FLOATS,
    float_bytes: int | None = None,
    hops: int = 0,
    vocab: int = 0,
    sums: tuple[tuple[str, int], ...] = (),
    token_elements: int = 0,
    token_width: int = 0,
) -> ContractRow:
    """A row whose payload these devices send (`None`: all); its wire bytes are the mean over all devices."""
    num_devices = n.num_devices
    sending_share = Fraction(len(devices), num_devices) if devices is not None else Fraction(1)
    wire = payload * wire_factor(kind, n.size(axis)) * sending_share
    idle = n.size("pp") - 1
    return ContractRow(
        scope=scope,
        kind=kind,
        axes=axis,
        executions=executions,
        payload_bytes=payload,
        wire_bytes=round_half_up(wire),
        step_wire_bytes=round_half_up(wire * executions),
        formula=formula,
        source=source,
        network=n.networks[axis],
        carries=carries,
        float_bytes=n.b if float_bytes is None else float_bytes,
        devices=None if sending_share == 1 else devices,
        ticks=n.m + idle,
        idle_ticks=idle,
        hops=hops,
        vocab=vocab,
        sums=sums,
        token_elements=token_elements,
        token_width=token_width,
    )
