-- How large messages are, and how many a device has a part in during one step, by kind (8 chips, one plan each).
SELECT
    model, mesh, phase, arm, kind, axes, payload_bytes,
    sum(count) AS message_count,
    string_agg(DISTINCT scope, ', ' ORDER BY scope) AS scopes
FROM messages
WHERE cell = 'tpu' AND source = 'modelled' AND topology = 'v6e:2x4' AND batch = 8 AND seq = 1024
    AND (model, mesh) IN (('llama-3.1-8b', 'tp8'), ('llama-3.1-8b', 'pp2tp4'), ('mixtral-8x7b', 'ep4tp2'))
GROUP BY ALL
ORDER BY model, mesh, phase DESC, arm, payload_bytes DESC, kind, axes
