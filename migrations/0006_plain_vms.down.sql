UPDATE vms SET job_id = NULL, phase = 'doomed' WHERE cluster_id IS NULL;
DELETE FROM jobs WHERE vm_id IN (SELECT id FROM vms WHERE cluster_id IS NULL);
DELETE FROM vms WHERE cluster_id IS NULL;
DROP INDEX IF EXISTS vms_host_name, vms_of_account, vms_scan;
ALTER TABLE vms
    DROP CONSTRAINT IF EXISTS vms_owned,
    DROP CONSTRAINT IF EXISTS vms_own_zone,
    DROP CONSTRAINT IF EXISTS vms_linked,
    DROP COLUMN IF EXISTS place,
    DROP COLUMN IF EXISTS account_id,
    DROP COLUMN IF EXISTS zone_id,
    DROP COLUMN IF EXISTS template_id,
    DROP COLUMN IF EXISTS network_id,
    DROP COLUMN IF EXISTS network_name,
    DROP COLUMN IF EXISTS keypair,
    DROP COLUMN IF EXISTS host_name,
    DROP COLUMN IF EXISTS display_name,
    DROP COLUMN IF EXISTS linked,
    DROP COLUMN IF EXISTS scan_due,
    ALTER COLUMN cluster_id SET NOT NULL;
