-- What made the runs, the processor time of their processes, and their size on disk.
SELECT
    (SELECT string_agg(DISTINCT wirediff, ', ' ORDER BY wirediff) FROM runs) AS wirediff,
    (SELECT string_agg(DISTINCT made_by, ', ' ORDER BY made_by)
     FROM (SELECT unnest(string_split(wirediff_commit, ', ')) AS made_by FROM runs)) AS wirediff_commit,
    (SELECT min(date) FROM runs) AS first_date, (SELECT max(date) FROM runs) AS last_date,
    (SELECT string_agg(DISTINCT libtpu, ', ' ORDER BY libtpu) FROM runs) AS libtpu,
    (SELECT string_agg(DISTINCT jaxlib, ', ' ORDER BY jaxlib) FROM runs) AS jaxlib,
    (SELECT string_agg(DISTINCT jax, ', ' ORDER BY jax) FROM runs) AS jax,
    (SELECT string_agg(DISTINCT flax, ', ' ORDER BY flax) FROM runs) AS flax,
    (SELECT string_agg(DISTINCT torch, ', ' ORDER BY torch) FROM runs) AS torch,
    (SELECT string_agg(DISTINCT torch_xla, ', ' ORDER BY torch_xla) FROM runs) AS torch_xla,
    (SELECT string_agg(DISTINCT transformers, ', ' ORDER BY transformers) FROM runs) AS transformers,
    (SELECT string_agg(DISTINCT google_tunix, ', ' ORDER BY google_tunix) FROM runs) AS google_tunix,
    (SELECT count(*) FROM totals WHERE status = 'ok') AS programs,
    (SELECT sum(process_s) / 3600 FROM cases) AS process_hours,
    (SELECT sum(disk_bytes) FROM cases) AS disk_bytes
