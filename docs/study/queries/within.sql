-- How long the network of one parallelism rests between two of its own communications (8 chips).
SELECT i.model, i.mesh, i.phase, i.arm, i.axes, i.n, i.median_ns, i.p95_ns
FROM "intervals-within-axes" AS i
JOIN runs AS r USING (run)
WHERE i.cell = 'tpu' AND i.source = 'modelled' AND r.topology = 'v6e:2x4' AND r.batch = 8 AND r.seq = 1024
ORDER BY i.model, i.mesh, i.phase DESC, i.arm, i.axes
