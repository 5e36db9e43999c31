-- Format 2: the users whose requests made changes, as JSON, what the server says about itself, and the index of Events, by which retention
-- finds the oldest. Programs of format 1 have no use for them.
SET LOCAL search_path = kubediff;
CREATE INDEX versions_of_events ON versions (log, number) WHERE verb > 4;
CREATE TABLE users (LIKE namespaces INCLUDING ALL);
CREATE TABLE authors (
    log int NOT NULL DEFAULT this_log(), number bigint, author int NOT NULL, probable bigint NOT NULL, PRIMARY KEY (log, number)
);
-- Numbers of users are those of one log, and an index that began with the log would tempt the planner, while it has not counted the rows.
CREATE INDEX authors_by_user ON authors (author, number);
CREATE TABLE documents (
    log int NOT NULL DEFAULT this_log(), name text COLLATE "C", first bigint, edition text NOT NULL, length int NOT NULL, crc bigint NOT NULL,
    frame bytea NOT NULL, PRIMARY KEY (log, name, first)
);
ALTER TABLE documents ALTER frame SET STORAGE EXTERNAL;
DO $$
DECLARE
    part text;
BEGIN
    FOREACH part IN ARRAY ARRAY['users', 'authors', 'documents'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('CREATE POLICY read ON %I FOR SELECT USING (log = this_log() AND (SELECT may_read()))', part);
        EXECUTE format('CREATE POLICY add ON %I FOR INSERT WITH CHECK (log = this_log() AND (SELECT may_write()))', part);
        EXECUTE format('CREATE POLICY change ON %I FOR UPDATE USING (log = this_log() AND (SELECT may_write()))', part);
        EXECUTE format('CREATE POLICY remove ON %I FOR DELETE USING (log = this_log() AND (SELECT may_write()))', part);
    END LOOP;
END $$;
GRANT SELECT ON users, authors, documents TO kubediff_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON users, authors, documents TO kubediff_writer;
UPDATE format SET version = 2;
