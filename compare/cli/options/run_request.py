"""The programs that the options of `compare.run` name."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

from compare.run.arms import Arm, parse_arms, parse_controls, parse_witnesses
from compare.run.errors import WorkError


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Which programs of a case are compiled: arms, controls, witnesses."""

    arms: Mapping[str, Arm]
    controls: tuple[str, ...]
    libtpu: str
    witnesses: tuple[str, ...] = ()
    """Names of other people's programs."""


def read_programs(options: argparse.Namespace) -> Programs:
    """The programs of the options.  Raises `WorkError` where they are invalid."""
    if options.same_runtime:
        raise WorkError("--same-runtime is gone: --execute cpu runs both programs on JAX's CPU runtime")
    libtpu = ""
    if "libtpu" in options:
        from compare.run.install_libtpu import read_version

        libtpu = read_version(options.libtpu)
    controls = parse_controls(options.controls)
    arms = {arm.name: arm for arm in parse_arms(options.arm)}
    return Programs(
        witnesses=parse_witnesses(options.witness, arms=list(arms)),
        arms=arms,
        controls=(*controls, "libtpu") if libtpu and "libtpu" not in controls else controls,
        libtpu=libtpu,
    )
