"""`python -m compare.timing.chrome.second_half FILE OFFSET IS_LIST`: what follows an offset, as pickled `Columns`."""

import pickle
import sys

from compare.timing.chrome.columns import Columns
from compare.timing.chrome.pieces import TraceText


def main() -> None:
    path, offset, is_list = sys.argv[1:]
    columns = Columns()
    with open(path, "rb") as file:
        text = TraceText(file)
        text.start_at(int(offset), is_list=bool(int(is_list)))
        columns.add_all(text)
    pickle.dump(columns.pack(), sys.stdout.buffer, protocol=5)


if __name__ == "__main__":
    main()
