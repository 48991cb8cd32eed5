"""The figures of a study: one of each query that has one."""
