"""The rows of runs of a `PostgresStore`: their tables, the functions that write them inside the
server, and the statements that read them.

Each index starts with the searched column and the status, and ends with the start time of the run.
For every kind of query, the newest entries of each status are adjacent, and those of several
statuses are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..threaded_store import EncodedQuery

__all__ = ["ENTRY", "ENTRY_FUNCTIONS", "ENTRY_TABLES", "LISTING_NAMES", "entries_arguments"]

LISTING_NAMES: Final = (
    "runs",
    "runs_by_status",
    "runs_by_agent",
    "runs_by_session",
    "runs_by_claim",
    "runs_by_end",
    "run_labels",
    "labels_by_run",
    "as_text",
    "run_list",
    "label_list",
    "list_run",
    "listed",
)

ENTRY_TABLES: Final = (
    """CREATE TABLE {runs} (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run bytea NOT NULL UNIQUE,
        agent bytea NOT NULL,
        session bytea NOT NULL,
        status bytea NOT NULL,
        claim bytea,
        checkpoint bytea NOT NULL,
        last_agent bytea NOT NULL,
        error bytea NOT NULL,
        started bigint NOT NULL,
        updated bigint NOT NULL,
        ended bigint NOT NULL,
        attempts bigint NOT NULL,
        steps bigint NOT NULL,
        input_tokens bigint NOT NULL,
        output_tokens bigint NOT NULL,
        cached_tokens bigint NOT NULL,
        requests bigint NOT NULL,
        labels bytea[] NOT NULL,
        value bytea NOT NULL,
        written timestamptz NOT NULL,
        expires timestamptz
    )""",
    "CREATE INDEX {runs_by_status_alone} ON {runs} (status, started, id)",
    "CREATE INDEX {runs_by_agent_alone} ON {runs} (agent, status, started, id)",
    (
        "CREATE INDEX {runs_by_session_alone} ON {runs} (session, status, started, id) WHERE "
        "session > ''"
    ),
    "CREATE INDEX {runs_by_claim_alone} ON {runs} (claim) WHERE claim IS NOT NULL",
    "CREATE INDEX {runs_by_end_alone} ON {runs} (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE {run_labels} (
        label bytea NOT NULL, status bytea NOT NULL, started bigint NOT NULL, id bigint NOT NULL REFERENCES {runs} ON DELETE CASCADE,
        PRIMARY KEY (label, status, started, id)
    )""",
    "CREATE INDEX {labels_by_run_alone} ON {run_labels} (id)",
    "CREATE INDEX {entries_by_end_alone} ON {entries} (expires) WHERE expires IS NOT NULL",
    # For people: texts as texts, times as times. The library itself never reads it.
    """CREATE FUNCTION {as_text}(stored bytea) RETURNS text LANGUAGE plpgsql STABLE AS {tag}
    BEGIN
        RETURN convert_from(stored, 'UTF8');
    EXCEPTION WHEN OTHERS THEN
        RETURN encode(stored, 'escape');
    END {tag}""",
    """CREATE VIEW {run_list} AS SELECT
        {as_text}(r.run) AS run,
        {as_text}(r.agent) AS agent,
        nullif({as_text}(r.session), '') AS session,
        {as_text}(r.status) AS status,
        r.claim IS NOT NULL AS unfinished,
        {as_text}(o.owner) AS owner,
        {as_text}(r.checkpoint) AS checkpoint,
        to_timestamp(r.started / 1e6) AS started,
        to_timestamp(r.updated / 1e6) AS updated,
        CASE WHEN r.ended > 0 THEN to_timestamp(r.ended / 1e6) END AS ended,
        r.attempts,
        r.steps,
        r.input_tokens,
        r.output_tokens,
        r.cached_tokens,
        r.requests,
        nullif({as_text}(r.last_agent), '') AS last_agent,
        nullif({as_text}(r.error), '') AS error
    FROM {runs} AS r LEFT JOIN {claims} AS c ON c.key = r.claim
    LEFT JOIN {owners} AS o ON o.owner = c.owner AND o.until > clock_timestamp()
    WHERE r.status <> 'timer' AND (r.expires IS NULL OR r.expires > clock_timestamp())""",
    """CREATE VIEW {label_list} AS SELECT
        {as_text}(r.run) AS run,
        {as_text}(substring(l.label FROM 1 FOR position('\\x00'::bytea IN l.label) - 1)) AS name,
        {as_text}(substring(l.label FROM position('\\x00'::bytea IN l.label) + 1)) AS value
    FROM {run_labels} AS l JOIN {runs} AS r ON r.id = l.id""",
)

