-- What idles in pipelines: the share of ticks in which a stage holds no microbatch, beside GPipe's, over all models.
WITH programs AS (
    SELECT
        b.pp, b.microbatches, b.phase, b.arm, b.bubble_share, b.gpipe_bubble_share,
        b.bubble_ns / t.step_ns AS of_step_share
    FROM bubble AS b
    JOIN times AS t
        ON (t.run, t.phase, t.arm, t.cell, t.source) = (b.run, b.phase, b.arm, b.cell, b.source) AND t.split_by = 'all'
    WHERE b.cell = 'tpu' AND b.source = 'modelled' AND t.seq = 1024
        AND ((t.topology = 'v6e:2x4' AND t.batch = 8) OR (t.topology = 'v6e:4x8' AND t.batch = 32))
)
SELECT
    pp, microbatches, phase, arm, count(*) AS programs,
    min(bubble_share) AS least_share, max(bubble_share) AS most_share, any_value(gpipe_bubble_share) AS gpipe_share,
    min(of_step_share) AS least_of_step_share, max(of_step_share) AS most_of_step_share
FROM programs
GROUP BY ALL
ORDER BY pp, microbatches, phase DESC, arm
