-- Of what kind the exposed time is, by framework and phase (8 chips): medians over programs of its share of the step.
WITH shares AS (
    SELECT k.phase, k.arm, k.run, k.part AS kind, k.exposed_ns / t.step_ns AS of_step
    FROM times AS k
    JOIN times AS t
        ON (t.run, t.phase, t.arm, t.cell, t.source) = (k.run, k.phase, k.arm, k.cell, k.source) AND t.split_by = 'all'
    WHERE k.split_by = 'kind' AND k.source = 'modelled' AND k.cell = 'tpu'
        AND k.topology = 'v6e:2x4' AND k.batch = 8 AND k.seq = 1024
)
SELECT
    phase, arm, kind, count(*) AS programs, median(of_step) AS median_share, max(of_step) AS most_share
FROM shares
GROUP BY ALL
ORDER BY phase DESC, arm, median_share DESC
