-- Where lines cross: from which length or batch on one plan is faster than another, and in how many draws both orders hold.
WITH drawn AS (
    SELECT model, mesh, phase, arm, 'seq' AS grows, seq AS size, errors, draw, drawn_ns, step_ns, exposed_ns
    FROM "step-draws"
    WHERE cell = 'tpu' AND topology = 'v6e:2x4' AND batch = 1
    UNION ALL
    SELECT model, mesh, phase, arm, 'batch', batch, errors, draw, drawn_ns, step_ns, exposed_ns
    FROM "step-draws"
    WHERE cell = 'tpu' AND topology = 'v6e:2x4' AND seq = 1024
        AND model IN ('llama-3.1-8b', 'mixtral-8x7b') AND mesh IN ('tp8', 'dp2tp4', 'pp2tp4')
),
pairs AS (
    SELECT
        a.model, a.phase, a.arm, a.grows, a.mesh AS mesh, b.mesh AS other_mesh, a.size, a.errors, a.draw,
        a.step_ns < b.step_ns AS is_faster, b.step_ns / a.step_ns AS other_times, a.drawn_ns < b.drawn_ns AS drawn_faster,
        a.step_ns + a.exposed_ns < b.step_ns + b.exposed_ns AS faster_at_half_rate,
        a.step_ns - a.exposed_ns / 2 < b.step_ns - b.exposed_ns / 2 AS faster_at_double_rate
    FROM drawn AS a
    JOIN drawn AS b
        ON (a.model, a.phase, a.arm, a.grows, a.size, a.errors, a.draw)
            = (b.model, b.phase, b.arm, b.grows, b.size, b.errors, b.draw)
        AND a.mesh <> b.mesh
),
crossed AS (
    SELECT
        model, phase, arm, grows, mesh, other_mesh,
        max(size) FILTER (NOT is_faster) AS slower_up_to,
        min(size) FILTER (is_faster) AS faster_from,
        max_by(other_times, size) AS other_times_at_the_end
    FROM pairs
    GROUP BY ALL
    HAVING slower_up_to < faster_from
),
-- Of each draw whether the plan is the slower one up to there, and the faster one from there.
shares AS (
    SELECT
        model, phase, arm, grows, mesh, other_mesh, errors,
        avg(CASE WHEN holds THEN 1 ELSE 0 END) AS share,
        bool_and(at_half_rate) AS at_half_rate, bool_and(at_double_rate) AS at_double_rate
    FROM (
        SELECT
            c.model, c.phase, c.arm, c.grows, c.mesh, c.other_mesh, p.errors, p.draw,
            bool_and(p.drawn_faster = (p.size = c.faster_from)) AS holds,
            bool_and(p.faster_at_half_rate = (p.size = c.faster_from)) AS at_half_rate, -- of the links
            bool_and(p.faster_at_double_rate = (p.size = c.faster_from)) AS at_double_rate
        FROM crossed AS c
        JOIN pairs AS p USING (model, phase, arm, grows, mesh, other_mesh)
        WHERE p.size IN (c.slower_up_to, c.faster_from)
        GROUP BY ALL
    )
    GROUP BY ALL
)
SELECT c.*, min(s.share) AS holds_share, bool_and(s.at_half_rate) AS at_half_rate, bool_and(s.at_double_rate) AS at_double_rate
FROM crossed AS c
JOIN shares AS s USING (model, phase, arm, grows, mesh, other_mesh)
GROUP BY ALL
ORDER BY model, phase DESC, arm, grows, mesh, other_mesh
