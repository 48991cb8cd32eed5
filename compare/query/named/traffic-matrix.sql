-- Who sends to whom: bytes of a step from device to device, by mesh axes.
SELECT
    run, model, mesh, topology, phase, arm, cell, source, axes, device_from, device_to,
    logical_bytes, -- what the target needs of the source
    routed_bytes -- what crosses the link between neighbours
FROM matrix
ORDER BY run, phase DESC, arm, cell, source, axes, device_from, device_to
