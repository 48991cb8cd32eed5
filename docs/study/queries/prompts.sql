-- How a decode step of eight sequences grows with their length, by plan and framework (8 chips).
SELECT
    p.model, p.mesh, p.seq, p.arm, p.cell, p.status,
    p.asked_bytes AS inherent_bytes, p.wire_bytes, p.emitted_over_inherent, t.step_ns,
    t.exposed_ns / t.step_ns AS exposed_share
FROM totals AS p
LEFT JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell) = (p.run, p.phase, p.arm, p.cell)
    AND t.split_by = 'all' AND t.source = 'modelled'
WHERE p.phase = 'decode' AND p.cell IN ('tpu', 'tpu+einsum') AND p.topology = 'v6e:2x4' AND p.batch = 8
    AND p.model = 'llama-3.1-8b' AND p.mesh IN ('tp8', 'dp2tp4')
ORDER BY p.mesh, p.arm, p.cell, p.seq
