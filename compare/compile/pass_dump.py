"""libtpu's dumps of a program between its passes: the flags that request them, and the archive that they go into.

The flags are options of this one compile; the user's environment is left as it is.
"""

import os
from collections.abc import Callable
from pathlib import Path

from compare.compile import op_names
from compare.compile.requests import CompileRequest
from compare.passes import archive

PASSES = (
    "shardy-xla",
    "tpu-spmd-partitioning",  # shardings become collectives
    "split-ici-dcn",
    "cross-slice-rewrites",  # those over several slices
    "all-reduce-combiner",
    "tpu-all-gather-combiner",
    "collective-permute-combiner",
    "bfloat16-propagation",  # narrows what is carried
    "all-gather-bcast-reorder",  # gathers what is not yet repeated
    "reduce-scatter-decomposer",
    "tpu-all-reduce-scatter-fusion",
    "tpu_async_collective_creator",
    "async-collective-fusion",
    "async-collective-merger",
    "sparse-core-collective-offload",
)
"""Those of libtpu's passes that make, merge, split or replace collectives: the text before and after each."""


def dump_flags(folder: Path, *, all_of_them: bool) -> list[tuple[str, str]]:
    """Options that have the texts written into a folder: of all these passes, or only what names are restored from."""
    wanted = "|".join(PASSES) if all_of_them else op_names.PASS
    return [("xla_dump_to", str(folder)), ("xla_dump_hlo_pass_re", wanted), ("xla_dump_hlo_as_text", "True")]


def needs_dump(request: CompileRequest) -> bool:
    """True if texts are needed: for the lineage, or because libtpu drops names.

    False where the user's XLA_FLAGS request a dump: a compile has one dump folder, and theirs is kept.
    """
    return bool(request["passes"] or request["num_slices"] > 1) and not _user_dumps()


def pack_dump(folder: Path, *, strip: Callable[[str], str]) -> tuple[bytes, str]:
    """The archive of the dumped texts, and the reason where there is none: one of the two is empty."""
    if _user_dumps():
        return b"", "XLA_FLAGS has xla_dump_to: its folder has them"
    packed = archive.pack(folder, strip=strip)
    return packed, "" if packed else "libtpu wrote no text of them"


def _user_dumps() -> bool:
    return "xla_dump_to" in os.environ.get("XLA_FLAGS", "")
