"""Kinds of arrays: one name for each dtype, in the whole room."""

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
"""Points or lengths of time, in ns."""

Floats = NDArray[np.float64]
"""Anything else that is measured or computed: bytes, rates, shares of a payload."""

Ints = NDArray[np.int64]
"""Counts, places in other arrays, times in ps."""

Mask = NDArray[np.bool_]

Column = NDArray[np.int32 | np.int64 | np.float64 | np.bool_]
"""A column of a table whose columns are of different kinds."""
