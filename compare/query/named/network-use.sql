-- When the network is up: how much of a step the links of some axes carry anything, in how many phases, of how many bytes.
SELECT
    run, model, mesh, topology, phase, arm, cell, source, axes,
    duty_cycle, up_phases, bytes_per_up_phase, peak_bytes_per_s
FROM network
ORDER BY run, phase DESC, arm, cell, source, axes
