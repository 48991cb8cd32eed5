"""`python -m compare.remedy --mesh tp4pp2`: which changes remove the bytes that nobody needed, each compiled."""

import json
import sys
from collections.abc import Sequence

from compare.work import cache
from compare.work.folder import REMEDIES
from compare.work.options import listing, print_json
from compare.work.remedy_options import read_request, remedy_parser
from meshes import whole
from meshes.doors import guarded


def main(argv: Sequence[str] | None = None) -> int:
    """0: every program was measured; 1: some arm or phase could not be, the rest is told."""
    asked = remedy_parser().parse_args(argv)
    if "list" in asked:
        print(listing(asked.list))
        return 0
    request = read_request(asked)
    from compare.work.remedy_told import found_by  # what times programs takes half a second to import

    with cache.opened(bypass=asked.no_cache) as kept:
        found = found_by(request, cache=kept)
    pages = [asked.html] if asked.html else []
    if asked.into:
        data, shown = (asked.into / name for name in REMEDIES)
        whole.write_text(data, json.dumps(found, indent=1) + "\n")
        pages.append(shown)
    for place in pages:
        from compare.views.remedy_page import page

        whole.write_text(place, page(found))
        print(place, file=sys.stderr)
    if asked.json:
        print_json(found)
    else:
        from compare.views.remedy import print_remedies

        print_remedies(found)
    return 1 if any(one["error"] for arm in found["arms"].values() for one in arm["phases"].values()) else 0


if __name__ == "__main__":
    guarded(main)
