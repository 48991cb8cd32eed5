-- Which plan is the fastest, by model, phase and framework, and in how many draws of the model's errors that holds.
WITH compared AS (
    FROM "plan-holds"
    WHERE cell = 'tpu' AND seq = 1024
        AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
),
drawn AS (
    SELECT model, topology, phase, arm, mesh, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE cell = 'tpu' AND seq = 1024
        AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
),
-- In how many draws the fastest plans of the two frameworks are different ones.
fastest AS (
    SELECT
        model, topology, phase, errors, draw,
        arg_min(mesh, drawn_ns) FILTER (arm = 'jax') <> arg_min(mesh, drawn_ns) FILTER (arm = 'torchxla') AS differ
    FROM drawn
    GROUP BY ALL
),
differing AS (
    SELECT model, topology, phase, min(share) AS differ_share, max(share) AS most_differ_share
    FROM (SELECT model, topology, phase, errors, avg(differ::INT) AS share FROM fastest GROUP BY ALL)
    GROUP BY ALL
),
-- In how many draws TorchXLA is slower on JAX's plan than on its own.
losing AS (
    SELECT model, topology, phase, min(share) AS loses_share
    FROM (
        SELECT
            j.model, j.topology, j.phase, a.errors,
            avg(CASE WHEN a.drawn_ns > b.drawn_ns THEN 1 WHEN a.drawn_ns = b.drawn_ns THEN 0.5 ELSE 0 END) AS share
        FROM compared AS j
        JOIN compared AS x ON (x.model, x.topology, x.phase) = (j.model, j.topology, j.phase) AND x.arm = 'torchxla'
        JOIN drawn AS a
            ON (a.model, a.topology, a.phase, a.arm, a.mesh) = (j.model, j.topology, j.phase, 'torchxla', j.mesh)
        JOIN drawn AS b
            ON (b.model, b.topology, b.phase, b.arm, b.mesh, b.errors, b.draw)
                = (j.model, j.topology, j.phase, 'torchxla', x.mesh, a.errors, a.draw)
        WHERE j.arm = 'jax' AND x.mesh <> j.mesh
        GROUP BY ALL
    )
    GROUP BY ALL
),
steps AS (SELECT model, topology, phase, arm, mesh, any_value(step_ns) AS step_ns FROM drawn GROUP BY ALL)
SELECT
    j.model, j.topology, j.phase, j.plans,
    j.mesh AS jax_mesh, j.step_ns AS jax_step_ns, j.next_mesh AS jax_next_mesh, j.next_over_fastest AS jax_next_times,
    j.holds_share AS jax_holds_share, j.mesh_at_half_rate AS jax_mesh_at_half_rate,
    j.mesh_at_double_rate AS jax_mesh_at_double_rate, j.mesh_at_half_other AS jax_mesh_at_half_other,
    x.mesh AS torchxla_mesh, x.step_ns AS torchxla_step_ns, x.next_mesh AS torchxla_next_mesh,
    x.next_over_fastest AS torchxla_next_times, x.holds_share AS torchxla_holds_share,
    x.mesh_at_half_rate AS torchxla_mesh_at_half_rate, x.mesh_at_double_rate AS torchxla_mesh_at_double_rate,
    x.mesh_at_half_other AS torchxla_mesh_at_half_other,
    j.mesh = x.mesh AS same_plan,
    d.differ_share, 1 - d.most_differ_share AS agree_share, -- each the smaller of own and shared errors
    other.step_ns / x.step_ns AS jax_plan_in_torchxla_times,
    l.loses_share
FROM compared AS j
JOIN compared AS x ON (x.model, x.topology, x.phase) = (j.model, j.topology, j.phase) AND x.arm = 'torchxla'
JOIN differing AS d ON (d.model, d.topology, d.phase) = (j.model, j.topology, j.phase)
LEFT JOIN losing AS l ON (l.model, l.topology, l.phase) = (j.model, j.topology, j.phase)
LEFT JOIN steps AS other
    ON (other.model, other.topology, other.phase, other.arm, other.mesh)
        = (j.model, j.topology, j.phase, 'torchxla', j.mesh)
WHERE j.arm = 'jax'
ORDER BY j.topology, j.model, j.phase DESC
