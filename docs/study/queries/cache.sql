-- What each way to write and read the cache costs a decode step (8 chips), and how often all layers' caches are copied.
WITH programs AS (
    SELECT
        t.run, t.model, t.mesh, t.arm, t.cell, t.status, t.compute_over_floor, s.step_ns, s.compute_ns, s.exposed_ns, t.loop,
        r.layers / r.pp AS layers
    FROM totals AS t
    JOIN runs AS r USING (run)
    LEFT JOIN times AS s
        ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell)
        AND s.split_by = 'all' AND s.source = 'modelled'
    WHERE t.phase = 'decode' AND t.topology = 'v6e:2x4' AND t.batch = 8 AND t.seq = 1024
        AND t.model IN ('llama-3.1-8b', 'qwen3-4b')
        AND (t.cell IN ('tpu', 'tpu+unrolled', 'hf-torchxla', 'tunix+norm') OR t.cell LIKE 'tpu+cache-%')
),
-- Among the ten longest operations; a whole cache is that of all layers of a device, a layer's cache that of one.
copies AS (
    SELECT
        run, arm, cell, sum(executions) AS copies, sum(time_ns) AS copy_ns, sum(memory_bytes) AS copy_bytes,
        arg_max(shape, time_ns) AS shape
    FROM operations
    WHERE phase = 'decode' AND opcode = 'copy' AND array_to_string(tensors, ' ') LIKE '%cache.%'
    GROUP BY ALL
)
SELECT
    p.model, p.mesh, p.arm, p.cell, p.status, p.layers, p.step_ns, p.compute_ns, p.compute_over_floor,
    p.step_ns / d.step_ns AS default_times,
    coalesce(c.copies, 0) AS copies, coalesce(c.copy_ns, 0) AS copy_ns, c.copy_bytes, c.shape,
    coalesce(c.copies, 0) >= p.layers AS in_each_layer
FROM programs AS p
LEFT JOIN programs AS d ON (d.run, d.arm, d.cell) = (p.run, p.arm, 'tpu')
LEFT JOIN copies AS c ON (c.run, c.arm, c.cell) = (p.run, p.arm, p.cell)
ORDER BY p.model, p.mesh DESC, p.arm, p.cell <> 'tpu', p.cell
