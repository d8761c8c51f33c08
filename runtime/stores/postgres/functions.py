"""The functions that run inside PostgreSQL: they check owners, claims, positions and values, and
write, in one step.

A batch is one call of `perform`, and so one message and one transaction: a process that is stopped
or killed leaves nothing half done, and holds no row lock while it is stopped. A refusal is a word
in the answer, not an error: it concerns one operation, and the others of the batch continue.

All rows are locked in one order: owners, claims, entries, each in the order of their keys. So two
batches do not deadlock. If they do, because both insert missing rows, the server ends one of them,
which is retried.
"""

from __future__ import annotations

from typing import Final

__all__ = ["FUNCTIONS"]

# Takes a lock for each owner that ends with this session, and records it. The lock of an earlier
# session may still exist, if the server has not noticed its end: then there is no proof for now.
# Returns the owners whose lock was not available.
_PROVE: Final = """CREATE OR REPLACE FUNCTION {prove}(who bytea[], OUT missing bytea[]) LANGUAGE plpgsql AS {tag}
DECLARE
    one bytea;
    proof_lock bigint;
BEGIN
    missing := ARRAY[]::bytea[];
    FOREACH one IN ARRAY who LOOP
        proof_lock := hashtextextended('{entries_literal}'::regclass::oid || ' ' || encode(one, 'hex'), 0);
        IF NOT EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.objsubid = 1 AND l.granted
            AND l.classid::bigint = (proof_lock >> 32) & 4294967295 AND l.objid::bigint = proof_lock & 4294967295)
            AND NOT pg_try_advisory_lock(proof_lock) THEN
            proof_lock := NULL;
            missing := missing || one;
        END IF;
        UPDATE {owners} AS o SET proof = proof_lock, backend = pg_backend_pid(), since = pg_postmaster_start_time() WHERE o.owner = one;
    END LOOP;
END {tag}"""

# Whether an owner may be alive. An owner whose session has released its lock is removed for good. A
# session can always take its own locks, so they prove nothing about its own owners; and after a
# restart of the server, a missing lock proves nothing.
_LIVES: Final = """CREATE OR REPLACE FUNCTION {lives}(who bytea) RETURNS boolean LANGUAGE plpgsql AS {tag}
DECLARE
    found_owner record;
BEGIN
    SELECT o.until, o.proof, o.backend, o.since INTO found_owner FROM {owners} AS o WHERE o.owner = who;
    IF NOT FOUND OR found_owner.until <= clock_timestamp() THEN
        RETURN false;
    END IF;
    IF found_owner.proof IS NULL OR found_owner.backend = pg_backend_pid() OR found_owner.since <> pg_postmaster_start_time() THEN
        RETURN true;
    END IF;
    IF NOT pg_try_advisory_xact_lock(found_owner.proof) THEN
        RETURN true;
    END IF;
    -- It may have come back meanwhile, in another session. And a row that another one has locked is not waited for: it would be out of order.
    PERFORM 1 FROM {owners} AS o
        WHERE o.owner = who AND o.proof = found_owner.proof AND o.backend = found_owner.backend AND o.since = found_owner.since FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    DELETE FROM {owners} AS o WHERE o.owner = who;
    RETURN false;
END {tag}"""

