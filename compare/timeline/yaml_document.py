"""Untrusted YAML: small, shallow, without aliases, and whatever is wrong is one line."""

import re

import yaml

from compare.timeline.errors import TimingError
from meshes.process.documents import DEPTH
from meshes.process.one_line import one_line

YAML_BYTES = 1 << 16
"""Of a file: PyYAML needs a second for twice as much.  A workload card and a network have a tenth."""

_BRACKET = re.compile(rb"[\[\]{}]")


def parse_yaml(data: bytes) -> object:
    """The value of a text of at most `YAML_BYTES`.  `TimingError`, which continues `FILE is`."""
    if len(data) > YAML_BYTES:
        raise TimingError(f"larger than {YAML_BYTES:,} bytes, which is the most that is read as YAML")
    depth = 0
    for bracket in _BRACKET.findall(data):  # PyYAML takes time in the square of the open ones
        depth = max(0, depth + (1 if bracket in b"[{" else -1))
        if depth > DEPTH:
            raise TimingError(f"no YAML that can be read: it is nested deeper than {DEPTH} lists and tables")
    try:
        return yaml.load(data.decode(), _Loader)
    except RecursionError:
        raise TimingError("no YAML that can be read: it is nested too deep") from None
    except (ValueError, LookupError, AttributeError, TypeError, yaml.YAMLError) as error:
        # The constructors of `!!int`, `!!bool` and `!!timestamp` raise what Python raises.
        raise TimingError(f"no YAML: {one_line(error, most=200) or type(error).__name__}") from None


class _Loader(yaml.SafeLoader):
    """Safe, and of a size that is not more than the text's."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*name) stands in it, and aliases are not read")
        return super().compose_node(parent, index)
