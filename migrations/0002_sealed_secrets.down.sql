-- Sealed secrets are lost: their accounts need new keys.
DROP TRIGGER IF EXISTS accounts_secret_in_clear ON accounts;
DROP FUNCTION IF EXISTS accounts_secret_in_clear;
ALTER TABLE accounts DROP COLUMN IF EXISTS secret_sealed;
