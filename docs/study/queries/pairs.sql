-- Who has to send to whom: bytes of one step from device to device, all parallelisms together (8 chips).
SELECT model, mesh, phase, arm, device_from, device_to, sum(logical_bytes) AS logical_bytes
FROM matrix
WHERE cell = 'tpu' AND source = 'modelled' AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024
    AND (model, mesh) IN (
        ('llama-3.1-8b', 'tp8'), ('llama-3.1-8b', 'dp2tp4'), ('llama-3.1-8b', 'pp2tp4'), ('llama-3.1-8b', 'cp2tp4'),
        ('mixtral-8x7b', 'ep8'), ('mixtral-8x7b', 'ep4tp2')
    )
GROUP BY ALL
ORDER BY model, mesh, phase DESC, arm, device_from, device_to