# Checks the expectations of some writes of a batch. Returns the first one to be refused, or 0. The
# checked rows stay unchanged until the transaction ends, because they are locked; a missing row is
# inserted in a form that counts as missing, because only a row can be locked.
_LOOK: Final = """CREATE OR REPLACE FUNCTION {look}(
    w_first bigint, w_last bigint, w_kinds text[], w_keys bytea[], w_values bytea[], w_afters bigint[], moment timestamptz,
    OUT refused bigint, OUT held bigint, OUT made boolean
) LANGUAGE plpgsql AS {tag}
DECLARE
    there boolean;
    same boolean;
    ends timestamptz;
BEGIN
    refused := 0;
    made := false;
    FOR w IN w_first .. w_last LOOP
        IF w_kinds[w] = 'expect_entry' THEN
            SELECT r.claim IS NOT NULL, r.value = w_values[w] INTO there, same FROM {runs} AS r
                WHERE r.run = w_keys[w] AND (r.expires IS NULL OR r.expires > moment) FOR UPDATE;
            IF (CASE WHEN w_values[w] IS NULL THEN coalesce(there, false) ELSE NOT coalesce(same, false) END) THEN
                refused := w;
                RETURN;
            END IF;
            CONTINUE;
        END IF;
        CONTINUE WHEN w_kinds[w] IN ('put', 'remove', 'entry', 'drop') OR (w_kinds[w] = 'append' AND w_afters[w] < 0);
        LOOP
            SELECT e.records, e.expires, e.value IS NOT DISTINCT FROM w_values[w] INTO held, ends, same FROM {entries} AS e WHERE e.key = w_keys[w] FOR UPDATE;
            there := FOUND AND (ends IS NULL OR ends > moment);
            EXIT WHEN there OR ends = '-infinity';
            IF ends IS NOT NULL THEN
                DELETE FROM {entries} AS e WHERE e.key = w_keys[w] AND e.expires <= moment;
            END IF;
            INSERT INTO {entries} (key, records, written, expires) VALUES (w_keys[w], 0, moment, '-infinity') ON CONFLICT (key) DO NOTHING;
            made := made OR FOUND;
            EXIT WHEN FOUND;
        END LOOP;
        IF NOT there THEN
            held := 0;
        END IF;
        IF (CASE WHEN w_kinds[w] = 'append' THEN held <> w_afters[w] WHEN w_values[w] IS NULL THEN there ELSE NOT (there AND same) END) THEN
            refused := w;
            RETURN;
        END IF;
    END LOOP;
END {tag}"""

# Does some writes of a batch. Returns the number of records in the journal of the last append.
_WRITE: Final = """CREATE OR REPLACE FUNCTION {write}(
    w_first bigint, w_last bigint, w_kinds text[], w_keys bytea[], w_values bytea[], w_afters bigint[], w_spans bigint[], w_lasts bigint[],
    w_records bytea[], w_numbers bigint[], ttl float8, moment timestamptz, OUT size bigint
) LANGUAGE plpgsql AS {tag}
DECLARE
    into_entry bigint;
    r_first bigint;
    r_count bigint;
    later timestamptz;
BEGIN
    FOR w IN w_first .. w_last LOOP
        later := CASE WHEN w_spans[w] >= 0 THEN moment + w_spans[w] * interval '1 microsecond' ELSE moment + make_interval(secs => ttl) END;
        IF w_kinds[w] = 'append' THEN
            r_first := CASE WHEN w = 1 THEN 1 ELSE w_lasts[w - 1] + 1 END;
            r_count := w_lasts[w] - r_first + 1;
            CONTINUE WHEN r_count = 0;  -- only the position was to be looked at
            INSERT INTO {entries} AS e (key, records, written, expires) VALUES (w_keys[w], r_count, moment, later)
                ON CONFLICT (key) DO UPDATE SET records = e.records + excluded.records, written = excluded.written, expires = excluded.expires
                RETURNING e.id, e.records INTO into_entry, size;
            IF r_count = 1 THEN
                INSERT INTO {records} (entry, number, record) VALUES (into_entry, size, w_records[r_first]);
            ELSE
                INSERT INTO {records} (entry, number, record)
                    SELECT into_entry, size - r_count + place, w_records[r_first - 1 + place] FROM generate_series(1, r_count) AS place;
            END IF;
        ELSIF w_kinds[w] = 'put' THEN
            INSERT INTO {entries} AS e (key, value, records, written, expires) VALUES (w_keys[w], w_values[w], 0, moment, later)
                ON CONFLICT (key) DO UPDATE SET value = excluded.value, written = excluded.written, expires = excluded.expires;
        ELSIF w_kinds[w] = 'remove' THEN
            DELETE FROM {entries} AS e WHERE e.key = w_keys[w];
        ELSIF w_kinds[w] = 'entry' THEN
            r_first := CASE WHEN w = 1 THEN 1 ELSE w_lasts[w - 1] + 1 END;
            PERFORM {list_run}(w_keys[w], w_records[r_first : w_lasts[w]], w_numbers[w_afters[w] + 1 : w_afters[w] + 9], w_values[w], later, moment);
        ELSIF w_kinds[w] = 'drop' THEN
            DELETE FROM {runs} AS r WHERE r.run = w_keys[w];
        END IF;
    END LOOP;
END {tag}"""

