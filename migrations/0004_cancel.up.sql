-- Who wants a live job to end, and since when. The job ends as failed at its
-- next step boundary.
ALTER TABLE jobs
    ADD COLUMN IF NOT EXISTS cancelled_by uuid REFERENCES accounts,
    ADD COLUMN IF NOT EXISTS cancelled timestamptz CHECK ((cancelled IS NULL) = (cancelled_by IS NULL));
