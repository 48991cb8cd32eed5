-- From 8 to 32 chips with four times the sequences: the fastest of the plans that are in both menus, by model and framework.
WITH ranked AS (
    SELECT
        p.*, r.dp * 8 // r.devices AS dp_of_8, r.pp, r.cp, r.ep, r.tp, -- the same plan in each eighth of the chips
        count(DISTINCT p.topology) OVER (
            PARTITION BY p.model, p.phase, p.arm, r.dp * 8 // r.devices, r.pp, r.cp, r.ep, r.tp, r.sp
        ) AS menus
    FROM "plan-ranking" AS p
    JOIN runs AS r USING (run)
    WHERE p.cell = 'tpu' AND p.seq = 1024
        AND ((p.topology = 'v6e:2x4' AND p.batch = 8) OR (p.topology = 'v6e:4x8' AND p.batch = 32))
        AND p.model IN (SELECT model FROM runs WHERE topology = 'v6e:4x8')
),
shared AS (FROM ranked WHERE menus = 2)
SELECT *, tokens_per_s / devices AS tokens_per_s_chip
FROM (
    SELECT
        model, topology, devices, phase, arm, count(*) AS plans_in_both, arg_min(mesh, step_ns) AS mesh,
        min(step_ns) AS step_ns, arg_min(compute_ns, step_ns) AS compute_ns, arg_min(exposed_ns, step_ns) AS exposed_ns,
        max(tokens_per_s) AS tokens_per_s, string_agg(mesh, ', ' ORDER BY mesh) AS meshes
    FROM shared
    GROUP BY ALL
)
ORDER BY model, phase DESC, arm, devices
