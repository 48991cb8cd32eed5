-- What idles in pipelines: the share of ticks in which a stage holds no microbatch, beside GPipe's.
SELECT
    b.model, b.mesh, b.topology, b.pp, b.microbatches, b.phase, b.arm,
    b.bubble_share, b.gpipe_bubble_share, b.bubble_ns / t.step_ns AS of_step_share,
    b.busy_in_bubble_ns / nullif(b.bubble_ns, 0) AS busy_share
FROM bubble AS b
JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell, t.source) = (b.run, b.phase, b.arm, b.cell, b.source) AND t.split_by = 'all'
WHERE b.cell = 'tpu' AND b.source = 'modelled' AND t.seq = 1024
    AND ((t.topology = 'v6e:2x4' AND t.batch = 8) OR (t.topology = 'v6e:4x8' AND t.batch = 32))
ORDER BY b.topology, b.model, b.mesh, b.phase DESC, b.arm
