"""Witnesses: other people's programs for the case of a run, in words."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Witness(NamedTuple):
    """One witness, in words."""

    arm: str
    """The arm that it is reported with."""
    title: str
    """Its title in tables."""
    description: str
    """A noun phrase for sentences."""
    control: bool = False
    """Whether one thing in it was changed: it shows a cause, and is not cited as a program that people run."""


WITNESSES: Mapping[str, Witness] = MappingProxyType(
    {
        "hf-torchxla": Witness(
            arm="torchxla",
            title="transformers",
            description="the unmodified Hugging Face model",
        ),
        "hf-torchax": Witness(
            arm="torchxla",
            title="transformers",
            description="the unmodified Hugging Face model on JAX, through torchax",
        ),
        "hf-torchax+jax-attention": Witness(
            arm="torchxla",
            title="transformers",
            control=True,
            description="the Hugging Face model through torchax, its attention call replaced by JAX's",
        ),
        "tunix": Witness(arm="jax", title="tunix", description="tunix's model as shipped"),
        "tunix+norm": Witness(
            arm="jax",
            title="tunix",
            control=True,
            description="tunix's model with the weight of its norms whole",
        ),
    }
)
"""By cell name, which is the name of the adapter in `witnesses/catalog.py`."""
