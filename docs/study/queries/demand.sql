-- What a device sends over one step, in 240 equal parts, by parallelism (8 chips).
SELECT
    v.model, v.mesh, v.phase, v.arm, v.axes, v.wire_bytes, v.up,
    t.step_ns, n.duty_cycle AS up_share, n.up_phases, n.peak_bytes_per_s / 1e9 AS peak_gb_per_s
FROM volume AS v
JOIN network AS n USING (run, phase, arm, cell, source, axes)
JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell, t.source) = (v.run, v.phase, v.arm, v.cell, v.source) AND t.split_by = 'all'
WHERE v.cell = 'tpu' AND v.source = 'modelled' AND v.topology = 'v6e:2x4' AND v.batch = 8 AND v.seq = 1024
    AND v.model = 'llama-3.1-8b' AND v.mesh IN ('pp2tp4', 'tp8')
ORDER BY v.mesh, v.phase DESC, v.arm, v.axes
