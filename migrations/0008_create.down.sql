DROP TABLE IF EXISTS cluster_credentials;
ALTER TABLE clusters DROP COLUMN IF EXISTS control_template_id, DROP COLUMN IF EXISTS worker_template_id, DROP COLUMN IF EXISTS etcd_template_id;
ALTER TABLE templates DROP COLUMN IF EXISTS created;
DROP TRIGGER IF EXISTS clusters_make_network ON clusters;
DROP FUNCTION IF EXISTS clusters_make_network;
DROP INDEX IF EXISTS clusters_of_network;
DROP TABLE IF EXISTS networks;
