-- How a model's fastest plan changes from 8 to 32 chips with four times the sequences, by framework.
WITH ranked AS (
    SELECT *, row_number() OVER (PARTITION BY model, topology, phase, arm ORDER BY step_ns) AS place
    FROM "plan-ranking"
    WHERE cell = 'tpu' AND seq = 1024
        AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
)
SELECT model, topology, devices, phase, arm, mesh, step_ns, tokens_per_s, tokens_per_s / devices AS tokens_per_s_chip
FROM ranked
WHERE place = 1 AND model IN (SELECT model FROM runs WHERE topology = 'v6e:4x8')
ORDER BY model, phase DESC, arm, devices
