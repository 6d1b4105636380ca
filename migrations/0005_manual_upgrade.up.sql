-- Nodes that their owner upgrades: upgradeKubernetesCluster leaves them alone.
-- The release before this one upgrades nothing, and adds nodes without it.
ALTER TABLE vms ADD COLUMN IF NOT EXISTS manual_upgrade boolean NOT NULL DEFAULT false;
