-- One plan, written by several people: the twins, each with one thing changed, and unmodified models (8 chips).
WITH programs AS (
    SELECT
        t.run, t.model, t.mesh, t.phase, t.arm, t.cell, t.status, t.error, t.emitted_over_inherent, t.compute_over_floor,
        s.step_ns, s.compute_ns, s.exposed_ns
    FROM totals AS t
    LEFT JOIN times AS s
        ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell)
        AND s.split_by = 'all' AND s.source = 'modelled'
    WHERE t.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024 AND t.model IN ('llama-3.1-8b', 'qwen3-4b')
        AND t.mesh IN ('tp8', 'dp2tp4', 'dp4tp2') AND t.cell NOT LIKE 'tpu+cache-%'
),
drawn AS (
    SELECT run, phase, arm, cell, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE topology = 'v6e:2x4' AND batch = 8 AND seq = 1024 AND model IN ('llama-3.1-8b', 'qwen3-4b')
        AND mesh IN ('tp8', 'dp2tp4', 'dp4tp2') AND cell NOT LIKE 'tpu+cache-%'
),
-- In how many draws a program stays on its side of the twin's default program.
shares AS (
    SELECT
        a.run, a.phase, a.arm, a.cell, a.errors,
        avg(CASE WHEN (a.drawn_ns > b.drawn_ns) = (a.step_ns > b.step_ns) THEN 1 ELSE 0 END) AS share
    FROM drawn AS a
    JOIN drawn AS b
        ON (b.run, b.phase, b.arm, b.cell, b.errors, b.draw) = (a.run, a.phase, a.arm, 'tpu', a.errors, a.draw)
    WHERE a.cell <> 'tpu' AND a.step_ns <> b.step_ns
    GROUP BY ALL
),
held AS (SELECT run, phase, arm, cell, min(share) AS holds_share FROM shares GROUP BY ALL)
SELECT
    p.* EXCLUDE (run), p.step_ns / d.step_ns AS default_times, h.holds_share
FROM programs AS p
LEFT JOIN programs AS d ON (d.run, d.phase, d.arm, d.cell) = (p.run, p.phase, p.arm, 'tpu')
LEFT JOIN held AS h ON (h.run, h.phase, h.arm, h.cell) = (p.run, p.phase, p.arm, p.cell)
ORDER BY p.model, p.phase, p.mesh DESC, p.arm, p.cell <> 'tpu', p.cell
