-- The networks that clusters are in. A network that was made for a cluster is
-- there as long as a cluster is in it; any other stays.
CREATE TABLE IF NOT EXISTS networks (
    id         uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq        bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name       text NOT NULL CHECK (name <> ''),
    account_id uuid NOT NULL REFERENCES accounts,
    zone_id    uuid NOT NULL REFERENCES zones,
    made       boolean NOT NULL DEFAULT false,
    created    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX IF NOT EXISTS networks_of_account ON networks (account_id, seq);
CREATE INDEX IF NOT EXISTS clusters_of_network ON clusters (network_id) WHERE removed IS NULL;

-- A cluster brings its network with it, unless that is there. A trigger does
-- it, so that the release before, which knows of no networks, does it too.
CREATE OR REPLACE FUNCTION clusters_make_network() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO networks (id, name, account_id, zone_id, made)
    VALUES (NEW.network_id, coalesce(nullif(NEW.network_name, ''), NEW.name || '-network'), NEW.account_id, NEW.zone_id, true)
    ON CONFLICT (id) DO NOTHING;
    RETURN NULL;
END $$;
CREATE OR REPLACE TRIGGER clusters_make_network AFTER INSERT ON clusters FOR EACH ROW EXECUTE FUNCTION clusters_make_network();

INSERT INTO networks (id, name, account_id, zone_id, made, created)
SELECT DISTINCT ON (network_id) network_id, coalesce(nullif(network_name, ''), name || '-network'), account_id, zone_id, true, created
FROM clusters ORDER BY network_id, seq
ON CONFLICT (id) DO NOTHING;

-- Templates by node type; NULL: the cluster's.
ALTER TABLE clusters
    ADD COLUMN IF NOT EXISTS control_template_id uuid REFERENCES templates,
    ADD COLUMN IF NOT EXISTS worker_template_id  uuid REFERENCES templates,
    ADD COLUMN IF NOT EXISTS etcd_template_id    uuid REFERENCES templates;
ALTER TABLE templates ADD COLUMN IF NOT EXISTS created timestamptz NOT NULL DEFAULT now();

-- What an administrator logs in to a cluster with: certificates, and the key,
-- which is sealed (see internal/secretbox). Made when it is first asked for.
CREATE TABLE IF NOT EXISTS cluster_credentials (
    cluster_id  uuid PRIMARY KEY REFERENCES clusters,
    ca          text NOT NULL CHECK (ca <> ''),
    certificate text NOT NULL CHECK (certificate <> ''),
    key_sealed  bytea NOT NULL CHECK (octet_length(key_sealed) > 9),
    created     timestamptz NOT NULL DEFAULT now()
);

-- A version that was deleted; its name is free again. Clusters that had it show it.
ALTER TABLE kubernetes_versions ADD COLUMN IF NOT EXISTS removed timestamptz;
ALTER TABLE kubernetes_versions DROP CONSTRAINT IF EXISTS kubernetes_versions_name_key;
CREATE UNIQUE INDEX IF NOT EXISTS kubernetes_versions_name ON kubernetes_versions (name) WHERE removed IS NULL;
