-- Which plan is the fastest in decode for each program of TorchXLA (twin, controls, other people's), and what JAX's costs it.
WITH compared AS (
    FROM "plan-holds"
    WHERE seq = 1024 AND topology = 'v6e:2x4' AND batch = 8 AND phase = 'decode' AND (arm = 'torchxla' OR cell = 'tpu')
),
jax AS (FROM compared WHERE arm = 'jax' AND cell = 'tpu'),
drawn AS (
    SELECT model, phase, arm, cell, mesh, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE seq = 1024 AND topology = 'v6e:2x4' AND batch = 8 AND phase = 'decode' AND (arm = 'torchxla' OR cell = 'tpu')
),
losing AS (
    SELECT model, phase, arm, cell, min(share) AS loses_share
    FROM (
        SELECT
            c.model, c.phase, c.arm, c.cell, a.errors,
            avg(CASE WHEN a.drawn_ns > b.drawn_ns THEN 1 WHEN a.drawn_ns = b.drawn_ns THEN 0.5 ELSE 0 END) AS share
        FROM compared AS c
        JOIN jax AS j USING (model, phase)
        JOIN drawn AS a ON (a.model, a.phase, a.arm, a.cell, a.mesh) = (c.model, c.phase, c.arm, c.cell, j.mesh)
        JOIN drawn AS b
            ON (b.model, b.phase, b.arm, b.cell, b.mesh, b.errors, b.draw)
                = (c.model, c.phase, c.arm, c.cell, c.mesh, a.errors, a.draw)
        WHERE c.mesh <> j.mesh
        GROUP BY ALL
    )
    GROUP BY ALL
),
steps AS (SELECT model, phase, arm, cell, mesh, any_value(step_ns) AS step_ns FROM drawn GROUP BY ALL)
SELECT
    c.model, c.phase, c.arm, c.cell, c.plans, c.mesh, c.step_ns, c.next_mesh, c.next_over_fastest AS next_times, c.holds_share,
    j.mesh AS jax_mesh, c.mesh = j.mesh AS same_plan,
    on_jax.step_ns AS on_jax_mesh_ns, on_jax.step_ns / c.step_ns AS jax_plan_times, l.loses_share
FROM compared AS c
JOIN jax AS j USING (model, phase)
LEFT JOIN steps AS on_jax
    ON (on_jax.model, on_jax.phase, on_jax.arm, on_jax.cell, on_jax.mesh) = (c.model, c.phase, c.arm, c.cell, j.mesh)
LEFT JOIN losing AS l ON (l.model, l.phase, l.arm, l.cell) = (c.model, c.phase, c.arm, c.cell)
ORDER BY c.model, c.phase DESC, c.arm, c.cell
