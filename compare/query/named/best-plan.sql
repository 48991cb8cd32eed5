-- Whether the framework changes the choice: the fastest plan of each framework's default program, side by side.
WITH fastest AS (
    SELECT
        model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm,
        arg_min(mesh, step_ns) AS mesh, min(step_ns) AS step_ns, count(DISTINCT mesh) AS plans
    FROM times
    WHERE split_by = 'all' AND source = 'modelled' AND is_default
    GROUP BY ALL
)
SELECT
    model, topology, devices, dtype, style, loop, attention, batch, seq, phase,
    jax.mesh AS jax_mesh, jax.step_ns AS jax_step_ns, jax.plans AS jax_plans,
    torchxla.mesh AS torchxla_mesh, torchxla.step_ns AS torchxla_step_ns, torchxla.plans AS torchxla_plans,
    jax.mesh = torchxla.mesh AS same_plan
FROM (FROM fastest WHERE arm = 'jax') AS jax
FULL JOIN (FROM fastest WHERE arm = 'torchxla') AS torchxla
    USING (model, topology, devices, dtype, style, loop, attention, batch, seq, phase)
ORDER BY model, topology, dtype, style, loop, attention, batch, seq, phase DESC
