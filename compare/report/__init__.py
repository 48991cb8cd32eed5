"""The report of one run, as one value: rows, totals, differences, attribution."""
