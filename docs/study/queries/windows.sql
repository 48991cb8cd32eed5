-- How long the network rests between the traffic of one parallelism and that of the next, and what then follows.
SELECT
    w.model, w.mesh, w.phase, w.arm, w.from_axes, w.to_axes,
    w.n, w.median_ns, w.p95_ns, w.median_wire_bytes_after, q.quantiles_ns,
    w.median_ns / t.step_ns AS median_share
FROM "windows-across-axes" AS w
JOIN interval_quantiles AS q USING (run, phase, arm, cell, source, from_axes, to_axes)
JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell, t.source) = (w.run, w.phase, w.arm, w.cell, w.source) AND t.split_by = 'all'
WHERE w.cell = 'tpu' AND w.source = 'modelled' AND w.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024
    AND w.model IN ('llama-3.1-8b', 'mixtral-8x7b') AND w.from_axes <> 'local' AND w.to_axes <> 'local'
ORDER BY w.model, w.mesh, w.phase DESC, w.arm, w.from_axes, w.to_axes
