"""How a compile that libtpu gave up is told."""

import pytest

from compare.compile.errors import CompileError

HBM = "one device needs 20,111,184,364 bytes (18.73GiB) and has 16,911,433,728 bytes (15.75GiB)"
SPELLINGS = [
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, temporaries (18.73G) exceeds available HBM (15.75G).",
    "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Used 18.73G of 15.75G hbm. Exceeded by 2.98G.",
    "RESOURCE_EXHAUSTED: the program needs 18.73G exceeds 15.75G",
]


@pytest.mark.parametrize("reason", SPELLINGS)
def test_each_spelling_of_too_large_reads_the_same(reason):
    error = CompileError(reason)
    assert str(error) == f"does not fit in HBM: {HBM}"
    assert (error.size.needed_bytes, error.size.available_bytes) == (20_111_184_364, 16_911_433_728)
