-- What of the communication is hidden behind compute, by model, plan and framework (modelled, 8 chips).
SELECT
    model, mesh, phase, arm, step_ns, compute_ns, communication_ns, hidden_ns, exposed_ns,
    exposed_ns / step_ns AS exposed_share,
    overlap AS hidden_share
FROM times
WHERE split_by = 'all' AND source = 'modelled' AND cell = 'tpu'
    AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024
ORDER BY model, mesh, phase DESC, arm
