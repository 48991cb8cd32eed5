"""The collectives of a program: kind, groups, payload, executions, emission form."""
