-- Compute over its floor (the bytes that a device must read, or the arithmetic that it must do), by program; null in older data.
SELECT x.*
FROM (SELECT NULL::DOUBLE AS compute_over_floor) AS unknown
CROSS JOIN LATERAL (
    SELECT model, mesh, topology, phase, arm, cell, compute_over_floor
    FROM totals
    WHERE seq = 1024 AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
) AS x
WHERE x.compute_over_floor IS NOT NULL
ORDER BY x.compute_over_floor DESC, x.model, x.mesh, x.topology, x.phase, x.arm, x.cell
