"""The table of docs/model.md that divides the compute of the example's steps, from its table of events."""

import pandas as pd
import pytest

from tests.places import EXAMPLE, ROOT

SMALL_NS = 1200


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_the_compute_of_the_examples_steps_is_divided_as_its_events_are(phase):
    """JAX's default programs, one device of the eight alike: every operation in one column."""
    table = pd.read_parquet(EXAMPLE / "tables/events.parquet")
    rows = table[(table["arm"] == "jax") & (table["phase"] == phase) & (table["cell"] == "tpu")]
    rows = rows[rows["role"] == "compute"]
    assert rows["device"].nunique() == 1
    lasts = rows["duration_ns"]
    is_small = lasts <= SMALL_NS
    is_product = ~is_small & (rows["matrix_flops"] > 0)
    is_on_chip = ~is_small & ~is_product & (rows["memory_bytes"] == 0)
    parts = [is_product, is_on_chip, ~(is_small | is_product | is_on_chip), is_small]
    cells = [f"{lasts[part].sum() / 1e6:.1f}" for part in parts]
    page = (ROOT / "docs/model.md").read_text(encoding="utf-8")
    assert f"| {phase}, {lasts.sum() / 1e6:.1f} | {' | '.join(cells)} |" in page
    if phase == "decode":
        read, took = rows[is_product]["memory_bytes"].sum(), lasts[is_product].sum()
        assert f"those of decode read {read / 1e9:.1f} GB\nof weights and caches at {read / took:.0f} GB/s" in page
    else:
        share = rows[is_product]["matrix_flops"].sum() / lasts[is_product].sum() / 197e3
        assert f"come\nout at {share:.0%}".replace("%", " %") in page
