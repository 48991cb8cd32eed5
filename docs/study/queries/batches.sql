-- How bytes and time grow with the batch, by plan and framework (8 chips, 1,024 tokens).
SELECT
    p.model, p.mesh, p.batch, p.phase, p.arm, p.status,
    p.asked_bytes AS inherent_bytes, p.wire_bytes, p.framework_induced_bytes,
    t.step_ns,
    1e9 * p.batch * CASE p.phase WHEN 'prefill' THEN p.seq ELSE 1 END / t.step_ns AS tokens_per_s
FROM totals AS p
LEFT JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell) = (p.run, p.phase, p.arm, p.cell)
    AND t.split_by = 'all' AND t.source = 'modelled'
WHERE p.cell = 'tpu' AND p.topology = 'v6e:2x4' AND p.seq = 1024
    AND p.model IN ('llama-3.1-8b', 'mixtral-8x7b') AND p.mesh IN ('tp8', 'dp2tp4', 'pp2tp4')
ORDER BY p.model, p.mesh, p.batch, p.phase DESC, p.arm
