"""Array types: one name for each dtype, used throughout the rooms of time."""

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
"""Times or durations, in ns."""

Floats = NDArray[np.float64]
"""Other quantities: bytes, rates, fractions of a payload."""

Ints = NDArray[np.int64]
"""Counts, indices, times in ps."""

Mask = NDArray[np.bool_]

Column = NDArray[np.int32 | np.int64 | np.float64 | np.bool_]
"""A column of a table with columns of different dtypes."""
