-- What crosses each link between two neighbouring chips in one step, by the routes of the model (8 chips).
SELECT
    model, mesh, phase, arm, device_from, device_to,
    sum(routed_bytes) AS routed_bytes -- of all parallelisms together
FROM matrix
WHERE cell = 'tpu' AND source = 'modelled' AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024
    AND (model, mesh) IN (
        ('llama-3.1-8b', 'tp8'), ('llama-3.1-8b', 'dp2tp4'), ('llama-3.1-8b', 'dp4tp2'), ('llama-3.1-8b', 'pp2tp4'),
        ('llama-3.1-8b', 'cp2tp4'), ('mixtral-8x7b', 'tp8'), ('mixtral-8x7b', 'ep8'), ('mixtral-8x7b', 'ep4tp2')
    )
GROUP BY ALL
ORDER BY model, mesh, phase DESC, arm, device_from, device_to
