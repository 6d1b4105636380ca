-- What happened: who did what, to what, when. A row is written in the
-- transaction of the fact that it tells, and never changed.
CREATE TABLE IF NOT EXISTS events (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq           bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    type          text NOT NULL CHECK (type <> ''),
    level         text NOT NULL CHECK (level IN ('INFO','WARN','ERROR')),
    state         text NOT NULL CHECK (state IN ('Created','Scheduled','Started','Completed')),
    description   text NOT NULL,
    caller_id     uuid REFERENCES accounts,          -- who did it; NULL = the service itself
    account_id    uuid NOT NULL REFERENCES accounts, -- whose it is that it was done to
    job_id        uuid, -- of the job whose Scheduled, Started or Completed event it is
    start_id      uuid, -- the Scheduled event of the job that did it
    resource_type text,
    resource_id   uuid,
    resource_name text,
    created       timestamptz NOT NULL DEFAULT now(),
    CHECK ((resource_type IS NULL) = (resource_id IS NULL))
);
-- A job is scheduled, started and completed once, whoever takes it up again.
CREATE UNIQUE INDEX IF NOT EXISTS events_of_job ON events (job_id, state) WHERE job_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_of_start ON events (start_id) WHERE start_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_of_account ON events (account_id, seq);
CREATE INDEX IF NOT EXISTS events_of_resource ON events (resource_id, seq) WHERE resource_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS events_created ON events (created);
