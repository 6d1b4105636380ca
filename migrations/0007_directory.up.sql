-- The order of accounts, and their internal numbers.
ALTER TABLE accounts ADD COLUMN IF NOT EXISTS seq bigint GENERATED ALWAYS AS IDENTITY UNIQUE;

-- Who may log in by password: NULL is nobody, which is the default.
ALTER TABLE accounts ADD COLUMN IF NOT EXISTS password_hash text CHECK (password_hash <> '');

-- Sessions of those who have logged in. What opens one is not stored: only the
-- SHA-256 of the session's id and of its key.
CREATE TABLE IF NOT EXISTS sessions (
    id_hash    bytea PRIMARY KEY CHECK (octet_length(id_hash) = 32),
    key_hash   bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    account_id uuid NOT NULL REFERENCES accounts,
    created    timestamptz NOT NULL DEFAULT now(),
    used       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS sessions_of_account ON sessions (account_id);
CREATE INDEX IF NOT EXISTS sessions_used ON sessions (used);

-- Whoever disables an account or changes its password ends its sessions,
-- whichever release he is of.
CREATE OR REPLACE FUNCTION accounts_end_sessions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM sessions WHERE account_id = NEW.id;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER accounts_end_sessions AFTER UPDATE OF enabled, password_hash ON accounts FOR EACH ROW
    WHEN (NOT NEW.enabled OR NEW.password_hash IS DISTINCT FROM OLD.password_hash)
    EXECUTE FUNCTION accounts_end_sessions();

-- Settings that differ from what the environment says: account_id is whose they
-- are, NULL everybody's.
CREATE TABLE IF NOT EXISTS settings (
    name       text NOT NULL CHECK (name <> ''),
    account_id uuid REFERENCES accounts,
    value      text NOT NULL,
    UNIQUE NULLS NOT DISTINCT (name, account_id)
);

-- Projects. What belongs to one belongs to an account of its own, which nobody
-- has keys of; who may use it are the members.
CREATE TABLE IF NOT EXISTS projects (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq          bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name         text NOT NULL UNIQUE CHECK (name <> ''),
    display_text text NOT NULL,
    account_id   uuid NOT NULL UNIQUE REFERENCES accounts,
    created      timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE IF NOT EXISTS project_members (
    project_id uuid NOT NULL REFERENCES projects,
    account_id uuid NOT NULL REFERENCES accounts,
    role       text NOT NULL CHECK (role IN ('Admin','Regular')),
    PRIMARY KEY (project_id, account_id)
);
CREATE INDEX IF NOT EXISTS project_members_of_account ON project_members (account_id);
