-- How large messages are and how many: payloads of one device in a step, by mesh axes, kind and scope.
SELECT
    run, model, mesh, topology, phase, arm, cell, source, axes, kind, scope, dtype, shapes_json,
    payload_bytes, -- of one message
    count AS messages_per_step,
    payload_bytes * count AS step_payload_bytes
FROM messages
ORDER BY run, phase DESC, arm, cell, source, step_payload_bytes DESC, axes, kind, scope, shapes_json
