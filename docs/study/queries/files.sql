-- The tables that ship with the study, and how many rows each has.
WITH files(name, lines, says) AS (
    SELECT 'runs', count(*), 'a case that was compiled, and the versions that made it' FROM runs UNION ALL
    SELECT 'cases', count(*), 'a combination that the study asked for, and what it came to' FROM cases UNION ALL
    SELECT 'totals', count(*), 'a program: its bytes by verdict, and its modelled energy' FROM totals UNION ALL
    SELECT 'times', count(*), 'a program''s modelled step, whole or one part of it' FROM times UNION ALL
    SELECT 'operations', count(*), 'one of the ten longest operations of a program' FROM operations UNION ALL
    SELECT 'inherent', count(*), 'a collective that a plan requires' FROM inherent UNION ALL
    SELECT 'collectives', count(*), 'a collective of a program' FROM collectives UNION ALL
    SELECT 'messages', count(*), 'messages of one kind and shape' FROM messages UNION ALL
    SELECT 'matrix', count(*), 'what one device sends to another' FROM matrix UNION ALL
    SELECT 'network', count(*), 'the network of some axes in a step' FROM network UNION ALL
    SELECT 'volume', count(*), 'bytes sent in each equal part of a step' FROM volume UNION ALL
    SELECT 'windows', count(*), 'an interval between traffic of different axes' FROM windows
)
SELECT '[' || name || '.parquet](data/' || name || '.parquet)' AS link, lines, says
FROM files
