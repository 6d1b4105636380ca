-- Secret keys at rest, sealed with the servers' encryption key (see
-- internal/secretbox). While a row has secret_sealed, that is its secret, and
-- secret_key is a random text that nobody was told: the release before this
-- one, which knows only secret_key, then finds no request well signed. NULL:
-- the secret is in secret_key, in clear, as that release has written it.
-- secret_key and the trigger go when that release has gone.
ALTER TABLE accounts ADD COLUMN IF NOT EXISTS secret_sealed bytea CHECK (octet_length(secret_sealed) > 9);

-- The release before this one writes secret_key only: then that is the secret.
CREATE OR REPLACE FUNCTION accounts_secret_in_clear() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.secret_sealed := NULL;
    RETURN NEW;
END $$;
CREATE OR REPLACE TRIGGER accounts_secret_in_clear BEFORE UPDATE OF secret_key ON accounts FOR EACH ROW
    WHEN (NEW.secret_key <> OLD.secret_key AND NEW.secret_sealed IS NOT DISTINCT FROM OLD.secret_sealed)
    EXECUTE FUNCTION accounts_secret_in_clear();
