"""The words of machines: kinds of dims, collectives and algorithms, and what can be scaled; `--help` loads no more."""

RING, LINE, SWITCH, FULLY_CONNECTED = "ring", "line", "switch", "fully-connected"
DIM_KINDS = (RING, LINE, SWITCH, FULLY_CONNECTED)
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL = "all-reduce", "all-gather", "reduce-scatter", "all-to-all"
KINDS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
DIRECT, HALVING_DOUBLING, DOUBLE_BINARY_TREE = "direct", "halving-doubling", "double-binary-tree"
TWO_WAY_RING = "two-way-ring"
CUSTOM = "custom"
"""A user's, message by message."""
THROUGH_ALL = {"one-ring": RING, "one-direct": DIRECT, "one-halving-doubling": HALVING_DOUBLING}
"""Algorithms over all ranks of a machine, whatever its dims, and what each is in one dim."""
ALGORITHMS = (RING, TWO_WAY_RING, DIRECT, HALVING_DOUBLING, DOUBLE_BINARY_TREE, *THROUGH_ALL)
BASELINE, LOCAL_BW_AWARE, GREEDY = "baseline", "local-bw-aware", "greedy"
MULTI = (BASELINE, LOCAL_BW_AWARE, GREEDY)
POLICIES = ("fifo", "lifo", "priority")
SHARED, CUT_THROUGH, STORE_AND_FORWARD = "shared", "cut-through", "store-and-forward"
LINKS = (SHARED, CUT_THROUGH, STORE_AND_FORWARD)
"""How transfers use links together, in our own model: as flows with fair shares, or message by message in queues."""

BANDWIDTH, ICI, DCN, LATENCY, LAUNCH, MEMORY = "bandwidth", "ici", "dcn", "latency", "launch", "memory"
SCALES = {
    BANDWIDTH: "the bandwidth of every dim",
    ICI: "the bandwidth of every dim but switches",
    DCN: "the bandwidth of switches",
    LATENCY: "the latency of every hop, and a collective's launch",
    LAUNCH: "a collective's launch alone",
    MEMORY: "the memory of reductions",
}
"""What `scale_machine` knows."""
TITLES = {
    BANDWIDTH: "bandwidth",
    ICI: "ICI bandwidth",
    DCN: "DCN bandwidth",
    LATENCY: "latency",
    LAUNCH: "launch latency",
    MEMORY: "memory bandwidth of reductions",
}
