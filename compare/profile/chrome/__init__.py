"""Chrome traces (`*.trace.json`, gzipped or not) as the profiler's own planes and lines."""
