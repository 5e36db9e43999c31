-- The tables of histories, of any number of clusters: each is a log. Columns are those of the tables in a file, besides `log` and `day`.
-- Times are microseconds since 1970.
CREATE SCHEMA kubediff;
SET LOCAL search_path = kubediff;

-- Numbers of names and kinds come from one sequence for all logs, so that the index of tags finds little of another log.
CREATE SEQUENCE ids AS int;
CREATE SEQUENCE object_ids;
CREATE SEQUENCE content_ids;

-- As SQLite has it.
CREATE FUNCTION instr(text, text) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT strpos($1, $2) $$;

CREATE TABLE format (version int NOT NULL, oldest_program int NOT NULL);

CREATE FUNCTION this_log() RETURNS int LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('kubediff.log', true), '')::int $$;

CREATE TABLE logs (
    log int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, id uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
    cluster_uid text NOT NULL UNIQUE, cluster_name text UNIQUE, owner name NOT NULL DEFAULT session_user
);
-- The right to write to a log, of one process at a time: its random token. Every commit locks the row, so its numbers have no holes and
-- become visible in order.
CREATE TABLE terms (
    log int PRIMARY KEY REFERENCES logs, token uuid, holder text, since timestamptz, expires_at timestamptz, last_batch uuid,
    standby text, standby_at timestamptz
) WITH (fillfactor = 20);
CREATE TABLE meta (log int NOT NULL DEFAULT this_log(), name text COLLATE "C", value bigint, PRIMARY KEY (log, name)) WITH (fillfactor = 50);
CREATE TABLE timelines (log int NOT NULL DEFAULT this_log(), first bigint, timeline bigint NOT NULL, PRIMARY KEY (log, first));
CREATE TABLE days (log int NOT NULL DEFAULT this_log(), day date, last bigint NOT NULL, PRIMARY KEY (log, day));

CREATE TABLE versions (
    log int NOT NULL DEFAULT this_log(), day date NOT NULL, number bigint NOT NULL, object bigint NOT NULL,
    kind int NOT NULL, namespace int NOT NULL, verb smallint NOT NULL, source smallint NOT NULL, observed_at bigint NOT NULL,
    rv text NOT NULL, rv_before text, base bigint NOT NULL, content bigint, split int, length int NOT NULL, crc bigint NOT NULL,
    dictionary int NOT NULL, detail_length int NOT NULL, detail_dictionary int NOT NULL, tags int[] NOT NULL,
    detail bytea NOT NULL, frame bytea NOT NULL, PRIMARY KEY (log, number, day)
) PARTITION BY RANGE (day);
-- They are packed already.
ALTER TABLE versions ALTER detail SET STORAGE EXTERNAL, ALTER frame SET STORAGE EXTERNAL;
CREATE INDEX versions_by_object ON versions (object, number);
CREATE INDEX versions_by_time ON versions (log, observed_at);
CREATE INDEX versions_by_tags ON versions USING gin (tags);
CREATE TABLE contents (
    log int NOT NULL DEFAULT this_log(), day date NOT NULL, id bigint NOT NULL, length int NOT NULL, dictionary int NOT NULL,
    frame bytea NOT NULL, PRIMARY KEY (log, id, day)
) PARTITION BY RANGE (day);
ALTER TABLE contents ALTER frame SET STORAGE EXTERNAL;
-- Versions that outlive their day: the last one of each object before what is kept.
CREATE TABLE versions_kept PARTITION OF versions FOR VALUES FROM (MINVALUE) TO ('1970-01-02');
CREATE TABLE contents_kept PARTITION OF contents FOR VALUES FROM (MINVALUE) TO ('1970-01-02');