# Writes one entry. An expired entry counts as missing. Each write of an entry with an expiry
# removes a few expired ones; rows that another session has locked are skipped.
_LIST_RUN: Final = """CREATE OR REPLACE FUNCTION {list_run}(
    which bytea, texts bytea[], numbers bigint[], said bytea, later timestamptz, moment timestamptz
) RETURNS void LANGUAGE plpgsql AS {tag}
DECLARE
    held record;
    number bigint;
    words integer;
BEGIN
    SELECT r.id, r.status, r.expires INTO held FROM {runs} AS r WHERE r.run = which FOR UPDATE;
    IF FOUND AND held.expires <= moment THEN
        DELETE FROM {runs} AS r WHERE r.id = held.id;
    ELSIF FOUND THEN
        UPDATE {runs} AS r SET
            session = texts[2], status = texts[3], claim = nullif(texts[4], ''), checkpoint = texts[5], last_agent = texts[6], error = texts[7],
            updated = numbers[2], ended = numbers[3], attempts = numbers[4], steps = numbers[5], input_tokens = numbers[6],
            output_tokens = numbers[7], cached_tokens = numbers[8], requests = numbers[9], value = said, written = moment, expires = later
            WHERE r.id = held.id;
        number := held.id;
        IF held.status <> texts[3] THEN
            UPDATE {run_labels} AS l SET status = texts[3] WHERE l.id = number;
        END IF;
    END IF;
    IF number IS NULL THEN
        INSERT INTO {runs} AS r (
            run, agent, session, status, claim, checkpoint, last_agent, error,
            started, updated, ended, attempts, steps, input_tokens, output_tokens, cached_tokens, requests,
            labels, value, written, expires
        ) VALUES (
            which, texts[1], texts[2], texts[3], nullif(texts[4], ''), texts[5], texts[6], texts[7],
            numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], numbers[6], numbers[7], numbers[8], numbers[9],
            texts[8:], said, moment, later
        ) ON CONFLICT (run) DO UPDATE SET  -- Another session has just made it.
            session = excluded.session, status = excluded.status, claim = excluded.claim, checkpoint = excluded.checkpoint,
            last_agent = excluded.last_agent, error = excluded.error, updated = excluded.updated, ended = excluded.ended,
            attempts = excluded.attempts, steps = excluded.steps, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
            cached_tokens = excluded.cached_tokens, requests = excluded.requests,
            value = excluded.value, written = excluded.written, expires = excluded.expires
            RETURNING r.id, cardinality(r.labels) INTO number, words;
        IF words > 0 THEN
            DELETE FROM {run_labels} AS l WHERE l.id = number;
            INSERT INTO {run_labels} (label, status, started, id) SELECT DISTINCT word, texts[3], r.started, number
                FROM {runs} AS r, unnest(r.labels) AS word WHERE r.id = number;
        END IF;
    END IF;
    IF later IS NOT NULL THEN
        DELETE FROM {runs} AS r USING (SELECT x.id FROM {runs} AS x WHERE x.expires <= moment ORDER BY x.expires LIMIT 4 FOR UPDATE SKIP LOCKED) AS old
            WHERE r.id = old.id;
        DELETE FROM {entries} AS e
            USING (
                SELECT x.id FROM {entries} AS x WHERE x.expires <= moment AND x.expires > '-infinity' ORDER BY x.expires LIMIT 4 FOR UPDATE SKIP LOCKED
            ) AS old
            WHERE e.id = old.id;
    END IF;
END {tag}"""

