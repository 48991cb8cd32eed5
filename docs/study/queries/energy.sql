-- Modelled joules of one token, with the range of the coefficients, by plan and framework (8 chips); null in older data.
SELECT
    model, mesh, phase, arm, per_token_j,
    per_token_j * low_j / step_j AS low_per_token_j, per_token_j * high_j / step_j AS high_per_token_j,
    static_j / step_j AS static_share, (ici_j + dcn_j) / step_j AS network_share,
    (inflated_j + induced_j) / step_j AS needless_share, mean_w / devices AS chip_w
FROM totals
WHERE cell = 'tpu' AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024 AND step_j IS NOT NULL
    AND model IN ('llama-3.1-8b', 'mixtral-8x7b')
ORDER BY model, mesh, phase DESC, arm
