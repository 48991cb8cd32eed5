-- What idles: the share of pipeline ticks in which a stage holds no microbatch, and what it computes in them on nothing.
SELECT
    p.run, p.model, p.mesh, p.topology, p.pp, p.microbatches, p.phase, p.arm, p.cell, p.source,
    p.bubble_share,
    p.gpipe_bubble_share, -- (pp - 1) / (microbatches + pp - 1)
    avg(s.bubble_ns) AS bubble_ns, -- of one stage in a step, mean over the stages
    avg(s.busy_in_bubble_ns) AS busy_in_bubble_ns,
    avg(s.pipeline_ns) AS pipeline_ns
FROM pipelines AS p
LEFT JOIN stages AS s USING (run, phase, arm, cell, source)
GROUP BY ALL
ORDER BY p.run, p.phase DESC, p.arm, p.cell, p.source
