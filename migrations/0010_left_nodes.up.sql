-- Nodes that could not be deleted with their VMs, which the scanner deletes. The
-- release before this one leaves them.
ALTER TABLE vms ADD COLUMN IF NOT EXISTS node_left boolean NOT NULL DEFAULT false;
CREATE INDEX IF NOT EXISTS vms_node_left ON vms (cluster_id) WHERE node_left;