# Takes the row of a claim. The word is 'none' if another owner that may be alive has it. `made`:
# the row did not exist before.
_TAKE: Final = """CREATE OR REPLACE FUNCTION {take}(wanted bytea, who bytea, OUT word text, OUT made boolean) LANGUAGE plpgsql AS {tag}
DECLARE
    holder bytea;
BEGIN
    made := false;
    LOOP
        SELECT c.owner INTO holder FROM {claims} AS c WHERE c.key = wanted FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO {claims} (key, epoch, attempts) VALUES (wanted, 0, 0) ON CONFLICT (key) DO NOTHING;
        made := made OR FOUND;
    END LOOP;
    word := 'done';
    IF holder <> who AND {lives}(holder) THEN
        word := 'none';
    END IF;
END {tag}"""

_OWN: Final = """CREATE OR REPLACE FUNCTION {own}(kind text, who bytea, span bigint, provable boolean) RETURNS boolean LANGUAGE plpgsql AS {tag}
DECLARE
    later timestamptz := clock_timestamp() + span * interval '1 microsecond';
    row_before record;
BEGIN
    IF kind = 'revoke' THEN
        DELETE FROM {owners} AS o WHERE o.owner = who RETURNING o.proof, o.backend INTO row_before;
        IF row_before.proof IS NOT NULL AND row_before.backend = pg_backend_pid() THEN
            PERFORM pg_advisory_unlock(row_before.proof);
        END IF;
        RETURN true;
    ELSIF kind = 'first' THEN
        INSERT INTO {owners} AS o (owner, until) VALUES (who, later) ON CONFLICT (owner) DO UPDATE SET until = excluded.until;
    END IF;
    UPDATE {owners} AS o SET until = later WHERE o.owner = who RETURNING o.proof, o.backend INTO row_before;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF provable AND (row_before.proof IS NULL OR row_before.backend <> pg_backend_pid()) THEN
        PERFORM {prove}(ARRAY[who]);
    ELSIF NOT provable AND row_before.proof IS NOT NULL THEN
        UPDATE {owners} AS o SET proof = NULL WHERE o.owner = who;
    END IF;
    RETURN true;
END {tag}"""

# The next epoch: larger than all before it, and at least the server's clock in microseconds, so
# that a replica which has lost the last epochs returns none twice. Reading the sequence and
# advancing it must be one step, but a lock that lasts until the end of the transaction would block
# all other claims. So that part is rolled back, which releases the lock at once; sequences are not
# rolled back. `_PERFORM` does a batch, unless it was done already: then it returns the same
# answers. For each operation: a word, two numbers, an owner.
_NEXT_EPOCH: Final = """CREATE OR REPLACE FUNCTION {next_epoch}(OUT token bigint) LANGUAGE plpgsql AS {tag}
BEGIN
    BEGIN
        PERFORM pg_advisory_xact_lock(1969517428, hashtext('{epochs_literal}'::regclass::oid::text));
        token := setval('{epochs_literal}', greatest(nextval('{epochs_literal}'), (extract(epoch FROM clock_timestamp()) * 1000000)::bigint));
        RAISE EXCEPTION USING ERRCODE = 'OB001';
    EXCEPTION WHEN SQLSTATE 'OB001' THEN
        NULL;
    END;
END {tag}"""

