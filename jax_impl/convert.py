"""Convert a Hugging Face checkpoint to Orbax, once: `python -m jax_impl.convert --checkpoint DIR --out DIR`.

The result belongs to no mesh: layers are one dim (followed by one of size 1), and KV heads are not copied.
`jax_impl.generate` restores it, sharded, onto any mesh.  The host holds one weight at a time, with all of its layers.
The folder appears once it is complete: a partial one has another name, and does not load.
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
from meshes.checkpoint.converted import AGAIN, WEIGHTS, ConvertedCheckpoint, Weight, files_of, is_converted, write_table
from meshes.process import atomic_files
from meshes.process.command_line import Parser
from meshes.process.errors import MeshError
from meshes.process.last_word import claim_stderr, defer_stderr
from meshes.process.log import complain, log_note
from meshes.twins.prompts import Progress, print_result
from meshes.weights import WeightSpec, weights

CHUNK_BYTES = 2**25
"""Chunks of the file, each of one layer and one expert, so that a shard reads little beyond itself."""
CHUNK_DIMS = ("layers", "stages", "experts")

TEXT = ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def convert(folder: Path, out: Path) -> None:
    """Write OUT, weight by weight.  Raises `MeshError` where OUT exists, or the checkpoint cannot be read."""
    if out.exists():
        raise MeshError(f"{out} exists already; remove it, or name another folder")
    if is_converted(folder):
        raise MeshError(f"{folder} is converted already; pass it to jax_impl.generate --checkpoint")
    checkpoint = Checkpoint.open(folder)
    if not (folder / "tokenizer.json").is_file():
        log_note(f"{folder} has no tokenizer.json; copy one into {out} before generating from it")
    case, progress = _unsplit(checkpoint), Progress()
    with _new_folder(out) as partial:
        table = {}
        for spec in weights(case):
            progress.begin(f"convert {spec.name}")
            numbers = checkpoint.read(spec, tuple(slice(0, size) for size in spec.shape), case)
            table[spec.name] = _save(partial / WEIGHTS / spec.name, numbers, spec=spec, dtype=case.dtype)
        for name in TEXT:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, partial / name)
        write_table(partial, dtype=case.dtype, table=table)


def _unsplit(checkpoint: Checkpoint) -> Case:
    """The checkpoint's model on one device, in the narrowest dtype that keeps all of its numbers."""
    dtypes = {entry.dtype for entry in checkpoint.entries.values()}
    return Case.read("tp1", shapes=checkpoint.model, dtype="bf16" if dtypes == {"BF16"} else "f32")


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
def _new_folder(out: Path) -> Iterator[Path]:
    """A folder beside OUT that is renamed to it at the end, or removed; those of killed processes are removed, too."""
    name = f".{out.name}.partial-"

    def report(left: Path) -> bool:
        complain(f"removing {left}, left behind by an interrupted conversion")
        return False

    try:
        with ExitStack() as stack:
            partial = stack.enter_context(atomic_files.new_folder(out.parent, name.__add__))
            atomic_files.remove_leftovers(out.parent, f"{glob.escape(name)}*", leave=report)
            leave = stack.pop_all()
    except OSError as error:
        raise MeshError(f"cannot create {out}: {error.strerror}; name a folder that can be written to") from None
    with leave:
        yield partial
        partial.rename(out)


def restore_weights(converted: ConvertedCheckpoint, step: Any) -> Any:
    """The weights of a converted checkpoint, as the state of a `Step`: each device reads its part, in the case's dtype.

    Memory holds no array twice, except a shard of KV heads that are copied.
    """
    from jax_impl.process.loading import make_weights

    specs = {spec.name: spec for spec in weights(step.layout.case)}
    return make_weights(step, lambda name, each: _restore(converted.check(name), each, specs[name], step.layout))


