-- What waits longest: of each program the ten collectives that expose the most time.
SELECT
    c.run, c.model, c.mesh, c.topology, c.phase, c.arm, c.cell, c.source,
    row_number() OVER longest AS place,
    c.collective, c.scope, c.kind, c.axes, c.verdict, c.cause, c.executions, c.payload_bytes,
    c.communication_ns, -- of all its executions in a step
    c.exposed_ns, -- a share that adds up over the collectives
    c.wait_ns,
    c.exposed_ns / t.step_ns AS exposed_share -- of the step
FROM collective_times AS c
JOIN times AS t
    ON (t.run, t.phase, t.arm, t.cell, t.source) = (c.run, c.phase, c.arm, c.cell, c.source) AND t.split_by = 'all'
WINDOW longest AS (
    PARTITION BY c.run, c.phase, c.arm, c.cell, c.source ORDER BY c.exposed_ns DESC, c.communication_ns DESC, c.collective
)
QUALIFY place <= 10
ORDER BY c.run, c.phase DESC, c.arm, c.cell, c.source, place
