"""The data of each collective: its scope, its sources, its consumers."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from compare.hlo.counts.execution_counts import Site, is_collective
from compare.hlo.dataflow.dataflow import CallContext, Value, consumers_of, inputs_of, leads_to, step_through, walk
from compare.hlo.emission import megascale
from compare.hlo.emission.emission_form import kind_of
from compare.hlo.provenance.layout_passthrough import LoopControl, count_hops, moves_data, trace_sources, zero_elsewhere
from compare.hlo.provenance.result_use import PRODUCTS, ResultUse
from compare.hlo.provenance.scope_recovery import ScopeRecovery, trace_scope
from compare.hlo.text.instruction import Instruction
from compare.hlo.text.metadata import Frame, SourceMetadata, SourceNames
from compare.hlo.text.module import Module


@dataclass(frozen=True, slots=True)
class OperandProvenance:
    """One operand of a collective."""

    scope: str
    parameters: frozenset[int]
    constant: bool
    steers_loop: bool


@dataclass(frozen=True, slots=True)
class Names:
    """The framework's path and the source line of a collective."""

    op_name: str
    stack: tuple[Frame, ...]
    """Of its source line, innermost first."""
    inferred: tuple[str, ...]
    """Those of `op_name`, `source_line` and `scope` that were inferred from the nearest instruction."""

    @property
    def source_line(self) -> str | None:
        return self.stack[0].place if self.stack else None


_ESCAPED = re.compile(r"\\(.)")
_OF_ALL = ("all-gather", "all-to-all")
"""Kinds that bring a part of each member."""
_EXCHANGES = ("all-to-all", "collective-permute")
"""Kinds that bring parts of other members' results to the one that they are for."""


