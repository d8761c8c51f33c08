"""The removal of expired data from a `PostgresStore`, by statements that each remove a part, so
that no row is locked for long, and rows in use are skipped.

Leftover claims are removed by the function `prune` of `functions.py`, called with a start after all
entries.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PRUNING"]

PRUNING: Final = {
    "prune_small": """
        WITH dead AS (
            DELETE FROM {owners} AS o USING (SELECT x.owner FROM {owners} AS x WHERE x.until <= {now} FOR UPDATE SKIP LOCKED) AS old WHERE o.owner = old.owner
        ), silent AS (
            DELETE FROM {writers} AS w USING (SELECT x.id FROM {writers} AS x WHERE x.at < {now} - interval '1 day' FOR UPDATE SKIP LOCKED) AS old
            WHERE w.id = old.id
        )
        SELECT 0""",
    # After which run; how many are checked; the age. Returns the last one, or nothing at the end.
    "prune_runs": """
        WITH looked AS MATERIALIZED (SELECT id FROM {runs} WHERE id > %s ORDER BY id LIMIT %s),
        old AS (
            SELECT r.id FROM {runs} AS r WHERE r.id IN (SELECT id FROM looked)
            AND (r.expires <= {now} OR (%s::float8 IS NOT NULL AND r.written <= {now} - make_interval(secs => %s::float8))) FOR UPDATE SKIP LOCKED
        ), removed AS (DELETE FROM {runs} AS r USING old WHERE r.id = old.id)
        SELECT max(id) FROM looked""",
    # The age of values that last for longer than `marks.AGELESS` is ignored. After which entry; the
    # age; how many are checked; the total size that may be removed, twice. Returns the last checked
    # entry, or nothing at the end; and the number of removed keys, except those that still have a
    # claim, or nothing if the first one is too large.
    "prune_entries": """
        WITH looked AS MATERIALIZED (
            SELECT id, records, coalesce(octet_length(value), 0) / 8192 AS pages, row_number() OVER (ORDER BY id) AS place,
                coalesce(
                    expires <= {now}
                    OR (written <= {now} - make_interval(secs => given.older) AND coalesce(expires <= {now} + make_interval(secs => 1e9), true)),
                    false
                ) AS is_old
            FROM (SELECT %s::bigint AS behind, %s::float8 AS older) AS given, {entries} WHERE id > given.behind ORDER BY id LIMIT %s
        ), summed AS (
            SELECT id, records, place, is_old, sum(CASE WHEN is_old THEN records + pages + 1 ELSE 0 END) OVER (ORDER BY id) AS weight FROM looked
        ), taken AS (SELECT id, is_old FROM summed WHERE weight <= %s OR (place = 1 AND (records <= %s OR NOT is_old))),
        old AS (SELECT e.id FROM {entries} AS e WHERE e.id IN (SELECT id FROM taken WHERE is_old) FOR UPDATE SKIP LOCKED),
        removed AS (DELETE FROM {entries} AS e USING old WHERE e.id = old.id RETURNING e.key)
        SELECT (SELECT max(id) FROM taken), CASE WHEN EXISTS (SELECT FROM taken) OR NOT EXISTS (SELECT FROM looked) THEN (
            SELECT count(*) FROM removed AS r WHERE NOT EXISTS (
                SELECT FROM {claims} AS c WHERE c.key = r.key AND NOT EXISTS (SELECT FROM {owners} AS o WHERE o.owner = c.owner)
            )
        ) END""",
    # After which entry; how many of its records are removed, twice. From now on nothing finds it: a
    # write under its key starts a new entry. Returns it, and the number of removed records: none,
    # if it is in use.
    "prune_records": """
        WITH first AS MATERIALIZED (SELECT id FROM {entries} WHERE id > %s ORDER BY id LIMIT 1),
        held AS (SELECT e.id FROM {entries} AS e WHERE e.id = (SELECT id FROM first) FOR UPDATE SKIP LOCKED),
        over AS (
            UPDATE {entries} AS e SET expires = least(e.expires, {now}), records = greatest(e.records - %s, 0) FROM held WHERE e.id = held.id
        ), gone AS (
            DELETE FROM {records} AS r USING (
                SELECT x.entry, x.number FROM {records} AS x JOIN held ON x.entry = held.id ORDER BY x.number LIMIT %s
            ) AS old WHERE r.entry = old.entry AND r.number = old.number RETURNING 1
        )
        SELECT (SELECT id FROM first), (SELECT count(*) FROM gone)""",
}