_PERFORM: Final = """CREATE OR REPLACE FUNCTION {perform}(
    writer bytea, number bigint, ttl float8, provable boolean, patience integer,
    o_kinds text[], o_keys bytea[], o_owners bytea[], o_epochs bigint[], o_spans bigint[], o_endings text[], o_lasts bigint[],
    w_kinds text[], w_keys bytea[], w_values bytea[], w_afters bigint[], w_spans bigint[], w_lasts bigint[], w_records bytea[],
    w_numbers bigint[],
    OUT words text[], OUT ones bigint[], OUT twos bigint[], OUT names bytea[]
) LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS {tag}
DECLARE
    moment timestamptz;
    w_first bigint;
    w_last bigint := 0;
    known bytea;
    known_until timestamptz;
    held record;
    looked record;
    word text;
    fresh boolean;
BEGIN
    IF patience IS NOT NULL THEN
        PERFORM set_config('lock_timeout', patience::text, true);
    END IF;
    -- Waits for a transaction that has begun with the same batch, and has not ended yet.
    INSERT INTO {writers} AS w (id, batch, at) VALUES (writer, number, clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at WHERE w.batch < excluded.batch;
    IF NOT FOUND THEN
        SELECT w.words, w.ones, w.twos, w.names INTO words, ones, twos, names FROM {writers} AS w WHERE w.id = writer;
        RETURN;
    END IF;
    IF 'revoke' = ANY (o_kinds) THEN
        PERFORM 1 FROM {owners} AS o WHERE o.owner = ANY (o_owners) ORDER BY o.owner FOR UPDATE;
    ELSE
        PERFORM 1 FROM {owners} AS o WHERE o.owner = ANY (o_owners) ORDER BY o.owner FOR KEY SHARE;
    END IF;
    PERFORM 1 FROM {claims} AS c WHERE c.key = ANY (o_keys) ORDER BY c.key FOR UPDATE;
    SELECT min(locked.expires) INTO moment FROM (
        SELECT e.expires FROM {entries} AS e WHERE e.key = ANY (w_keys) ORDER BY e.key FOR UPDATE
    ) AS locked;
    fresh := moment <= clock_timestamp();
    moment := clock_timestamp();
    IF fresh THEN  -- What has expired must be gone before something is written in its place.
        DELETE FROM {entries} AS e WHERE e.key = ANY (w_keys) AND e.expires <= moment;
    END IF;
    words := array_fill('done'::text, ARRAY[cardinality(o_kinds)]);
    ones := array_fill(0::bigint, ARRAY[cardinality(o_kinds)]);
    twos := ones;
    names := array_fill(NULL::bytea, ARRAY[cardinality(o_kinds)]);
    FOR i IN 1 .. cardinality(o_kinds) LOOP
        w_first := w_last + 1;
        w_last := o_lasts[i];
        IF o_kinds[i] <> 'claim' AND o_kinds[i] <> 'commit' THEN
            known := NULL;
            IF NOT {own}(o_kinds[i], o_owners[i], o_spans[i], provable) THEN
                words[i] := 'none';
            END IF;
            CONTINUE;
        END IF;
        word := 'done';
        fresh := false;
        IF o_kinds[i] = 'claim' THEN
            SELECT t.word, t.made INTO word, fresh FROM {take}(o_keys[i], o_owners[i]) AS t;
        ELSIF o_owners[i] IS NOT NULL THEN
            -- It was locked above; one that was made after that has another epoch.
            SELECT c.owner, c.epoch INTO held FROM {claims} AS c WHERE c.key = o_keys[i];
            IF held.owner IS DISTINCT FROM o_owners[i] OR held.epoch <> o_epochs[i] THEN
                word := 'epoch';
                names[i] := held.owner;
            END IF;
        END IF;
        IF word = 'done' AND o_owners[i] IS NOT NULL THEN
            IF known IS DISTINCT FROM o_owners[i] THEN
                known := o_owners[i];
                SELECT o.until INTO known_until FROM {owners} AS o WHERE o.owner = known FOR KEY SHARE;
            END IF;
            IF known_until IS NULL OR known_until <= clock_timestamp() THEN
                word := 'owner';
            END IF;
        END IF;
        IF word = 'done' THEN
            looked := {look}(w_first, w_last, w_kinds, w_keys, w_values, w_afters, moment);
            IF looked.refused > 0 THEN
                word := CASE WHEN w_kinds[looked.refused] = 'append' THEN 'position' ELSE 'value' END;
                ones[i] := looked.refused;
                twos[i] := looked.held;
            ELSE
                ones[i] := {write}(w_first, w_last, w_kinds, w_keys, w_values, w_afters, w_spans, w_lasts, w_records, w_numbers, ttl, moment);
            END IF;
            IF looked.made THEN
                DELETE FROM {entries} AS e WHERE e.key = ANY (w_keys[w_first : w_last]) AND e.expires = '-infinity';
            END IF;
        END IF;
        IF word <> 'done' THEN
            words[i] := word;
            IF fresh THEN
                DELETE FROM {claims} AS c WHERE c.key = o_keys[i];
            END IF;
        ELSIF o_kinds[i] = 'claim' THEN
            UPDATE {claims} AS c SET owner = o_owners[i], epoch = {next_epoch}(), attempts = c.attempts + 1 WHERE c.key = o_keys[i]
                RETURNING c.epoch, c.attempts INTO held;
            ones[i] := held.epoch;
            twos[i] := held.attempts;
        ELSIF o_owners[i] IS NOT NULL AND o_endings[i] = 'forget' THEN
            DELETE FROM {claims} AS c WHERE c.key = o_keys[i];
        ELSIF o_owners[i] IS NOT NULL AND o_endings[i] = 'release' THEN
            UPDATE {claims} AS c SET owner = NULL, attempts = 0 WHERE c.key = o_keys[i];
        END IF;
    END LOOP;
    UPDATE {writers} AS w SET words = perform_words.a, ones = perform_words.b, twos = perform_words.c, names = perform_words.d
        FROM (VALUES (words, ones, twos, names)) AS perform_words (a, b, c, d) WHERE w.id = writer;
END {tag}"""

