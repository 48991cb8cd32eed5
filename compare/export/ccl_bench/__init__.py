"""Trace directories for CCL-Bench (github.com/cornell-sysphotonics/ccl-bench): a workload card and a Chrome trace."""
