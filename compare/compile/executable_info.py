"""Read a compiled executable: memory, cost, text, and which device runs which partition."""

from collections.abc import Sequence

from jaxlib import _hlo, _jax, xla_client

from compare.hlo.proto.program import read_device_assignment


def read_memory(executable: _jax.Executable) -> dict[str, int | None]:
    """Bytes of one device."""
    stats = executable.get_compiled_memory_stats()
    return {
        "argument_bytes": stats.argument_size_in_bytes,
        "output_bytes": stats.output_size_in_bytes,
        "temp_bytes": stats.temp_size_in_bytes,
        "alias_bytes": stats.alias_size_in_bytes,
        "generated_code_bytes": stats.generated_code_size_in_bytes,
        "peak_bytes": getattr(stats, "peak_memory_in_bytes", None) or None,
    }


def estimate_cost(executable: _jax.Executable) -> dict[str, float | str | None]:
    """libtpu's model of one device: an estimate, never a measurement, and of a program with loops *not* of a step.

    It counts each loop's body once, however often it runs (a scan of 2 and of 64 matmuls cost the same: tested), which
    `loop_bodies` says.  `optimal_s` comes out negative for some programs with loops, for a reason that was not found:
    that is no time, and reads null.
    """
    analysis = executable.cost_analysis()
    optimal_s = analysis.get("optimal_seconds")
    return {
        "flops": analysis.get("flops"),
        "bytes_accessed": analysis.get("bytes accessed"),
        "optimal_s": None if optimal_s is None or optimal_s < 0 else optimal_s,
        "loop_bodies": "counted once",
    }


def list_chosen_shardings(executable: _jax.Executable, *, is_open: Sequence[bool]) -> dict[int, str]:
    """Number of a result -> its sharding, in XLA's spelling, of those that the program leaves open and that are split.

    is_open: of each result, whether it is.
    """
    found = [repr(xla_client.HloSharding.from_proto(each)) for each in executable.get_output_shardings() or ()]
    together = zip(found, is_open, strict=False)  # one tuple of all, where a program came with another result
    return {number: text for number, (text, chosen) in enumerate(together) if chosen and text != "{replicated}"}


def read_device_ids(module: _hlo.HloModule) -> list[int]:
    """The device id that runs partition 0, 1, …, as the compiled module holds it (its text does not show it)."""
    return list(read_device_assignment(module.as_serialized_hlo_module_proto()))


def strip_folders(text: str, prefixes: Sequence[str]) -> str:
    """HLO text with these folders taken off its source paths, so that it can be mailed and committed.

    Paths are in the `FileNames` table; older spellings have `source_file="…"` beside each instruction.
    """
    folders = sorted({prefix.rstrip("/") + "/" for prefix in prefixes if prefix.strip("/")}, key=len, reverse=True)
    start = text.find("\nFileNames\n")
    end = text.find("\n\n", start) if start >= 0 else start
    table, rest = text[:end], text[end:]
    for folder in folders:
        table = table.replace(f'"{folder}', '"')
        rest = rest.replace(f'source_file="{folder}', 'source_file="')
    return table + rest
