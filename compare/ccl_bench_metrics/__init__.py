"""One number of one trace, by the names that CCL-Bench uses."""
