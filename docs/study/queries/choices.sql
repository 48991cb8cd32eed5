-- The test of fairness: what JAX's fastest plan costs TorchXLA in decode, as it is, without the gathers, and as others write it.
WITH compared AS (
    FROM "plan-holds"
    WHERE seq = 1024 AND topology = 'v6e:2x4' AND batch = 8 AND phase = 'decode'
        AND ((arm = 'jax' AND cell = 'tpu') OR (arm = 'torchxla' AND cell IN ('tpu', 'tpu+einsum', 'hf-torchxla')))
),
jax AS (FROM compared WHERE arm = 'jax'),
drawn AS (
    SELECT model, cell, mesh, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE seq = 1024 AND topology = 'v6e:2x4' AND batch = 8 AND phase = 'decode' AND arm = 'torchxla'
        AND cell IN ('tpu', 'tpu+einsum', 'hf-torchxla')
),
-- In how many draws JAX's plan is the slower one.
shares AS (
    SELECT
        c.model, c.cell, a.errors,
        avg(CASE WHEN a.drawn_ns > b.drawn_ns THEN 1 WHEN a.drawn_ns = b.drawn_ns THEN 0.5 ELSE 0 END) AS share
    FROM compared AS c
    JOIN jax AS j USING (model)
    JOIN drawn AS a ON (a.model, a.cell, a.mesh) = (c.model, c.cell, j.mesh)
    JOIN drawn AS b ON (b.model, b.cell, b.mesh, b.errors, b.draw) = (c.model, c.cell, c.mesh, a.errors, a.draw)
    WHERE c.arm = 'torchxla' AND c.mesh <> j.mesh
    GROUP BY ALL
),
losing AS (SELECT model, cell, min(share) AS loses_share FROM shares GROUP BY ALL),
steps AS (SELECT model, cell, mesh, any_value(step_ns) AS step_ns FROM drawn GROUP BY ALL),
each AS (
    SELECT c.*, s.step_ns / c.step_ns AS jax_plan_times, l.loses_share
    FROM compared AS c
    JOIN jax AS j USING (model)
    LEFT JOIN steps AS s ON (s.model, s.cell, s.mesh) = (c.model, c.cell, j.mesh)
    LEFT JOIN losing AS l ON (l.model, l.cell) = (c.model, c.cell)
    WHERE c.arm = 'torchxla'
)
SELECT
    j.model, j.plans, j.mesh AS jax_mesh, j.step_ns AS jax_step_ns, j.holds_share AS jax_holds_share,
    own.mesh AS own_mesh, own.step_ns AS own_step_ns, own.holds_share AS own_holds_share,
    own.jax_plan_times AS own_times, own.loses_share AS own_share,
    own.mesh_at_half_rate AS own_mesh_at_half_rate, own.mesh_at_double_rate AS own_mesh_at_double_rate,
    einsum.mesh AS einsum_mesh, einsum.holds_share AS einsum_holds_share,
    einsum.jax_plan_times AS einsum_times, einsum.loses_share AS einsum_share,
    hf.plans AS hf_plans, hf.mesh AS hf_mesh, hf.holds_share AS hf_holds_share, hf.jax_plan_times AS hf_times, hf.loses_share AS hf_share
FROM jax AS j
LEFT JOIN each AS own ON own.model = j.model AND own.cell = 'tpu'
LEFT JOIN each AS einsum ON einsum.model = j.model AND einsum.cell = 'tpu+einsum'
LEFT JOIN each AS hf ON hf.model = j.model AND hf.cell = 'hf-torchxla' AND hf.plans > 1
ORDER BY j.model
