-- How far a job has come, for those who look: when each of its steps began and
-- ended, by the name of the step, and a line about what it does or waits for.
-- Servers of the release before leave no times.
ALTER TABLE jobs
    ADD COLUMN IF NOT EXISTS step_times jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS step_since timestamptz, -- when the step under way began; NULL = not known
    ADD COLUMN IF NOT EXISTS message text NOT NULL DEFAULT '';
