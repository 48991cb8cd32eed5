-- What a second slice changes: the same plan on 16 chips of one slice, and on two slices of 8 (dp or pp between them).
SELECT
    p.model, p.mesh, p.topology, p.phase, p.arm, p.status,
    p.ici_wire_bytes, p.dcn_wire_bytes, t.step_ns, t.exposed_ns / t.step_ns AS exposed_share
FROM totals AS p
LEFT JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell) = (p.run, p.phase, p.arm, p.cell)
    AND t.split_by = 'all' AND t.source = 'modelled'
WHERE p.cell = 'tpu' AND p.devices = 16
ORDER BY p.model, p.mesh, p.phase DESC, p.arm, p.topology