CREATE TABLE objects (
    id bigint NOT NULL, log int NOT NULL DEFAULT this_log(), family int NOT NULL, namespace int NOT NULL, name text COLLATE "C" NOT NULL,
    uid text COLLATE "C" NOT NULL, first bigint NOT NULL, returned bigint NOT NULL DEFAULT 0, owner text COLLATE "C", about text COLLATE "C",
    ended bigint, ended_at bigint, state_rv text, state_at bigint, state_length int, state_crc bigint, state bytea,
    PRIMARY KEY (log, id), UNIQUE (log, uid, family)
) WITH (fillfactor = 85);
ALTER TABLE objects ALTER state SET STORAGE EXTERNAL;
CREATE INDEX objects_by_name ON objects (log, name, family, namespace);
CREATE INDEX objects_by_place ON objects (log, family, namespace);
CREATE INDEX objects_by_owner ON objects (log, owner) WHERE owner IS NOT NULL;
CREATE INDEX objects_by_about ON objects (log, about) WHERE about IS NOT NULL;
CREATE INDEX objects_by_end ON objects (log, ended) WHERE ended IS NOT NULL;
CREATE TABLE kinds (
    id int NOT NULL DEFAULT nextval('ids'), log int NOT NULL DEFAULT this_log(), family int NOT NULL, api_group text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL, kind text COLLATE "C" NOT NULL, plural text COLLATE "C" NOT NULL,
    PRIMARY KEY (log, id), UNIQUE (log, api_group, plural, version, kind)
);
CREATE TABLE namespaces (
    id int NOT NULL DEFAULT nextval('ids'), log int NOT NULL DEFAULT this_log(), name text COLLATE "C" NOT NULL, PRIMARY KEY (log, id), UNIQUE (log, name)
);
CREATE TABLE managers (LIKE namespaces INCLUDING ALL);
CREATE TABLE paths (LIKE namespaces INCLUDING ALL);
CREATE TABLE dictionaries (
    id int NOT NULL DEFAULT nextval('ids'), log int NOT NULL DEFAULT this_log(), kind int NOT NULL, purpose smallint NOT NULL,
    finalized smallint NOT NULL, crc bigint NOT NULL, bytes bytea NOT NULL, PRIMARY KEY (log, id)
);
CREATE TABLE gaps (
    log int NOT NULL DEFAULT this_log(), number bigint, from_at bigint NOT NULL, to_at bigint NOT NULL, resource text COLLATE "C", reason text NOT NULL,
    PRIMARY KEY (log, number)
);
CREATE TABLE scrubs (
    log int NOT NULL DEFAULT this_log(), number bigint, at bigint NOT NULL, first bigint NOT NULL, last bigint NOT NULL, masked bigint NOT NULL,
    cause text NOT NULL, PRIMARY KEY (log, number)
);
CREATE TABLE positions (log int NOT NULL DEFAULT this_log(), resource text COLLATE "C", rv text NOT NULL, PRIMARY KEY (log, resource)) WITH (fillfactor = 50);
CREATE TABLE notes (log int NOT NULL DEFAULT this_log(), name text COLLATE "C", value text NOT NULL, PRIMARY KEY (log, name));
CREATE TABLE prints (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, log int NOT NULL DEFAULT this_log(), namespace text NOT NULL, print bytea NOT NULL,
    UNIQUE (log, print)
);
CREATE TABLE sinks (log int NOT NULL DEFAULT this_log(), name text COLLATE "C", position bigint NOT NULL, lost bigint NOT NULL, PRIMARY KEY (log, name));
CREATE TABLE dead_letters (
    log int NOT NULL DEFAULT this_log(), sink text COLLATE "C", number bigint, object bigint NOT NULL, reason text NOT NULL,
    PRIMARY KEY (log, sink, number)
);
CREATE TABLE stories (
    log int NOT NULL DEFAULT this_log(), id bigint, last bigint NOT NULL, is_open bigint NOT NULL, content text NOT NULL, PRIMARY KEY (log, id)
);
CREATE INDEX open_stories ON stories (log, id) WHERE is_open <> 0;
CREATE TABLE members (log int NOT NULL DEFAULT this_log(), number bigint, story bigint NOT NULL, PRIMARY KEY (log, number));
CREATE INDEX members_by_story ON members (log, story);