def _restore(path: Path, each: Any, spec: WeightSpec, layout: Any) -> Any:
    import jax
    import jax.numpy as jnp

    from jax_impl.sharding.spec import named_sharding

    # Cut in stages, all layers in a row give a device the same as [layers of a stage, stages] does.
    dims = spec.dims.replace("layers stages", "stages _")
    copied = "kv_heads" in dims.split() and layout.case.kv_heads > layout.case.model.kv_heads
    stored = _without_copies(layout) if copied else layout
    array = _read(path, named_sharding(dims, case=stored.case, mesh=stored.mesh), each.dtype)
    places, shards = each.sharding.addressable_devices_indices_map(each.shape), []
    for shard in array.addressable_shards:
        at = dims.split().index("kv_heads") if copied else None
        heads = None if at is None else _source_heads(places[shard.device][at], shard.index[at], layout)
        shards.append(shard.data if heads is None else jnp.take(shard.data, heads, axis=at))
    return jax.make_array_from_single_device_arrays(each.shape, each.sharding, shards)


def _read(path: Path, sharding: Any, dtype: Any) -> Any:
    import orbax.checkpoint as orbax

    with defer_stderr(), _restoring(path):
        stored = orbax.PyTreeCheckpointHandler().metadata(path.resolve())["weight"]
    # One shard at a time, else the host holds those of all devices.  The limit must exceed what a shard needs.
    at_once = orbax.PyTreeCheckpointHandler(restore_concurrent_gb=(_most_bytes(stored, sharding) + 1) / 10**9)
    arguments = orbax.args.PyTreeRestore(
        restore_args={"weight": orbax.ArrayRestoreArgs(sharding=sharding, dtype=dtype)}
    )
    with defer_stderr(), _restoring(path), orbax.Checkpointer(at_once) as reader:
        return reader.restore(path.resolve(), arguments)["weight"]


@contextmanager
def _restoring(path: Path) -> Iterator[None]:
    """Turn what Orbax raises on a damaged folder into one line; errors of other kinds pass."""
    try:
        yield
    except Exception as error:
        # Orbax wraps what TensorStore raises in a bare `Exception`.
        if type(error) is not Exception and not isinstance(error, (OSError, ValueError, KeyError)):
            raise
        # Orbax drops the shards that are still queued, and Python would report each on stderr.
        sys.unraisablehook = lambda _: None
        line = " ".join(str(error).partition(" See full")[0].split())[:200]
        raise MeshError(f"cannot restore {path}: {line}; {AGAIN}") from None


def _most_bytes(stored: Any, sharding: Any) -> int:
    """Bytes of the file that the largest shard reads, as Orbax counts them: every chunk that it touches, in full."""
    chunk, most = stored.storage.chunk_shape, 0
    for index in sharding.addressable_devices_indices_map(stored.shape).values():
        sides = (part.indices(size)[:2] for part, size in zip(index, stored.shape, strict=True))
        touched = [(-(-stop // side) - start // side) * side for (start, stop), side in zip(sides, chunk, strict=True)]
        most = max(most, prod(touched) * stored.dtype.itemsize)
    return most


def _without_copies(layout: Any) -> Any:
    """The same layout, `tp` as large as it can be without copies of KV heads, and an axis for the rest."""
    from jax.sharding import Mesh

    case, mesh = layout.case, layout.mesh
    ways = gcd(case.model.kv_heads, case.mesh.tp)
    return type(layout)(
        case, Mesh(mesh.devices.reshape(*mesh.devices.shape[:-1], ways, -1), (*mesh.axis_names, "copies"))
    )


def _source_heads(wanted: slice, stored: slice, layout: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each head of a device, the index of its source among the heads read; copies are adjacent."""
    case = layout.case
    copies = case.kv_heads // case.model.kv_heads
    return np.arange(*wanted.indices(case.kv_heads)) // copies - (stored.start or 0)


def main(argv: list[str]) -> int:
    parser = Parser(
        prog="python -m jax_impl.convert",
        description="Convert a Hugging Face checkpoint to Orbax, for any mesh.",
        epilog="example: python -m jax_impl.convert --checkpoint DIR --out DIR",
    )
    parser.add_argument(
        "--checkpoint", metavar="DIR", type=Path, required=True, help="the Hugging Face checkpoint folder"
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="the folder to create")
    options = parser.parse_args(argv)

    def work() -> str:
        start(num_devices=1)  # Orbax asks JAX for its devices
        convert(options.checkpoint, options.out)
        return str(options.out)

    return print_result(work)


if __name__ == "__main__":
    claim_stderr()
    sys.exit(main(sys.argv[1:]))
