-- Compute over its floor (the bytes that a device must read, or the arithmetic that it must do), by program; null in older data.
SELECT model, mesh, topology, phase, arm, cell, compute_over_floor
FROM totals
WHERE seq = 1024 AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
    AND compute_over_floor IS NOT NULL
ORDER BY compute_over_floor DESC, model, mesh, topology, phase, arm, cell