-- Functions with the rights of the owner name their schemas: a caller's temporary table must not stand in the place of one of these.

-- Makes the partitions of a day and of the two after it.
CREATE FUNCTION prepare_days(from_day date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
DECLARE
    this_day date; part text;
BEGIN
    IF from_day NOT BETWEEN current_date - 7 AND current_date + 2 THEN
        RAISE EXCEPTION 'the day % is not of now', from_day;
    END IF;
    PERFORM pg_advisory_xact_lock(7237117976);
    FOR this_day IN SELECT from_day + n FROM generate_series(0, 2) n LOOP
        FOREACH part IN ARRAY ARRAY['versions', 'contents'] LOOP
            IF to_regclass(format('kubediff.%s_%s', part, to_char(this_day, 'YYYYMMDD'))) IS NULL THEN
                -- In two steps, of which none waits for readers.
                EXECUTE format('CREATE TABLE %s_%s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)',
                    part, to_char(this_day, 'YYYYMMDD'), part);
                EXECUTE format('ALTER TABLE %s ATTACH PARTITION %s_%s FOR VALUES FROM (%L) TO (%L)',
                    part, part, to_char(this_day, 'YYYYMMDD'), this_day, this_day + 1);
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Counts what a day has. The database does that by itself, but some minutes after the day has begun; without it, it takes a log for a small
-- part of a day.
CREATE FUNCTION count_day(this_day date) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
BEGIN
    EXECUTE format('ANALYZE versions_%s', to_char(this_day, 'YYYYMMDD'));
    ANALYZE objects;
END $$;

-- Drops the days of which no log shows anything any more. Returns how many.
CREATE FUNCTION drop_days() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
DECLARE
    this_day date; part text; dropped bigint := 0;
BEGIN
    -- Writers wait as long as this waits for readers.
    SET LOCAL lock_timeout = '50ms';
    -- A writer may still be in the day before this one.
    FOR this_day IN SELECT day FROM days JOIN meta USING (log)
        WHERE name = 'complete_after' AND day < (clock_timestamp() AT TIME ZONE 'utc')::date - 1
        GROUP BY day HAVING bool_and(last <= value) LOOP
        FOREACH part IN ARRAY ARRAY['versions', 'contents'] LOOP
            EXECUTE format('DROP TABLE IF EXISTS %s_%s', part, to_char(this_day, 'YYYYMMDD'));
        END LOOP;
        DELETE FROM days WHERE day = this_day;
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
EXCEPTION WHEN lock_not_available THEN
    RETURN 0;
END $$;

-- Begins a batch of the process that has the term. A batch that was stored already, by a commit whose answer was lost, is not stored again.
CREATE FUNCTION begin_batch(by uuid, upto bigint, batch uuid, ttl interval) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    term kubediff.terms; here bigint;
BEGIN
    PERFORM kubediff.hold_term(by);
    SELECT * INTO term FROM kubediff.terms WHERE log = kubediff.this_log();
    SELECT value INTO here FROM kubediff.meta WHERE log = term.log AND name = 'next';
    IF here <> upto THEN
        IF term.last_batch = batch THEN
            RAISE EXCEPTION 'the batch is stored already' USING ERRCODE = 'KD002';
        END IF;
        RAISE EXCEPTION 'the next number is %, not %', here, upto USING ERRCODE = 'KD003';
    END IF;
    UPDATE kubediff.terms SET last_batch = batch, expires_at = clock_timestamp() + ttl WHERE log = term.log;
END $$;

-- Refuses whoever does not have the term. Others wait until the end of the transaction.
CREATE FUNCTION hold_term(by uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM kubediff.terms WHERE log = kubediff.this_log() AND token = by FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another process has the term' USING ERRCODE = 'KD001';
    END IF;
    UPDATE kubediff.meta SET value = value + 1 WHERE log = kubediff.this_log() AND name = 'revision';
END $$;

-- Logins are members of these roles, and programs act in them: so row level security holds for everybody, the owner of the tables too.
DO $$ BEGIN CREATE ROLE kubediff_writer NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
DO $$ BEGIN CREATE ROLE kubediff_reader NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;

-- Whether a login may change this log, and whether it may read it. Readers may read all.
-- They are in PL/pgSQL, which plans them once in a session and not at each call.
CREATE FUNCTION may_write() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM kubediff.logs WHERE log = kubediff.this_log() AND owner = session_user);
END $$;
CREATE FUNCTION may_read() RETURNS boolean LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
BEGIN
    -- The cheaper check comes first: PostgreSQL makes it for each table of each statement.
    RETURN pg_catalog.pg_has_role(session_user, 'kubediff_reader', 'MEMBER') OR kubediff.may_write();
END $$;
-- The last record that is not kept. Its row, and those before it, go with their days.
CREATE FUNCTION complete_after() RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
BEGIN
    RETURN (SELECT value FROM kubediff.meta WHERE log = kubediff.this_log() AND name = 'complete_after');
END $$;

-- The versions in a span of numbers that have one of these tags, and one of those, unless there are none of those. Operators on arrays are not
-- leakproof, so under row level security they would not use their index. It has all versions of a tag, however old: few numbers are looked at
-- one by one, and what is best among many depends on the tag.
CREATE FUNCTION tagged(wanted int[], within int[], from_number bigint, to_number bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 500 SET search_path = kubediff, pg_temp AS $$
DECLARE
    this int := kubediff.this_log(); kept bigint := kubediff.complete_after();
BEGIN
    IF NOT kubediff.may_read() THEN
        RETURN;
    END IF;
    IF to_number - from_number <= 8192 THEN
        RETURN QUERY SELECT v.number FROM (SELECT * FROM kubediff.versions WHERE log = this AND number >= from_number AND number < to_number
            AND (day < '1970-01-02' OR number + 0 > kept) OFFSET 0) v
            WHERE v.tags OPERATOR(pg_catalog.&&) wanted AND (within = '{}' OR v.tags OPERATOR(pg_catalog.&&) within);
        RETURN;
    END IF;
    RETURN QUERY EXECUTE 'SELECT v.number FROM kubediff.versions v WHERE v.log = $1 AND v.tags OPERATOR(pg_catalog.&&) $2
        AND ($3 = ''{}'' OR v.tags OPERATOR(pg_catalog.&&) $3)
        AND v.number >= $4 AND v.number < $5 AND (v.day < ''1970-01-02'' OR v.number + 0 > $6)'
        USING this, wanted, within, from_number, to_number, kept;
END $$;

-- The log of a cluster, made if there is none. Its name is nobody else's.
CREATE FUNCTION open_log(uid text, named text) RETURNS int LANGUAGE plpgsql SECURITY DEFINER SET search_path = kubediff, pg_temp AS $$
DECLARE
    found logs; other text;
BEGIN
    PERFORM pg_advisory_xact_lock(7237117977);
    SELECT * INTO found FROM logs WHERE cluster_uid = uid;
    SELECT cluster_uid INTO other FROM logs WHERE cluster_name = named AND cluster_uid <> uid;
    IF other IS NOT NULL THEN
        RAISE EXCEPTION '%', other USING ERRCODE = 'KD004';
    END IF;
    IF found.log IS NOT NULL THEN
        IF found.owner <> session_user THEN
            RAISE EXCEPTION 'the history of this cluster is of the login %', found.owner USING ERRCODE = 'KD005';
        END IF;
        UPDATE logs SET cluster_name = coalesce(named, cluster_name) WHERE log = found.log;
        RETURN found.log;
    END IF;
    INSERT INTO logs (cluster_uid, cluster_name) VALUES (uid, named) RETURNING * INTO found;
    INSERT INTO terms (log) VALUES (found.log);
    INSERT INTO meta (log, name, value) SELECT found.log, name, value FROM (VALUES ('next', 1), ('complete_after', 0), ('bytes', 0), ('event_bytes', 0),
        ('events_after', 0), ('revision', 0), ('ordered_from', 0), ('disordered_until', NULL), ('fold_version', 0), ('folded_to', 0)) m (name, value);
    RETURN found.log;
END $$;

-- Gives the term of this log to a process, if it is free or over, or if the process `returns` after its end and had the term; but not while
-- another one stands by. Returns its token.
CREATE FUNCTION claim_term(who text, ttl interval, returns boolean) RETURNS uuid LANGUAGE sql AS $$
    UPDATE terms SET token = gen_random_uuid(), holder = who, since = clock_timestamp(), expires_at = clock_timestamp() + ttl,
        standby = nullif(standby, who)
    WHERE log = this_log() AND (token IS NULL OR expires_at < clock_timestamp() OR (returns AND holder = who))
        AND (standby IS NULL OR standby = who OR standby_at < clock_timestamp() - ttl / 2) RETURNING token $$;

-- Says that a process would take over, unless another one says so. Returns who has the term.
CREATE FUNCTION stand_by(who text, ttl interval) RETURNS text LANGUAGE sql AS $$
    UPDATE terms SET standby = who, standby_at = clock_timestamp()
    WHERE log = this_log() AND (standby IS NULL OR standby = who OR standby_at < clock_timestamp() - ttl / 2);
    SELECT holder FROM terms WHERE log = this_log() $$;

DO $$
DECLARE
    part text;
    kept text;
BEGIN
    FOREACH part IN ARRAY ARRAY['terms', 'meta', 'timelines', 'days', 'versions', 'contents', 'objects', 'kinds', 'namespaces', 'managers', 'paths',
        'dictionaries', 'gaps', 'scrubs', 'positions', 'notes', 'prints', 'sinks', 'dead_letters', 'stories', 'members'] LOOP
        -- Nothing is found by that: a sum has no index.
        kept := CASE part WHEN 'versions' THEN ' AND (day < ''1970-01-02'' OR number + 0 > (SELECT complete_after()))' ELSE '' END;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY read ON %I FOR SELECT USING (log = this_log() AND (SELECT may_read())%s)', part, kept);
        EXECUTE format('CREATE POLICY add ON %I FOR INSERT WITH CHECK (log = this_log() AND (SELECT may_write()))', part);
        EXECUTE format('CREATE POLICY change ON %I FOR UPDATE USING (log = this_log() AND (SELECT may_write()))', part);
        EXECUTE format('CREATE POLICY remove ON %I FOR DELETE USING (log = this_log() AND (SELECT may_write()))', part);
    END LOOP;
END $$;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA kubediff FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA kubediff TO kubediff_writer;
GRANT EXECUTE ON FUNCTION instr, this_log, may_write, may_read, complete_after, tagged TO kubediff_reader;
GRANT USAGE ON SCHEMA kubediff TO kubediff_writer, kubediff_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA kubediff TO kubediff_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA kubediff TO kubediff_writer;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA kubediff TO kubediff_writer;
-- Policies are of the whole tables: their partitions are nobody's.
REVOKE ALL ON logs, versions_kept, contents_kept FROM kubediff_writer, kubediff_reader;
REVOKE INSERT, UPDATE, DELETE ON format FROM kubediff_writer;
-- What a login may know of logs.
CREATE VIEW log_list AS SELECT log, id, cluster_uid, cluster_name FROM logs
    WHERE owner = session_user OR pg_has_role(session_user, 'kubediff_reader', 'MEMBER');
GRANT SELECT ON log_list TO kubediff_writer, kubediff_reader;
INSERT INTO format VALUES (1, 1);