class Provenance:
    """Dataflow of one module.

    parts: for an instruction that only carries a collective on, or receives it, the one that is its row.
    """

    def __init__(
        self,
        module: Module,
        *,
        parts: Mapping[Instruction, Instruction],
        caches: frozenset[int],
        weights: frozenset[int] = frozenset(),
        names: SourceNames | None = None,
    ):
        self._module, self._parts, self._caches, self._weights = module, parts, caches, weights
        self._metadata = SourceMetadata(module, names)
        self._entry = CallContext(module.entry)
        self._received_by = {send: item for item, send in parts.items() if item.opcode == "recv"}
        self._recovery = ScopeRecovery(self._metadata, back=self._made_of, on=self._used_by, is_own=self._is_own)
        self._steering = LoopControl(self._row_of, has_loops=" while(" in module.text)
        self._use = ResultUse(self._metadata, used_by=self._used_by, row_of=self._row_of)
        self._from_parameters: dict[Value, bool] = {}
        self._from_others: dict[Value, bool] = {}
        self._into_products: dict[str, dict[Value, bool]] = {}

    def frames(self, site: Site) -> tuple[CallContext, ...]:
        """Its call contexts; an uncalled computation is analysed by itself."""
        return site.frames or (CallContext(site.item.computation),)

    def names(self, site: Site, *, kind: str, scope: str) -> Names:
        """Its own `op_name` and line, or those of the fusions and calls that only wrap it, or the nearest ones.

        A sum belongs to the producers of its parts; a collective that only moves data, to its consumers.
        """
        frame = self.frames(site)[0]
        value: Value = (frame, site.item, ())
        made_from = [(frame, operand, ()) for operand in site.item.operands]
        # An all-reduce is wanted by the matmul whose parts it adds, a gather of weights by the matmul that reads them:
        # a sum takes the nearest name before it, `jit(f)/loss/dot`, and a gather the nearest after it,
        # `jit(f)/update/mul`.
        moves = kind not in ("all-reduce", "reduce-scatter")
        # A fused reduce-scatter has no name of its own inside of its fusion; the fusion has it:
        #   fusion(%fusion.1), …, calls=%all-reduce-scatter, metadata={op_name="jit(mlp)/dot_general" …}
        path = next(filter(None, map(self._metadata.path, self._wrapped(site))), None)
        stack = next(filter(None, map(self._metadata.stack, self._wrapped(site))), ())
        has = [self._own(site) is not None or scope == "?", path is not None, bool(stack)]
        # A barrier of the compiler reduces a constant, `b = u32[1]{0} broadcast(o), dimensions={}`; who uses its result
        # next did not ask for it.
        if path is None and self.from_parameters(site):  # else it is the compiler's, and has no name
            line = stack[0].place if stack else None
            path = self._recovery.path(value, made_from, line=line, consumers_first=moves)
        if not stack and (scope != "?" or path):
            stack = self._recovery.stack(value, made_from, scope=scope, consumers_first=moves)
        columns = zip(("scope", "op_name", "source_line"), has, (scope, path, stack), strict=True)
        return Names(path or "", stack, tuple(name for name, is_own, found in columns if found and not is_own))

    def names_of_part(self, site: Site, number: int) -> tuple[str, str | None]:
        """Path and source line of operand `number` of several: XLA leaves them where the result is taken apart."""
        for value in self._results_of(site, number):
            for _, item, _ in self._used_by(value):
                if item.opcode == "get-tuple-element" and (path := self._metadata.path(item)):
                    return path, self._metadata.source_line(item)
        return "", None

    def scope(self, site: Site, wanted: frozenset[str], *, joined: frozenset[str] = frozenset()) -> str:
        """Its own, or that of what wraps it, or the nearest one.

        wanted: of those found elsewhere, these before others; joined: of those in one name.
        """
        if scope := self._own(site, joined):
            return scope
        frame = self.frames(site)[0]
        made_from = [(frame, operand, ()) for operand in site.item.operands]
        return self._recovery.nearest((frame, site.item, ()), made_from, wanted=wanted) or "?"

    def scope_of_compute(self, frame: CallContext, item: Instruction) -> str:
        """Of an instruction that is no collective: its own, or that of a call around it; of a fusion else that of its
        product, or of the last of its instructions that has one; else the nearest.  Empty where there is none."""
        site = Site(item, (frame,), (), (), "exact", in_exact_branch=False)
        if scope := self._own(site) or self._inside(item):
            return scope
        made_from = [(frame, part, ()) for part in item.operands]
        return self._recovery.nearest((frame, item, ()), made_from, wanted=frozenset()) or ""

    def _inside(self, item: Instruction) -> str | None:
        """The scope of what a fusion computes."""
        parts = list(item.callees[0]) if item.opcode == "fusion" and item.callees else []
        parts.sort(key=lambda part: (part.opcode in PRODUCTS, part.index), reverse=True)
        return next((scope for part in parts if (scope := self._metadata.scope(part))), None)

    def _own(self, site: Site, joined: frozenset[str] = frozenset()) -> str | None:
        """The scope in its own `op_name`, or in that of a fusion or call around it."""
        scopes = (self._metadata.scope_among(item, joined) for item in self._wrapped(site))
        return next((scope for scope in scopes if scope), None)

    def _producers(self, value: Value) -> str | None:
        """The scope of the instruction that computes a value, behind pass-through instructions."""
        seen: set[Value] = set()
        while value not in seen:
            seen.add(value)
            if (item := trace_scope(value)) and (scope := self._metadata.scope(item)):
                return scope
            before = step_through(value)
            if before is None or len(before) != 1:
                return None
            (value,) = before
        return None

    def _wrapped(self, site: Site) -> Iterator[Instruction]:
        """The collective, then the fusions and calls around it, up to a loop or branch."""
        yield site.item
        for frame in reversed(self.frames(site)[0].chain):
            # The name of a loop, `jit(decode)/while`, is that of all that it runs.
            if frame.call is None or frame.call.opcode in ("while", "conditional"):
                return
            yield frame.call

    def operand(self, site: Site, number: int, *, scope: str | None, wanted: frozenset[str]) -> OperandProvenance:
        """Operand `number`; `scope` is given for the only one, which shares its row's."""
        starts: list[Value] = [(frame, site.item.operand(number), ()) for frame in self.frames(site)]
        sources = trace_sources(starts, caches=self._caches)
        parameters = sources.parameters
        if any(map(moves_data, sources.made_by)):  # weights that were moved before are weights
            parameters = trace_sources(starts, caches=self._caches, moves=True).parameters
        if scope is None:
            result: Value = (starts[0][0], site.item, _result_path(site.item, number))
            scope = self._producers(starts[0])
            if not scope and not sources.parameters:  # an argument has no producer: its scope is that of its users
                scope = self._own(site)
            scope = scope or self._recovery.nearest(result, starts[:1], wanted=wanted) or self._own(site) or "?"
        steers = self._steering.steers(site.item, self.frames(site), sources.passed)
        return OperandProvenance(scope, parameters, sources.constant, steers)

    def name_arguments(self, parameters: Set[int]) -> tuple[str, ...]:
        """The names of these ENTRY parameters, as the framework has them; nothing for one without."""
        names = (self._module.entry.parameters[number].op_name for number in sorted(parameters))
        return tuple(_ESCAPED.sub(r"\1", name) for name in names if name)

    def from_parameters(self, site: Site) -> bool:
        """True if it depends on an ENTRY parameter."""
        return any(self._reached((frame, operand, ())) for frame in self.frames(site) for operand in site.item.operands)

    def is_of_weights(self, site: Site, number: int) -> bool:
        """Whether operand `number` is computed from weights, and from no other ENTRY parameter."""
        if not self._weights:
            return False
        values: list[Value] = [(frame, site.item.operand(number), ()) for frame in self.frames(site)]
        return any(map(self._reached, values)) and not any(map(self._reached_from_others, values))

    def _reached(self, start: Value) -> bool:
        """Whether an ENTRY parameter reaches a value."""
        return leads_to(start, _is_argument, self._made_of, self._from_parameters)

    def _reached_from_others(self, start: Value) -> bool:
        """Whether an ENTRY parameter that is no weight does."""

        def is_other(value: Value) -> bool:
            return _is_argument(value) and value[1].integer("") not in self._weights

        return leads_to(start, is_other, self._made_of, self._from_others)

    def _is_own(self, value: Value) -> bool:
        """True if it depends on a program argument; in an uncalled computation, on anything."""
        return not value[0].chain[0].computation.is_entry or self._reached(value)

    def _made_of(self, value: Value) -> list[Value]:
        """The inputs of a value; of a receive, the operand of its send."""
        frame, item, _ = value
        if item.opcode == "recv" and item in self._parts:
            return [(frame, self._parts[item].operand(0), ())]
        return inputs_of(value)

    def _used_by(self, value: Value) -> Iterator[Value]:
        """The consumers of a value; of a send's operand, those of its receive."""
        frame, item, _ = value
        if item in self._received_by:
            yield frame, self._received_by[item], ()
        else:
            yield from consumers_of(value)

    @cached_property
    def _results(self) -> frozenset[Instruction]:
        """The collectives whose result reaches ENTRY's root through layout-only instructions."""
        root: Value = (self._entry, self._module.entry.root, ())
        return self._rows(trace_sources([root], updates=False).made_by)

    def _rows(self, made_by: frozenset[Instruction]) -> frozenset[Instruction]:
        return frozenset(self._row_of(item) for item in made_by)

    def _row_of(self, item: Instruction) -> Instruction:
        """The row of an instruction; of an asynchronous end, the row of its start."""
        # `ROOT end = f32[32]{0} custom-call(q3, b3, ag3), custom_call_target="AsyncCollectiveDone"`: its third operand
        # repeats the gather that the chain began.
        if item.target == "AsyncCollectiveDone":
            item = next((operand for operand in item.operands if operand in self._parts), item)
        return self._parts.get(item, item)

    def reaches_root(self, site: Site) -> bool:
        return site.item in self._results

    def gathers(self, site: Site) -> str | None:
        """The reduce-scatter whose result it carries; None without one."""
        starts = [(frame, operand, ()) for frame in self.frames(site) for operand in site.item.operands]
        makers = self._rows(trace_sources(starts, updates=False).made_by)
        return next((item.name for item in sorted(makers, key=lambda maker: maker.index) if _scatters(item)), None)

    def feeds_product(self, site: Site, number: int, scope: str, *, kind: str) -> bool:
        """Whether what operand `number` becomes is an operand of a product of this scope; of a sum, where it gathers.

        Only what has no product and no other collective between counts, inside fusions by their own parameters.
        """
        if kind == "all-reduce" and not self.zero_elsewhere(site, number):
            return False
        return any(self._feeds(value, scope, site.item) for value in self._results_of(site, number))

    def _results_of(self, site: Site, number: int) -> list[Value]:
        """What operand `number` becomes, in each call context."""
        path = _result_path(site.item, number) if site.item.has(_result_path(site.item, number)) else ()
        return [(frame, site.item, path) for frame in self.frames(site)]

    def is_added_up(self, site: Site, number: int, scope: str, *, kind: str, parts: int) -> bool:
        """Whether what operand `number` becomes, as parts of several members or another's, is added up where it comes.

        parts: how many it has; of a permute and of each array of an exchange in several one.
        """
        results = self._results_of(site, number)
        if kind in _OF_ALL and self._use.added_up(results, parts=parts):
            return True
        return kind in _EXCHANGES and self._use.added_to_another(results, scope, parts=parts)

    def steps_to_end(self, site: Site, number: int, scope: str) -> int | None:
        """How far what operand `number` becomes is from the end of its scope."""
        return self._use.steps_to_end(self._results_of(site, number), scope)

    def earlier_hops(self, site: Site, number: int) -> int | None:
        """How many permutes the data of operand `number` has come through; None where a loop carries it around."""
        return count_hops((self.frames(site)[0], site.item.operand(number), ()), hop=site.item)

    def zero_elsewhere(self, site: Site, number: int) -> bool:
        """True for a sum whose operand is, on each device, zero outside a part of its own."""
        return zero_elsewhere((self.frames(site)[0], site.item.operand(number), ()))

    def _feeds(self, start: Value, scope: str, instruction: Instruction) -> bool:
        def step(value: Value) -> Iterator[Value]:
            return (after for after in self._used_by(value) if self._goes_on(after, scope, instruction))

        known = self._into_products.setdefault(scope, {})
        return leads_to(start, lambda value: value[1].opcode in PRODUCTS, step, known)

    def _goes_on(self, value: Value, scope: str, instruction: Instruction) -> bool:
        """Past no collective but the rest of its own, and to no product but those of the scope."""
        _, item, _ = value
        if is_collective(item):
            return self._row_of(item) is instruction
        return item.opcode not in PRODUCTS or self._scope_of_product(value) == scope

    def _scope_of_product(self, value: Value) -> str | None:
        """Its own path, else that of the fusion or call around it."""
        frame, item, _ = value
        if scope := self._metadata.scope(item):
            return scope
        calls = (context.call for context in reversed(frame.chain) if context.call is not None)
        wrapping = takewhile(lambda call: call.opcode not in ("while", "conditional"), calls)
        return next((scope for call in wrapping if (scope := self._metadata.scope(call))), None)

    def scattered_by(self, site: Site, scatters: Set[Instruction]) -> tuple[str, ...]:
        """The `scatters` that its operands derive from, with no matmul and no other collective between.

        Of a permute, other permutes may be: it hands on what those brought.
        """
        is_hop = kind_of(site.item) == "collective-permute"

        def step(value: Value) -> list[Value]:
            item = value[1]
            if is_collective(item):
                made_by = self._row_of(item)
                if made_by in scatters or not is_hop or kind_of(made_by) != "collective-permute":
                    return []
            return [] if item.opcode in PRODUCTS else self._made_of(value)

        starts: list[Value] = [(frame, operand, ()) for frame in self.frames(site) for operand in site.item.operands]
        reached = {self._row_of(item) for _, item, _ in walk(starts, step) if is_collective(item)} & scatters
        return tuple(item.name for item in sorted(reached, key=lambda source: source.index))


def _is_argument(value: Value) -> bool:
    frame, item, _ = value
    return item.opcode == "parameter" and frame.call is None and frame.computation.is_entry


def _result_path(item: Instruction, number: int) -> tuple[int, ...]:
    """The path of operand `number`'s result; of a start, inside the second element of its tuple."""
    beside = (1, number)
    return beside if item.opcode.endswith("-start") and item.has(beside) else (number,)


def _scatters(item: Instruction) -> bool:
    if megascale.is_megascale(item):
        return megascale.kind_of(item) == "reduce-scatter"
    return item.opcode.startswith(("all-reduce", "reduce-scatter")) and kind_of(item) == "reduce-scatter"
