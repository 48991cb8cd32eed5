-- How bytes and time grow with the length of one prompt, by plan and framework (8 chips, batch 1).
SELECT
    p.model, p.mesh, p.seq, p.phase, p.arm, p.status,
    p.asked_bytes AS inherent_bytes, p.wire_bytes, p.framework_induced_bytes,
    t.step_ns, t.exposed_ns / t.step_ns AS exposed_share
FROM totals AS p
LEFT JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell) = (p.run, p.phase, p.arm, p.cell)
    AND t.split_by = 'all' AND t.source = 'modelled'
WHERE p.cell = 'tpu' AND p.topology = 'v6e:2x4' AND p.batch = 1
ORDER BY p.model, p.mesh, p.seq, p.phase DESC, p.arm
