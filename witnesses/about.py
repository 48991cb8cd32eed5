"""about.json of a witness's program."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from meshes.case import Case
from witnesses.witness import Argument, Axes, Witness


def describe(
    witness: Witness,
    case: Case,
    *,
    partitioner: str,
    compile_options: Mapping[str, Any],
    parameters: Sequence[Argument],
    constraints: int,
) -> dict[str, Any]:
    """The fields of about.json.  parameters: in the order in which the program takes them.

    constraints: the shardings of activations that the model asks for, all of which are in the program.
    """
    return {
        "arm": "torchxla" if witness.door == "torchxla" else "jax",
        "witness": witness.name,
        "phase": case.phase,
        "versions": package_versions((*witness.packages, "jaxlib")),
        "partitioner": partitioner,
        "loop": "unrolled",
        "style": "weights",
        "owns": list(witness.owns),
        "constraints": constraints,
        "compile_options": dict(compile_options),
        "parameters": describe_parameters(parameters, case),
    }


def describe_parameters(parameters: Sequence[Argument], case: Case) -> list[dict[str, Any]]:
    """The program's parameters in their order, with what each is."""
    return [
        {
            "index": index,
            "name": each.name,
            "role": each.role,
            "dims": each.dims,
            "shape": list(each.shape),
            "dtype": each.dtype,
            "axes": _words(each.axes(case)),
        }
        for index, each in enumerate(parameters)
    ]


def package_versions(packages: Sequence[str]) -> dict[str, str]:
    return {package: version(package) for package in packages}


def _words(axes: Axes) -> list[str | None]:
    return [",".join(each) if isinstance(each, tuple) else each for each in axes]
