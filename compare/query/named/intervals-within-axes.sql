-- How long the network of one parallelism rests between two of its communications.
SELECT
    run, model, mesh, topology, phase, arm, cell, source, from_axes AS axes,
    n, -- of all devices and steps
    median_ns, p95_ns, iqr_ns
FROM intervals
WHERE from_axes = to_axes
ORDER BY run, phase DESC, arm, cell, source, axes
