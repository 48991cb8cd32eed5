"""Transformers' own answers are good to be held against: no winner is won by less than rounding."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.twins.cases import MESHES, TOLERANCE

FAMILIES = sorted({family for families in MESHES.values() for family in families})

LEAD = 15 * TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_winners_of_the_reference_lead_clearly(family: str, reference: Path) -> None:
    logits = np.sort(np.load(reference / family / "logits.npy"), axis=-1)
    lead = (logits[..., -1] - logits[..., -2]).min()
    assert logits.shape == (9, 8, 512)
    assert lead > LEAD * np.abs(logits).max()
    text = json.loads((reference / family / "text.json").read_text())
    assert text["lead"] > LEAD
    assert len(text["tokens"]) == 32
