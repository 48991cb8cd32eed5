"""A modelled timeline: the scheduled program simulated on a TPU, from costs, links and waiting."""
