-- From 8 to 32 chips with four times the sequences: the fastest of the plans that are in both menus, by model and framework.
WITH placed AS (
    SELECT
        d.*, r.dp * 8 // r.devices AS dp_of_8, -- the same plan in each eighth of the chips
        count(DISTINCT d.topology) OVER (
            PARTITION BY d.model, d.phase, d.arm, r.dp * 8 // r.devices, r.pp, r.cp, r.ep, r.tp, r.sp
        ) AS menus
    FROM "step-draws" AS d
    JOIN runs AS r USING (run)
    WHERE d.cell = 'tpu' AND d.seq = 1024
        AND ((d.topology = 'v6e:2x4' AND d.batch = 8) OR (d.topology = 'v6e:4x8' AND d.batch = 32))
        AND d.model IN (SELECT model FROM runs WHERE topology = 'v6e:4x8')
),
shared AS (
    SELECT
        *,
        drawn_ns = min(drawn_ns) OVER (PARTITION BY model, topology, phase, arm, errors, draw) AS is_fastest
    FROM placed
    WHERE menus = 2
),
plans AS (
    SELECT
        model, topology, devices, batch, phase, arm, mesh, any_value(step_ns) AS step_ns, any_value(exposed_ns) AS exposed_ns,
        least(avg(is_fastest::INT) FILTER (errors = 'own'), avg(is_fastest::INT) FILTER (errors = 'shared')) AS holds_share
    FROM shared
    GROUP BY ALL
)
SELECT *, 1e9 * tokens / step_ns AS tokens_per_s, tokens_per_s / devices AS tokens_per_s_chip
FROM (
    SELECT
        model, topology, devices, phase, arm, count(*) AS plans_in_both, string_agg(mesh, ', ' ORDER BY mesh) AS meshes,
        arg_min(mesh, step_ns) AS mesh, arg_min(holds_share, step_ns) AS holds_share,
        arg_min(mesh, step_ns + exposed_ns) AS mesh_at_half_rate, arg_min(mesh, step_ns - exposed_ns / 2) AS mesh_at_double_rate,
        min(step_ns) AS step_ns, arg_min(step_ns - exposed_ns, step_ns) AS compute_ns, arg_min(exposed_ns, step_ns) AS exposed_ns,
        any_value(batch * CASE phase WHEN 'prefill' THEN 1024 ELSE 1 END) AS tokens
    FROM plans
    GROUP BY ALL
)
ORDER BY model, phase DESC, arm, devices