# The newest entries of each requested status, merged.
_LISTED: Final = """CREATE OR REPLACE FUNCTION {listed}(
    states bytea[], who bytea, belongs bytea, words bytea[], since bigint, until bigint, most bigint, behind bytea
) RETURNS TABLE (run bytea, texts bytea[], numbers bigint[], labels bytea[], value bytea)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off AS {tag}
DECLARE
    place bigint := until;
    last_id bigint := -1;
    source text;
BEGIN
    IF behind IS NOT NULL THEN
        SELECT r.started, r.id INTO place, last_id FROM {runs} AS r WHERE r.run = behind;
        IF NOT FOUND THEN
            RETURN;
        END IF;
    END IF;
    IF cardinality(words) > 0 THEN
        source := 'SELECT r.* FROM {run_labels_literal} AS f JOIN {runs_literal} AS r ON r.id = f.id WHERE f.label = $4[1] AND r.labels @> $4 AND f.';
    ELSE
        source := 'SELECT f.* FROM {runs_literal} AS f WHERE f.';
    END IF;
    source := source || 'status = one.state AND f.started >= $5 AND f.started < $6 AND (f.started, f.id) < ($7, $8)';
    IF belongs IS NOT NULL THEN
        source := source || CASE WHEN cardinality(words) > 0 THEN ' AND r.session = $3' ELSE ' AND f.session > '''' AND f.session = $3' END;
    END IF;
    IF who IS NOT NULL THEN
        source := source || CASE WHEN cardinality(words) > 0 THEN ' AND r.agent = $2' ELSE ' AND f.agent = $2' END;
    END IF;
    source := source || CASE WHEN cardinality(words) > 0 THEN ' AND (r.expires' ELSE ' AND (f.expires' END || ' IS NULL OR '
        || CASE WHEN cardinality(words) > 0 THEN 'r' ELSE 'f' END || '.expires > clock_timestamp()) ORDER BY f.started DESC, f.id DESC LIMIT $9';
    RETURN QUERY EXECUTE 'SELECT m.run, ARRAY[m.agent, m.session, m.status, coalesce(m.claim, ''''), m.checkpoint, m.last_agent, m.error],
        ARRAY[m.started, m.updated, m.ended, m.attempts, m.steps, m.input_tokens, m.output_tokens, m.cached_tokens, m.requests],
        m.labels, m.value FROM unnest($1) AS one (state), LATERAL ('
        || source || ') AS m ORDER BY m.started DESC, m.id DESC LIMIT $9'
        USING states, who, belongs, words, since, until, place, last_id, most;
END {tag}"""

ENTRY_FUNCTIONS: Final = (_LIST_RUN, _LISTED)

ENTRY: Final = {
    "run_entry": (
        "SELECT run, ARRAY[agent, session, status, coalesce(claim, ''), checkpoint, last_agent, "
        "error], ARRAY[started, updated, ended, attempts, steps, input_tokens, output_tokens, "
        "cached_tokens, requests], labels, value FROM {runs} WHERE run = %s AND (expires IS NULL "
        "OR expires > clock_timestamp())"
    ),
    "run_entries": (
        "SELECT * FROM {listed}(%s::bytea[], %s::bytea, %s::bytea, %s::bytea[], %s::bigint, "
        "%s::bigint, %s::bigint, %s::bytea)"
    ),
}


def entries_arguments(query: EncodedQuery) -> tuple[object, ...]:
    states, labels = list(query.statuses), list(query.labels)
    return (
        states,
        query.agent,
        query.session,
        labels,
        query.since,
        query.until,
        query.limit,
        query.after,
    )
