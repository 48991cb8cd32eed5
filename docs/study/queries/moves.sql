-- What a plan has to move for one token, by parallelism, and what each framework's default program moves (8 chips).
WITH shared AS (
    SELECT run, model, mesh, devices / batch AS of_decode, devices / (batch * seq) AS of_prefill
    FROM runs
    WHERE topology = 'v6e:2x4' AND batch = 8 AND seq = 1024
),
needed AS (
    SELECT run, phase, axes, sum(step_wire_bytes) AS wire_bytes
    FROM inherent
    GROUP BY ALL
),
emitted AS (
    SELECT
        run, phase, axes,
        sum(step_wire_bytes) FILTER (arm = 'jax') AS jax_wire_bytes,
        sum(step_wire_bytes) FILTER (arm = 'torchxla') AS torchxla_wire_bytes
    FROM "volume-by-axis"
    WHERE cell = 'tpu'
    GROUP BY ALL
)
SELECT
    s.model, s.mesh, phase, axes,
    coalesce(n.wire_bytes, 0) * of_token AS inherent_bytes_per_token,
    coalesce(e.jax_wire_bytes, 0) * of_token AS jax_bytes_per_token,
    coalesce(e.torchxla_wire_bytes, 0) * of_token AS torchxla_bytes_per_token
FROM needed AS n
FULL JOIN emitted AS e USING (run, phase, axes)
JOIN shared AS s USING (run)
CROSS JOIN LATERAL (SELECT CASE phase WHEN 'decode' THEN of_decode ELSE of_prefill END AS of_token)
ORDER BY s.model, s.mesh, phase DESC, inherent_bytes_per_token DESC, axes
