"""A checkpoint as Orbax keeps it, made once: `python -m jax_impl.convert --checkpoint DIR --out DIR`.

It belongs to no mesh: layers are one dim (with another of size 1 behind it), and no KV head has a copy.
`jax_impl.generate` restores it, sharded, onto any.  The host holds one weight at a time, all layers of it.  The folder
appears when all of it is written; one that is half there has another name, and does not load.
"""

import glob
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import gcd, prod
from pathlib import Path
from typing import Any

import numpy as np

from jax_impl.process.start import start
from meshes.case import Case
from meshes.checkpoint import Checkpoint
from meshes.checkpoint.converted import AGAIN, WEIGHTS, Converted, Weight, files_of, is_converted, write_table
from meshes.process import atomic_files
from meshes.process.command_line import Parser
from meshes.process.errors import MeshError
from meshes.process.last_word import claim_stderr, defer_stderr
from meshes.process.one_line import complain
from meshes.twins.prompts import Progress, print_result
from meshes.weights import WeightSpec, weights

CHUNK_BYTES = 2**25
"""The file's own parts, each of one layer and one expert: a shard is read without much that is not its own."""
CHUNK_DIMS = ("layers", "stages", "experts")

TEXT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def convert(folder: Path, out: Path) -> None:
    """Write OUT, weight by weight.  Raises `MeshError` where it is there already, or the checkpoint cannot be read."""
    if out.exists():
        raise MeshError(f"{out} is there already; name a folder that is not, or remove it")
    if is_converted(folder):
        raise MeshError(f"{folder} is converted already; give it to jax_impl.generate --checkpoint")
    checkpoint = Checkpoint.open(folder)
    if not (folder / "tokenizer.json").is_file():
        complain(f"note: {folder} has no tokenizer.json; what is made here cannot answer before it has")
    case, progress = _unsplit(checkpoint), Progress()
    with _whole(out) as partial:
        found = {}
        for spec in weights(case):
            progress.begin(f"convert {spec.name}")
            numbers = checkpoint.read(spec, tuple(slice(0, size) for size in spec.shape), case)
            found[spec.name] = _save(partial / WEIGHTS / spec.name, numbers, spec=spec, dtype=case.dtype)
        for name in TEXT:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, partial / name)
        write_table(partial, dtype=case.dtype, found=found)


def _unsplit(checkpoint: Checkpoint) -> Case:
    """The checkpoint's model on one device, in the narrowest dtype that keeps all of its numbers."""
    kept = {entry.dtype for entry in checkpoint.entries.values()}
    return Case.read("tp1", shapes=checkpoint.model, dtype="bf16" if kept == {"BF16"} else "f32")


def _save(path: Path, numbers: np.ndarray[Any, np.dtype[Any]], *, spec: WeightSpec, dtype: str) -> Weight:
    import jax.numpy as jnp
    import orbax.checkpoint as orbax

    stored = numbers.view(jnp.bfloat16) if dtype == "bf16" else numbers
    with orbax.PyTreeCheckpointer() as saver:
        single = tuple(at for at, dim in enumerate(spec.dims.split()) if dim in CHUNK_DIMS)
        parts = orbax.SaveArgs(chunk_byte_size=CHUNK_BYTES, shard_axes=single)
        saver.save(path.resolve(), {"weight": stored}, save_args={"weight": parts})
    return Weight(tuple(stored.shape), files_of(path))


@contextmanager
def _whole(out: Path) -> Iterator[Path]:
    """A folder beside OUT that becomes it at the end, or is removed; what a killed process left is removed, too."""
    name = f".{out.name}.partial-"

    def told(left: Path) -> bool:
        complain(f"removing {left}, which a conversion that was killed has left")
        return False

    try:
        with ExitStack() as stack:
            partial = stack.enter_context(atomic_files.new_folder(out.parent, name.__add__))
            atomic_files.sweep(out.parent, f"{glob.escape(name)}*", leave=told)
            leave = stack.pop_all()
    except OSError as error:
        raise MeshError(f"cannot make {out}: {error.strerror}; name a folder below one that can be written") from None
    with leave:
        yield partial
        partial.rename(out)


def restored(made: Converted, step: Any) -> Any:
    """The weights of a converted checkpoint, as the state of a `Step`: each device reads its part, in the case's dtype.

    No array is there twice, but a shard of KV heads that are copied.
    """
    from jax_impl.process.loading import make_weights

    specs = {spec.name: spec for spec in weights(step.layout.case)}
    return make_weights(step, lambda name, each: _restored(made.check(name), each, specs[name], step.layout))


