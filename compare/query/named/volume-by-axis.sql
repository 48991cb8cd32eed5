-- What each parallelism moves: wire bytes of a step by mesh axes, of one device, of all devices, and per token.
WITH moved AS (
    SELECT
        run, model, mesh, topology, devices, batch, seq, phase, arm, cell, axes,
        sum(executions)::BIGINT AS executions,
        sum(step_wire_bytes)::BIGINT AS step_wire_bytes, -- of one device: mean over the devices
        sum(inherent_bytes)::BIGINT AS inherent_bytes,
        sum(inflated_bytes)::BIGINT AS inflated_bytes,
        sum(induced_bytes)::BIGINT AS induced_bytes,
        count(*) FILTER (step_wire_bytes IS NULL) AS unknown_rows -- in loops whose count is not known: in no sum
    FROM collectives
    GROUP BY ALL
)
SELECT
    run, model, mesh, topology, phase, arm, cell, axes, executions, step_wire_bytes,
    step_wire_bytes * devices AS all_devices_wire_bytes,
    step_wire_bytes * devices / CASE phase WHEN 'prefill' THEN batch * seq ELSE batch END AS wire_bytes_per_token,
    inherent_bytes, inflated_bytes, induced_bytes, unknown_rows
FROM moved
ORDER BY run, phase DESC, arm, cell, step_wire_bytes DESC, axes
