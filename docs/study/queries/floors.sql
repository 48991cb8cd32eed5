-- Compute over its floor (the bytes that a device must read, or the arithmetic that it must do), and what takes the time.
WITH longest AS (
    SELECT
        run, phase, arm, cell,
        string_agg(
            printf('%.0f × %s of %s in %s, %.3g ms', executions, opcode, shape, coalesce(scope, 'no scope'), time_ns / 1e6),
            '; ' ORDER BY time_ns DESC
        ) AS operations
    FROM (
        FROM operations
        WHERE role = 'compute'
        QUALIFY row_number() OVER (PARTITION BY run, phase, arm, cell ORDER BY time_ns DESC, name) <= 3
    )
    GROUP BY ALL
)
SELECT
    t.model, t.mesh, t.topology, t.phase, t.arm, t.cell, t.compute_over_floor, s.step_ns, s.compute_ns,
    s.step_ns / (s.compute_ns / t.compute_over_floor) AS step_over_floor, l.operations
FROM totals AS t
JOIN times AS s
    ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell) AND s.split_by = 'all' AND s.source = 'modelled'
LEFT JOIN longest AS l ON (l.run, l.phase, l.arm, l.cell) = (t.run, t.phase, t.arm, t.cell)
WHERE t.seq = 1024 AND ((t.topology = 'v6e:2x4' AND t.batch = 8) OR (t.topology = 'v6e:4x8' AND t.batch = 32))
    AND t.compute_over_floor IS NOT NULL
ORDER BY t.compute_over_floor DESC, t.model, t.mesh, t.topology, t.phase, t.arm, t.cell
