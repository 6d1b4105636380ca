DROP TABLE IF EXISTS project_members, projects, settings;
DROP TRIGGER IF EXISTS accounts_end_sessions ON accounts;
DROP FUNCTION IF EXISTS accounts_end_sessions();
DROP TABLE IF EXISTS sessions;
ALTER TABLE accounts DROP COLUMN IF EXISTS password_hash, DROP COLUMN IF EXISTS seq;
