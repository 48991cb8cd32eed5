"""Our own model of collectives: steps of latency and of bytes on the busiest link."""
