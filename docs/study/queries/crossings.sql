-- Where lines cross: from which length or batch on one plan is faster than another, by model, phase and framework.
WITH sizes AS (
    SELECT model, mesh, phase, arm, 'seq' AS grows, seq AS size, step_ns
    FROM times
    WHERE split_by = 'all' AND source = 'modelled' AND cell = 'tpu' AND topology = 'v6e:2x4' AND batch = 1
    UNION ALL
    SELECT model, mesh, phase, arm, 'batch', batch, step_ns
    FROM times
    WHERE split_by = 'all' AND source = 'modelled' AND cell = 'tpu' AND topology = 'v6e:2x4' AND seq = 1024
        AND model IN ('llama-3.1-8b', 'mixtral-8x7b') AND mesh IN ('tp8', 'dp2tp4', 'pp2tp4')
),
pairs AS (
    SELECT
        a.model, a.phase, a.arm, a.grows, a.mesh AS mesh, b.mesh AS other_mesh, a.size,
        a.step_ns < b.step_ns AS is_faster, b.step_ns / a.step_ns AS other_times
    FROM sizes AS a
    JOIN sizes AS b
        ON (a.model, a.phase, a.arm, a.grows, a.size) = (b.model, b.phase, b.arm, b.grows, b.size) AND a.mesh <> b.mesh
)
SELECT
    model, phase, arm, grows, mesh, other_mesh,
    max(size) FILTER (NOT is_faster) AS slower_up_to,
    min(size) FILTER (is_faster) AS faster_from,
    max_by(other_times, size) AS other_times_at_the_end
FROM pairs
GROUP BY ALL
HAVING slower_up_to < faster_from
ORDER BY model, phase DESC, arm, grows, mesh, other_mesh
