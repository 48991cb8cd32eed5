-- Which plan is the fastest, by model, phase and framework, how near the next is, and whether the model can tell them apart.
WITH ranked AS (
    SELECT
        *,
        row_number() OVER plans AS position,
        lead(mesh) OVER plans AS next_mesh,
        lead(step_ns) OVER plans / step_ns AS next_over_fastest,
        count(*) OVER (PARTITION BY model, topology, phase, arm) AS plans
    FROM "plan-ranking"
    WHERE cell = 'tpu' AND seq = 1024
        AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
    WINDOW plans AS (PARTITION BY model, topology, phase, arm ORDER BY step_ns)
),
fastest AS (FROM ranked WHERE position = 1)
SELECT
    j.model, j.topology, j.phase, j.plans,
    j.mesh AS jax_mesh, j.step_ns AS jax_step_ns, j.next_mesh AS jax_next_mesh, j.next_over_fastest AS jax_next_times,
    x.mesh AS torchxla_mesh, x.step_ns AS torchxla_step_ns, x.next_mesh AS torchxla_next_mesh,
    x.next_over_fastest AS torchxla_next_times,
    j.mesh = x.mesh AS same_plan,
    -- The median error of the modelled all-reduces of v6e against measured ones is 18 % (docs/model.md).
    coalesce(j.next_over_fastest < 1.18, false) AS jax_within_error,
    coalesce(x.next_over_fastest < 1.18, false) AS torchxla_within_error,
    other.step_ns / j.step_ns AS torchxla_plan_in_jax_times, -- what JAX would lose with TorchXLA's choice
    x_other.step_ns / x.step_ns AS jax_plan_in_torchxla_times,
    coalesce(x_other.step_ns / x.step_ns >= 1.18, false) AS choice_matters -- by more than that error
FROM fastest AS j
JOIN fastest AS x USING (model, topology, phase)
LEFT JOIN ranked AS other
    ON (other.model, other.topology, other.phase, other.mesh, other.arm) = (j.model, j.topology, j.phase, x.mesh, 'jax')
LEFT JOIN ranked AS x_other
    ON (x_other.model, x_other.topology, x_other.phase, x_other.mesh, x_other.arm)
        = (j.model, j.topology, j.phase, j.mesh, 'torchxla')
WHERE j.arm = 'jax' AND x.arm = 'torchxla'
ORDER BY j.topology, j.model, j.phase DESC
