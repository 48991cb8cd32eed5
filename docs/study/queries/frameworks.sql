-- What the framework adds, by model, plan and phase: bytes over the plan's, and avoidable exposed time.
SELECT
    f.model, f.mesh, f.topology, f.phase, f.arm, f.cell, f.status,
    f.asked_bytes AS inherent_bytes, f.wire_bytes, f.emitted_over_inherent, f.framework_induced_bytes,
    f.step_ns, f.avoidable_exposed_ns, f.avoidable_exposed_ns / f.step_ns AS avoidable_share
FROM "framework-induced" AS f
WHERE f.seq = 1024 AND ((f.topology = 'v6e:2x4' AND f.batch = 8) OR (f.topology = 'v6e:4x8' AND f.batch = 32))
ORDER BY f.topology, f.model, f.mesh, f.phase DESC, f.arm, f.cell
