"""`python -m compare.profile.chrome.second_half FILE OFFSET IS_LIST`: what follows an offset, as pickled `Columns`."""

import pickle
import sys

from compare.profile.chrome.columns import Columns
from compare.profile.chrome.pieces import TraceText, open_trace


def main() -> int:
    """0: all of it; 1: no event begins there, or the rest cannot be read."""
    path, offset, is_list = sys.argv[1:]
    columns = Columns()
    with open(path, "rb") as file:
        text = TraceText(open_trace(file))
        if not text.start_near(int(offset), is_list=bool(int(is_list))):
            return 1
        columns.add_all(text)
    pickle.dump(columns.pack(), sys.stdout.buffer, protocol=5)
    return 0


if __name__ == "__main__":
    sys.exit(main())