# Removes a part of the expired data, so that no row is locked for long; starts with the entries
# after a given one. Locked rows are in use.
_PRUNE: Final = """CREATE OR REPLACE FUNCTION {prune}(behind bigint, older float8, most integer, OUT gone bigint, OUT last_entry bigint)
LANGUAGE plpgsql AS {tag}
DECLARE
    moment timestamptz := clock_timestamp();
    old_ids bigint[];
    gone_keys bytea[];
    left_keys bytea[];
BEGIN
    IF behind = 0 THEN
        DELETE FROM {owners} AS o USING (SELECT x.owner FROM {owners} AS x WHERE x.until <= moment FOR UPDATE SKIP LOCKED) AS old WHERE o.owner = old.owner;
        DELETE FROM {writers} AS w USING (SELECT x.id FROM {writers} AS x WHERE x.at < moment - interval '1 day' FOR UPDATE SKIP LOCKED) AS old
            WHERE w.id = old.id;
        DELETE FROM {runs} AS r USING (
            SELECT x.id FROM {runs} AS x WHERE x.expires <= moment OR x.written <= moment - make_interval(secs => older) FOR UPDATE SKIP LOCKED
        ) AS old WHERE r.id = old.id;
    END IF;
    SELECT array_agg(old.id), max(old.id) INTO old_ids, last_entry FROM (
        SELECT e.id FROM {entries} AS e WHERE e.id > behind AND (e.expires <= moment OR e.written <= moment - make_interval(secs => older))
        ORDER BY e.id LIMIT most FOR UPDATE SKIP LOCKED
    ) AS old;
    WITH removed AS (DELETE FROM {entries} AS e WHERE e.id = ANY (old_ids) RETURNING e.key) SELECT array_agg(r.key) INTO gone_keys FROM removed AS r;
    -- Looked at twice: what was locked in between is seen as it is now by the second look only.
    SELECT array_agg(idle.key) INTO left_keys FROM (
        SELECT c.key FROM {claims} AS c
        WHERE NOT EXISTS (SELECT FROM {owners} AS o WHERE o.owner = c.owner) AND NOT EXISTS (SELECT FROM {entries} AS e WHERE e.key = c.key)
            AND NOT EXISTS (SELECT FROM {runs} AS r WHERE r.claim = c.key)
        LIMIT most FOR UPDATE OF c SKIP LOCKED
    ) AS idle;
    WITH removed AS (
        DELETE FROM {claims} AS c WHERE c.key = ANY (left_keys)
        AND NOT EXISTS (SELECT FROM {owners} AS o WHERE o.owner = c.owner) AND NOT EXISTS (SELECT FROM {entries} AS e WHERE e.key = c.key)
            AND NOT EXISTS (SELECT FROM {runs} AS r WHERE r.claim = c.key)
        RETURNING c.key
    )
    SELECT count(DISTINCT k.key) INTO gone FROM (SELECT r.key FROM removed AS r UNION ALL SELECT unnest(gone_keys)) AS k (key);
    IF cardinality(left_keys) = most THEN
        last_entry := greatest(last_entry, behind, 1);
    ELSIF coalesce(cardinality(old_ids), 0) < most THEN
        last_entry := NULL;
    END IF;
END {tag}"""

FUNCTIONS: Final = (_PROVE, _LIVES, _LOOK, _WRITE, _TAKE, _OWN, _NEXT_EPOCH, _PERFORM, _PRUNE)
