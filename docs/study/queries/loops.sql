-- Layers in a scan beside layers unrolled: the step, and what the operations of the MLP read from memory (8 chips).
WITH read AS (
    SELECT
        run, phase, arm, cell, sum(time_ns) AS mlp_ns, sum(memory_bytes) AS mlp_memory_bytes
    FROM operations -- the ten longest
    WHERE role = 'compute' AND scope LIKE 'layer.mlp.%'
    GROUP BY ALL
),
programs AS (
    SELECT
        t.run, t.model, t.mesh, t.phase, t.arm, t.cell, t.compute_over_floor, s.step_ns, s.compute_ns, s.exposed_ns,
        read.mlp_ns, read.mlp_memory_bytes
    FROM totals AS t
    JOIN times AS s
        ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell)
        AND s.split_by = 'all' AND s.source = 'modelled'
    LEFT JOIN read ON (read.run, read.phase, read.arm, read.cell) = (t.run, t.phase, t.arm, t.cell)
    WHERE t.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024 AND t.cell IN ('tpu', 'tpu+unrolled')
),
drawn AS (
    SELECT run, phase, arm, cell, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE topology = 'v6e:2x4' AND batch = 8 AND seq = 1024 AND model = 'llama-3.1-8b' AND mesh IN ('tp8', 'dp2tp4', 'dp4tp2')
        AND cell IN ('tpu', 'tpu+unrolled')
),
shares AS (
    SELECT
        a.run, a.phase, a.arm, a.errors,
        avg(CASE WHEN (a.drawn_ns > b.drawn_ns) = (a.step_ns > b.step_ns) THEN 1 ELSE 0 END) AS share
    FROM drawn AS a
    JOIN drawn AS b
        ON (b.run, b.phase, b.arm, b.cell, b.errors, b.draw) = (a.run, a.phase, a.arm, 'tpu+unrolled', a.errors, a.draw)
    WHERE a.cell = 'tpu'
    GROUP BY ALL
)
SELECT
    scan.model, scan.mesh, scan.phase, scan.arm,
    scan.step_ns AS scan_step_ns, unrolled.step_ns AS unrolled_step_ns, scan.step_ns / unrolled.step_ns AS scan_times,
    min(share) AS holds_share,
    scan.compute_ns AS scan_compute_ns, unrolled.compute_ns AS unrolled_compute_ns,
    scan.exposed_ns AS scan_exposed_ns, unrolled.exposed_ns AS unrolled_exposed_ns,
    scan.compute_over_floor AS scan_over_floor, unrolled.compute_over_floor AS unrolled_over_floor,
    scan.mlp_ns AS scan_mlp_ns, unrolled.mlp_ns AS unrolled_mlp_ns,
    scan.mlp_memory_bytes AS scan_mlp_bytes, unrolled.mlp_memory_bytes AS unrolled_mlp_bytes
FROM programs AS scan
JOIN programs AS unrolled
    ON (unrolled.run, unrolled.phase, unrolled.arm, unrolled.cell) = (scan.run, scan.phase, scan.arm, 'tpu+unrolled')
LEFT JOIN shares ON (shares.run, shares.phase, shares.arm) = (scan.run, scan.phase, scan.arm)
WHERE scan.cell = 'tpu'
GROUP BY ALL
ORDER BY scan.model, scan.phase, scan.mesh DESC, scan.arm
