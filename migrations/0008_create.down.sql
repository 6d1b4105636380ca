DROP TABLE IF EXISTS cluster_credentials;
ALTER TABLE clusters DROP COLUMN IF EXISTS control_template_id, DROP COLUMN IF EXISTS worker_template_id, DROP COLUMN IF EXISTS etcd_template_id;
ALTER TABLE templates DROP COLUMN IF EXISTS created;
DROP TRIGGER IF EXISTS clusters_make_network ON clusters;
DROP FUNCTION IF EXISTS clusters_make_network;
DROP INDEX IF EXISTS clusters_of_network;
DROP TABLE IF EXISTS networks;
-- The release before would list deleted versions: those that no cluster had go, the others stay, disabled.
DELETE FROM kubernetes_versions k WHERE removed IS NOT NULL AND NOT EXISTS (SELECT FROM clusters WHERE version_id = k.id);
UPDATE kubernetes_versions SET enabled = false, name = name || ' (deleted ' || id || ')' WHERE removed IS NOT NULL;
DROP INDEX IF EXISTS kubernetes_versions_name;
ALTER TABLE kubernetes_versions DROP COLUMN IF EXISTS removed;
ALTER TABLE kubernetes_versions ADD CONSTRAINT kubernetes_versions_name_key UNIQUE (name);
