"""The contract of a case in Python: `from compare import contract_rows` (docs/own_program.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from compare.contract.reference_algorithms import required_rows
from compare.contract.row import ContractRow, JudgeError
from compare.contract.weight_rows import DATA, weight_rows
from compare.diff.own.show import print_to_text
from compare.render.report.plan_tables import print_plan
from compare.report.plan import plan, served_row
from meshes.case import Case
from meshes.checkpoint import read_shapes
from meshes.choices import CAPACITY

if TYPE_CHECKING:
    import pandas as pd  # takes longer to load than a program takes to read

MODEL = "llama-3.1-8b"


@dataclass(frozen=True)
class CaseContract:
    """The contract of one phase of a case: a sequence of `ContractRow`."""

    case: Case
    rows: tuple[ContractRow, ...]
    weights_over: str = ""
    """The axis over which the weights are split, as the program calls it; empty: every member has them whole."""

    @property
    def axes(self) -> Mapping[str, int]:
        """The axes that the mesh splits, outermost first."""
        named = {DATA: self.weights_over} if self.weights_over else {}
        return {named.get(axis, axis): size for axis, size in self.case.mesh.split_axes.items()}

    def with_weights_over(self, axis: str) -> "CaseContract":
        """The same of a plan that splits its weights over dp, which the program calls `axis`.  `JudgeError` without
        dp."""
        if axis in self.case.mesh.split_axes and axis != DATA:
            raise JudgeError(
                f"weights_over is {axis!r}, over which the plan splits matrices by itself; write {DATA!r}, or what "
                f"your mesh calls it, like 'fsdp'"
            )
        return replace(self, rows=(*self.rows, *weight_rows(self.case, axis=axis)), weights_over=axis)

    @property
    def step_wire_bytes(self) -> int:
        """Of one step, mean over devices."""
        return sum(row.step_wire_bytes for row in self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[ContractRow]:
        return iter(self.rows)

    def __getitem__(self, number: int) -> ContractRow:
        return self.rows[number]

    def to_pandas(self) -> "pd.DataFrame":
        """One line for each row, as `compare.plan --json` has them."""
        import pandas as pd

        frame = pd.DataFrame([asdict(served_row(row)) for row in self.rows])
        return frame.drop(columns=["served_bytes", "unserved_bytes"], errors="ignore")

    def __str__(self) -> str:
        of_case = plan(self.case)
        shown = replace(
            of_case.phases[self.case.phase], inherent=tuple(map(served_row, self.rows)), total=self.step_wire_bytes
        )
        return print_to_text(lambda out: print_plan(replace(of_case, phases={self.case.phase: shown}), out=out))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.to_pandas().to_html(index=False)


def contract_rows(
    mesh: str,
    *,
    model: str | None = None,
    checkpoint: str | Path | None = None,
    phase: str = "decode",
    batch: int = 8,
    seq: int = 1024,
    microbatches: int | None = None,
    capacity: float | None = CAPACITY,
    dtype: str = "bf16",
    weights_over: str = "",
) -> CaseContract:
    """The contract of a step of these shapes on this mesh: the rows that `python -m compare.plan` prints.

    mesh: like `dp2tp4`, or a TOML spec file.  model: a preset (default llama-3.1-8b); or `checkpoint`, a Hugging Face
        folder whose config.json has the shapes.
    phase: `prefill` or `decode`.  batch: sequences, of all devices.  seq: tokens of a prompt, or in the cache.
    weights_over: the axis over which each weight is split to store less of it (FSDP, ZeRO-3): `dp`, or what your mesh
        calls it, like `fsdp`.  The contract then has an all-gather of each layer's weights.
    microbatches: default 4 with a pipeline, else 1.  capacity: of an expert; None drops no token.
    Raises `ValueError`, one line, if the case is impossible.
    """
    if model is not None and checkpoint is not None:
        raise JudgeError(f"the shapes are named twice, by model={model!r} and by checkpoint={str(checkpoint)!r}")
    words = {"mesh": mesh, "model": MODEL if model is None else model, "phase": phase, "weights_over": weights_over}
    for name, value in words.items():
        if not isinstance(value, str):
            raise JudgeError(f"{name} is {value!r}; write text, like contract_rows('dp2tp4', phase='decode')")
    if checkpoint is not None and not isinstance(checkpoint, str | Path):
        raise JudgeError(f"checkpoint is {checkpoint!r}; write the path of a folder")
    if capacity is not None and (isinstance(capacity, bool) or not isinstance(capacity, int | float)):
        raise JudgeError(f"capacity is {capacity!r}; write a factor like 1.25, or None")
    shapes = None if checkpoint is None else read_shapes(Path(checkpoint))
    case = Case.read(
        mesh,
        model_name=MODEL if model is None else model,
        shapes=shapes.model if shapes else None,
        microbatches=microbatches,
        phases=(phase,),
        batch=batch,
        seq=seq,
        capacity=capacity,
        dtype=dtype,
    )
    if shapes:
        shapes.check_context(case.mesh.cp)
    contract = CaseContract(case, required_rows(case))
    return contract.with_weights_over(weights_over) if weights_over else contract
