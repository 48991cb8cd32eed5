"""The contract: which collectives the plan needs, from the numbers of a `Case` alone."""
