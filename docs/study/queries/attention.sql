-- What PyTorch's attention call costs: TorchXLA's step as it is and as einsum, beside JAX's and unmodified Hugging Face's.
WITH steps AS (
    SELECT
        t.run, t.model, t.mesh, t.topology, t.phase, t.arm, t.cell, t.emitted_over_inherent, s.step_ns, s.compute_ns, s.exposed_ns
    FROM totals AS t
    JOIN times AS s
        ON (s.run, s.phase, s.arm, s.cell) = (t.run, t.phase, t.arm, t.cell)
        AND s.split_by = 'all' AND s.source = 'modelled'
    WHERE t.cell IN ('tpu', 'tpu+einsum', 'hf-torchxla') AND t.seq = 1024
        AND ((t.topology = 'v6e:2x4' AND t.batch = 8) OR (t.topology = 'v6e:4x8' AND t.batch = 32))
),
drawn AS (
    SELECT run, phase, cell, errors, draw, drawn_ns, step_ns
    FROM "step-draws"
    WHERE arm = 'torchxla' AND cell IN ('tpu', 'tpu+einsum') AND seq = 1024
        AND ((topology = 'v6e:2x4' AND batch = 8) OR (topology = 'v6e:4x8' AND batch = 32))
),
-- In how many draws the einsum stays on its side of the default program.
shares AS (
    SELECT
        a.run, a.phase, a.errors, avg(CASE WHEN (a.drawn_ns > b.drawn_ns) = (a.step_ns > b.step_ns) THEN 1 ELSE 0 END) AS share
    FROM drawn AS a
    JOIN drawn AS b ON (b.run, b.phase, b.cell, b.errors, b.draw) = (a.run, a.phase, 'tpu+einsum', a.errors, a.draw)
    WHERE a.cell = 'tpu' AND a.step_ns <> b.step_ns
    GROUP BY ALL
),
held AS (SELECT run, phase, min(share) AS holds_share FROM shares GROUP BY ALL)
SELECT
    own.model, own.mesh, own.topology, own.phase,
    own.emitted_over_inherent, own.step_ns, einsum.step_ns AS einsum_step_ns, own.step_ns / einsum.step_ns AS call_times,
    h.holds_share,
    -- Links of half and of twice the rate.
    (own.step_ns + own.exposed_ns) / (einsum.step_ns + einsum.exposed_ns) AS at_half_rate_times,
    (own.step_ns - own.exposed_ns / 2) / (einsum.step_ns - einsum.exposed_ns / 2) AS at_double_rate_times,
    (own.compute_ns - einsum.compute_ns) / (own.step_ns - einsum.step_ns) AS compute_share, -- of the difference
    jax.step_ns AS jax_step_ns, einsum.step_ns / jax.step_ns AS einsum_over_jax_times,
    hf.step_ns AS hf_step_ns, hf.step_ns / own.step_ns AS hf_times, hf.emitted_over_inherent AS hf_over_inherent
FROM steps AS own
JOIN steps AS einsum ON (einsum.run, einsum.phase, einsum.cell) = (own.run, own.phase, 'tpu+einsum')
LEFT JOIN steps AS jax ON (jax.run, jax.phase, jax.arm, jax.cell) = (own.run, own.phase, 'jax', 'tpu')
LEFT JOIN steps AS hf ON (hf.run, hf.phase, hf.cell) = (own.run, own.phase, 'hf-torchxla')
LEFT JOIN held AS h ON (h.run, h.phase) = (own.run, own.phase)
WHERE own.arm = 'torchxla' AND own.cell = 'tpu'
ORDER BY own.topology, own.model, own.phase, own.mesh DESC
