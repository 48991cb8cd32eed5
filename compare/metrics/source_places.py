"""Where an operation of a profile comes from: a line of source, and a part of the model."""

import re
from functools import lru_cache

from compare.hlo.text.metadata import SourceNames

UNKNOWN = "?"
_NAMES = SourceNames()
_COLUMN = re.compile(r"(:\d+):\d+$")
_AROUND = re.compile(r"(?:jvp|transpose|vmap|pmap|checkpoint|remat\w*|custom_[jv]vp\w*)\((.*)\)")
_WITHOUT_NAME = re.compile(
    r"p?jit\(.*\)|jit|pjit|main|shard_map|while|body|cond|branch_\d+_fun|scan|closed_call|core_call|checkpoint|remat\d*|"
    r"rematted_computation|custom_[jv]vp_call\w*|"
)
"""Parts of a framework's path that are none of a model's: what traces, loops and differentiates."""
_LAYER = re.compile(r"(?<=[./\[])\d+(?=[./\]]|$)|(?<=layer_)\d+|(?<=layers_)\d+|(?<=block_)\d+|(?<=blocks_)\d+")
_INSTALLED = re.compile(r"^.*/(?:site|dist)-packages/")
_SHOWN = 4


@lru_cache(maxsize=1 << 14)
def find_line(source: str, stack: str) -> tuple[str, str]:
    """(the innermost line of the user's own files, the innermost of all where that is another).

    source: `file:line`, the innermost; stack: `file:line:column` a line, innermost first or last: both are written.
    In an installed package every layer has the same line: `torch/nn/modules/module.py:1775` tells none from another.
    """
    frames = [_COLUMN.sub(r"\1", frame.strip()) for frame in stack.splitlines() if frame.strip()]
    if frames and frames[-1] == source:
        frames.reverse()
    frames = frames or ([source] if source else [])
    if not frames:
        return UNKNOWN, ""
    users = next((frame for frame in frames if _NAMES.is_users(frame.rpartition(":")[0])), frames[0])
    return users, frames[0] if frames[0] != users else ""


def shorten(line: str, *, most: int = 40) -> str:
    """A path as a reader knows it: from its package on, and its last folders that fit into so many characters."""
    folders = _INSTALLED.sub("", line).split("/")
    while len(folders) > 1 and (len("/".join(folders)) > most or len(folders) > _SHOWN):
        folders = folders[1:]
    return "/".join(folders)


@lru_cache(maxsize=1 << 14)
def find_part(path: str) -> str:
    """The part of the model in a framework's path, without tracing, loops, the operation itself and numbers of layers.

    `jit(step)/jit(main)/transpose(jvp(decoder))/layers_3/mlp/dot_general:` is `decoder/layers_*/mlp`.
    """
    parts = path.partition(";")[0].rstrip(":").split("/")
    words = [word for part in (parts[:-1] or parts) if (word := _unwrap(part))]
    return _LAYER.sub("*", "/".join(words)) or UNKNOWN


def _unwrap(part: str) -> str:
    while match := _AROUND.fullmatch(part):
        part = match[1]
    return "" if _WITHOUT_NAME.fullmatch(part) else part