def _restored(path: Path, each: Any, spec: WeightSpec, layout: Any) -> Any:
    import jax
    import jax.numpy as jnp

    from jax_impl.sharding.spec import named_sharding

    # All layers in a row, cut in stages, or a stage's layers, and stages beside: a device holds the same of either.
    dims = spec.dims.replace("layers stages", "stages _")
    copied = "kv_heads" in dims.split() and layout.case.kv_heads > layout.case.model.kv_heads
    kept = _without_copies(layout) if copied else layout
    found = _read(path, named_sharding(dims, case=kept.case, mesh=kept.mesh), each.dtype)
    places, shards = each.sharding.addressable_devices_indices_map(each.shape), []
    for shard in found.addressable_shards:
        at = dims.split().index("kv_heads") if copied else None
        own = None if at is None else _copied(places[shard.device][at], shard.index[at], layout)
        shards.append(shard.data if own is None else jnp.take(shard.data, own, axis=at))
    return jax.make_array_from_single_device_arrays(each.shape, each.sharding, shards)


def _read(path: Path, sharding: Any, dtype: Any) -> Any:
    import orbax.checkpoint as orbax

    with defer_stderr(), _restoring(path):
        kept = orbax.PyTreeCheckpointHandler().metadata(path.resolve())["weight"]
    # One shard at a time, or the host would hold those of all devices.  The limit must be above what is asked for.
    at_once = orbax.PyTreeCheckpointHandler(restore_concurrent_gb=(_most_bytes(kept, sharding) + 1) / 10**9)
    asked = orbax.args.PyTreeRestore(restore_args={"weight": orbax.ArrayRestoreArgs(sharding=sharding, dtype=dtype)})
    with defer_stderr(), _restoring(path), orbax.Checkpointer(at_once) as reader:
        return reader.restore(path.resolve(), asked)["weight"]


@contextmanager
def _restoring(path: Path) -> Iterator[None]:
    """What Orbax says of a damaged folder becomes one line; an error of any other kind is no damage, and stays."""
    try:
        yield
    except Exception as error:
        # What TensorStore says it wraps in an `Exception` of no class of its own.
        if type(error) is not Exception and not isinstance(error, (OSError, ValueError, KeyError)):
            raise
        # Shards that still wait are given up with Orbax's loop, and Python would tell of each on stderr.
        sys.unraisablehook = lambda _: None
        line = " ".join(str(error).partition(" See full")[0].split())[:200]
        raise MeshError(f"cannot restore {path}: {line}; {AGAIN}") from None


def _most_bytes(kept: Any, sharding: Any) -> int:
    """Of the file, what a shard's chunks hold: as Orbax counts it, chunks that are touched counting whole."""
    chunk, most = kept.storage.chunk_shape, 0
    for index in sharding.addressable_devices_indices_map(kept.shape).values():
        sides = (part.indices(size)[:2] for part, size in zip(index, kept.shape, strict=True))
        touched = [(-(-stop // own) - start // own) * own for (start, stop), own in zip(sides, chunk, strict=True)]
        most = max(most, prod(touched) * kept.dtype.itemsize)
    return most


def _without_copies(layout: Any) -> Any:
    """The same layout with `tp` only as many ways as it splits KV heads without copies, and an axis for the rest."""
    from jax.sharding import Mesh

    case, mesh = layout.case, layout.mesh
    ways = gcd(case.model.kv_heads, case.mesh.tp)
    return type(layout)(
        case, Mesh(mesh.devices.reshape(*mesh.devices.shape[:-1], ways, -1), (*mesh.axis_names, "copies"))
    )


def _copied(wanted: slice, there: slice, layout: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Which of the heads that a device has read it holds, in order, copies beside each other."""
    case = layout.case
    copies = case.kv_heads // case.model.kv_heads
    return np.arange(*wanted.indices(case.kv_heads)) // copies - (there.start or 0)


def main(argv: list[str]) -> int:
    parser = Parser(
        prog="python -m jax_impl.convert",
        description="A Hugging Face checkpoint as Orbax keeps it, for any mesh.",
        epilog="example: python -m jax_impl.convert --checkpoint DIR --out DIR",
    )
    parser.add_argument("--checkpoint", metavar="DIR", type=Path, required=True, help="Hugging Face's folder")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="what is made")
    asked = parser.parse_args(argv)

    def work() -> str:
        start(num_devices=1)  # Orbax asks JAX for its devices
        convert(asked.checkpoint, asked.out)
        return str(asked.out)

    return print_result(work)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
