-- One plan, written by several people: bytes and modelled step of the twins, their controls and unmodified models (8 chips).
SELECT
    t.model, t.mesh, t.phase, t.arm, t.cell, t.status, t.error, t.emitted_over_inherent,
    s.step_ns, s.compute_ns, s.exposed_ns
FROM totals AS t
LEFT JOIN times AS s
    ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell) AND s.split_by = 'all' AND s.source = 'modelled'
WHERE t.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024 AND t.model IN ('llama-3.1-8b', 'qwen3-4b')
    AND t.mesh IN ('tp8', 'dp2tp4', 'dp4tp2')
ORDER BY t.model, t.phase DESC, t.mesh, t.arm, t.is_default DESC, t.cell
