-- Which plan is the fastest: meshes of one model on one slice, ranked by each framework's modelled step.
SELECT
    model, topology, devices, dtype, style, loop, attention, batch, seq, phase, arm, cell,
    rank() OVER plans AS place,
    mesh, microbatches, run,
    step_ns, compute_ns, exposed_ns,
    1e9 * CASE phase WHEN 'prefill' THEN batch * seq ELSE batch END / step_ns AS tokens_per_s,
    step_ns / min(step_ns) OVER (PARTITION BY model, topology, dtype, style, loop, attention, batch, seq, phase, arm, cell)
        AS step_over_fastest
FROM times
WHERE split_by = 'all' AND source = 'modelled'
WINDOW plans AS (
    PARTITION BY model, topology, dtype, style, loop, attention, batch, seq, phase, arm, cell ORDER BY step_ns
)
ORDER BY model, topology, dtype, style, loop, attention, batch, seq, phase DESC, arm, cell, place, run
