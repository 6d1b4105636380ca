-- VMs that belong to an account and to no cluster: they have an owner, a zone,
-- a template and a network of their own, also while they are nodes of a
-- cluster. The release before this one reads none of it: it does not see VMs
-- without a cluster, and an external node is to it what it always was.
ALTER TABLE vms
    ALTER COLUMN cluster_id DROP NOT NULL,
    ADD COLUMN IF NOT EXISTS account_id uuid REFERENCES accounts, -- NULL: its cluster's
    ADD COLUMN IF NOT EXISTS zone_id uuid REFERENCES zones,
    ADD COLUMN IF NOT EXISTS template_id uuid REFERENCES templates,
    ADD COLUMN IF NOT EXISTS network_id uuid,
    ADD COLUMN IF NOT EXISTS network_name text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS keypair text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS host_name text CHECK (host_name <> ''), -- as its owner named it; name is its id then
    ADD COLUMN IF NOT EXISTS display_name text NOT NULL DEFAULT '',
    ADD COLUMN IF NOT EXISTS linked boolean NOT NULL DEFAULT false,  -- to an externally managed cluster
    ADD COLUMN IF NOT EXISTS scan_due timestamptz NOT NULL DEFAULT now(); -- of VMs that no cluster's scan sees
-- Under which id the cloud knows it: its cluster's, or its own.
ALTER TABLE vms ADD COLUMN IF NOT EXISTS place uuid NOT NULL
    GENERATED ALWAYS AS (CASE WHEN cluster_id IS NULL OR linked THEN id ELSE cluster_id END) STORED;
ALTER TABLE vms DROP CONSTRAINT IF EXISTS vms_owned, DROP CONSTRAINT IF EXISTS vms_own_zone, DROP CONSTRAINT IF EXISTS vms_linked;
ALTER TABLE vms
    ADD CONSTRAINT vms_owned CHECK (cluster_id IS NOT NULL OR account_id IS NOT NULL),
    ADD CONSTRAINT vms_own_zone CHECK (account_id IS NULL OR zone_id IS NOT NULL AND network_id IS NOT NULL),
    ADD CONSTRAINT vms_linked CHECK (NOT linked OR cluster_id IS NOT NULL AND account_id IS NOT NULL AND NOT external);
CREATE UNIQUE INDEX IF NOT EXISTS vms_host_name ON vms (account_id, lower(host_name)) WHERE removed IS NULL AND host_name IS NOT NULL;
CREATE INDEX IF NOT EXISTS vms_of_account ON vms (account_id) WHERE removed IS NULL AND account_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS vms_scan ON vms (scan_due) WHERE removed IS NULL AND place = id;
