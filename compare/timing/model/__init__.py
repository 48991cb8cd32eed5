"""The timeline of a TPU that isn't there: what the scheduled program would do, from costs, links and waiting."""
