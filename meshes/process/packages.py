"""Installed packages: their versions, and whether another one has overwritten files of one."""

import base64
import hashlib
from importlib.metadata import PackageNotFoundError, files, version


def installed_version(name: str) -> str:
    """Of a distribution, from its metadata; empty for one that is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def is_overwritten(name: str) -> bool:
    """Whether another package has been installed over a distribution: files of it are not those that it brought.

    (torch_xla 2.9.0 brings a copy of torchax.)  Checked by the hashes of its RECORD; False if it is not installed.
    """
    try:
        installed = files(name) or []
    except PackageNotFoundError:
        return False
    modules = [file for file in installed if file.suffix == ".py" and file.hash]
    return any(_digest(file.read_binary(), file.hash.mode) != file.hash.value for file in modules if file.hash)


def _digest(content: bytes, mode: str) -> str:
    """As a RECORD writes it: base64 in the alphabet of URLs, without padding."""
    return base64.urlsafe_b64encode(hashlib.new(mode, content).digest()).rstrip(b"=").decode()
