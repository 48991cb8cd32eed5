-- What each framework adds to a plan: bytes that only it has, and exposed time that the plan does not require.
WITH avoidable AS (
    SELECT run, phase, arm, cell, sum(exposed_ns) AS avoidable_exposed_ns
    FROM times
    WHERE split_by = 'verdict' AND part IN ('inflated', 'induced') AND source = 'modelled'
    GROUP BY ALL
)
SELECT
    t.run, t.model, t.mesh, t.topology, t.devices, t.batch, t.seq, t.phase, t.arm, t.cell, t.status,
    t.asked_bytes, t.wire_bytes, t.emitted_over_inherent,
    t.common_bytes, t.framework_induced_bytes, -- null where a program was not compared
    t.framework_induced_bytes * t.devices / CASE t.phase WHEN 'prefill' THEN t.batch * t.seq ELSE t.batch END
        AS framework_induced_bytes_per_token,
    step.step_ns, step.exposed_ns, avoidable.avoidable_exposed_ns -- modelled
FROM totals AS t
LEFT JOIN times AS step
    ON (step.run, step.phase, step.arm, step.cell) = (t.run, t.phase, t.arm, t.cell)
    AND step.split_by = 'all' AND step.source = 'modelled'
LEFT JOIN avoidable
    ON (avoidable.run, avoidable.phase, avoidable.arm, avoidable.cell) = (t.run, t.phase, t.arm, t.cell)
ORDER BY t.run, t.phase DESC, t.arm, t.is_default DESC, t.cell
