CREATE TABLE IF NOT EXISTS domains (
    id   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name text NOT NULL,
    path text NOT NULL UNIQUE -- "ROOT", "ROOT/a"; no trailing slash
);
INSERT INTO domains (name, path) VALUES ('ROOT', 'ROOT') ON CONFLICT DO NOTHING;

CREATE TABLE IF NOT EXISTS accounts (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    name         text NOT NULL UNIQUE CHECK (name <> ''),
    admin        boolean NOT NULL DEFAULT false,
    domain_id    uuid NOT NULL REFERENCES domains,
    user_id      uuid NOT NULL DEFAULT gen_random_uuid(),
    api_key      text NOT NULL UNIQUE CHECK (api_key <> ''),
    secret_key   text NOT NULL CHECK (secret_key <> ''),
    enabled      boolean NOT NULL DEFAULT true,
    max_vms      int CHECK (max_vms >= 0),       -- limits of the account; NULL = none
    max_cores    int CHECK (max_cores >= 0),
    max_memory   bigint CHECK (max_memory >= 0), -- MB
    created      timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS zones (
    id   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq  bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name text NOT NULL UNIQUE
);

CREATE TABLE IF NOT EXISTS service_offerings (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq          bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name         text NOT NULL UNIQUE,
    display_text text NOT NULL,
    cores        int NOT NULL DEFAULT 0 CHECK (cores >= 0), -- 0 = open: a custom offering
    speed_mhz    int NOT NULL DEFAULT 0 CHECK (speed_mhz >= 0),
    memory_mb    int NOT NULL DEFAULT 0 CHECK (memory_mb >= 0),
    created      timestamptz NOT NULL DEFAULT now(),
    removed      timestamptz
);

CREATE TABLE IF NOT EXISTS kubernetes_versions (
    id            uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq           bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name          text NOT NULL UNIQUE,
    version       text NOT NULL CHECK (version ~ '^[0-9]+\.[0-9]+\.[0-9]+$'),
    iso_id        uuid NOT NULL DEFAULT gen_random_uuid(),
    iso_name      text NOT NULL,
    min_cores     int NOT NULL CHECK (min_cores >= 1),
    min_memory_mb int NOT NULL CHECK (min_memory_mb >= 1),
    enabled       boolean NOT NULL DEFAULT true,
    created       timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS templates (
    id    uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq   bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name  text NOT NULL UNIQUE,
    ready boolean NOT NULL DEFAULT true
);

CREATE TABLE IF NOT EXISTS jobs (
    id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq         bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    command     text NOT NULL,
    kind        text NOT NULL,
    account_id  uuid NOT NULL REFERENCES accounts,
    cluster_id  uuid, -- FK below; NULL for VM jobs
    vm_id       uuid,
    args        jsonb NOT NULL DEFAULT '{}',
    notes       jsonb NOT NULL DEFAULT '{}',
    status      smallint NOT NULL DEFAULT 0 CHECK (status IN (0, 1, 2)),
    step        text NOT NULL DEFAULT '',   -- the last step done
    attempt     bigint NOT NULL DEFAULT 0,  -- goes up with every claim: the fence
    tries       int NOT NULL DEFAULT 0 CHECK (tries >= 0),
    failure     text NOT NULL DEFAULT '',   -- why it is being given up
    unchanged   boolean NOT NULL DEFAULT false,
    owner       text CHECK (owner <> ''),   -- random id of the process that executes it
    due         timestamptz NOT NULL DEFAULT now(), -- waiting: not before; owned: the lease ends
    poked       boolean NOT NULL DEFAULT false, -- no event wakes it: one has already, or it backs off
    deadline    timestamptz NOT NULL,
    error_text  text,
    result      jsonb,
    created     timestamptz NOT NULL DEFAULT now(),
    completed   timestamptz,
    CHECK ((status <> 0) = (completed IS NOT NULL)),
    CHECK ((status = 1) = (result IS NOT NULL)),
    CHECK ((status = 2) = (error_text IS NOT NULL)),
    CHECK (status = 0 OR owner IS NULL),
    CHECK (cluster_id IS NULL OR vm_id IS NULL)
);
CREATE INDEX IF NOT EXISTS jobs_due ON jobs (due) WHERE status = 0;
CREATE UNIQUE INDEX IF NOT EXISTS jobs_one_per_cluster ON jobs (cluster_id) WHERE status = 0;
CREATE UNIQUE INDEX IF NOT EXISTS jobs_one_per_vm ON jobs (vm_id) WHERE status = 0;
CREATE INDEX IF NOT EXISTS jobs_of_account ON jobs (account_id, seq) WHERE status = 0;

CREATE TABLE IF NOT EXISTS clusters (
    id               uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq              bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    name             text NOT NULL CHECK (name <> ''),
    description      text NOT NULL DEFAULT '',
    account_id       uuid NOT NULL REFERENCES accounts,
    zone_id          uuid NOT NULL REFERENCES zones,
    version_id       uuid REFERENCES kubernetes_versions,
    template_id      uuid REFERENCES templates,
    network_id       uuid NOT NULL DEFAULT gen_random_uuid(),
    network_name     text NOT NULL DEFAULT '',
    offering_id         uuid REFERENCES service_offerings,
    control_offering_id uuid REFERENCES service_offerings,
    worker_offering_id  uuid REFERENCES service_offerings,
    etcd_offering_id    uuid REFERENCES service_offerings,
    control_nodes    int NOT NULL CHECK (control_nodes >= 0),
    etcd_nodes       int NOT NULL DEFAULT 0 CHECK (etcd_nodes >= 0),
    size             int NOT NULL CHECK (size >= 0),
    state            text NOT NULL CHECK (state IN ('Created','Starting','Running','Stopping','Stopped','Scaling',
                       'ScalingStoppedCluster','Upgrading','Importing','RemovingNodes','Alert','Recovering',
                       'Destroyed','Destroying','Error')),
    held_by          uuid REFERENCES jobs DEFERRABLE INITIALLY DEFERRED,
    version          bigint NOT NULL DEFAULT 1,
    autoscaling      boolean NOT NULL DEFAULT false,
    min_size         int,
    max_size         int,
    external_managed boolean NOT NULL DEFAULT false,
    csi              boolean NOT NULL DEFAULT false,
    keypair          text NOT NULL DEFAULT '',
    ip_address       text NOT NULL DEFAULT '',
    ip_address_id    uuid NOT NULL DEFAULT gen_random_uuid(),
    scan_due         timestamptz NOT NULL DEFAULT now(),
    created          timestamptz NOT NULL DEFAULT now(),
    removed          timestamptz,
    -- Scaling if and only if held, and likewise for every state in which a job acts.
    CHECK ((held_by IS NOT NULL) = (state IN ('Starting','Stopping','Scaling','ScalingStoppedCluster','Upgrading',
                       'Importing','RemovingNodes','Recovering','Destroying'))),
    CHECK ((state = 'Destroyed') = (removed IS NOT NULL)),
    CHECK (autoscaling = (min_size IS NOT NULL) AND autoscaling = (max_size IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS clusters_of_account ON clusters (account_id, seq) WHERE removed IS NULL;
CREATE INDEX IF NOT EXISTS clusters_scan ON clusters (scan_due) WHERE removed IS NULL;
DO $$ BEGIN
    ALTER TABLE jobs ADD CONSTRAINT jobs_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES clusters DEFERRABLE INITIALLY DEFERRED;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;

CREATE TABLE IF NOT EXISTS vms (
    id           uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    seq          bigint GENERATED ALWAYS AS IDENTITY UNIQUE,
    cluster_id   uuid NOT NULL REFERENCES clusters,
    name         text NOT NULL UNIQUE CHECK (name <> ''),
    role         text NOT NULL CHECK (role IN ('control','etcd','worker')),
    external     boolean NOT NULL DEFAULT false,
    offering_id  uuid NOT NULL REFERENCES service_offerings,
    state        text NOT NULL CHECK (state IN ('Starting','Running','Stopping','Stopped','Destroyed','Expunging',
                   'Migrating','Error','Unknown','Shutdown','Restoring')),
    phase        text NOT NULL CHECK (phase IN ('chosen','member','leaving','doomed')),
    job_id       uuid REFERENCES jobs, -- the job that chose it, to be made or removed
    node_version text NOT NULL DEFAULT '',
    ip_address   text NOT NULL DEFAULT '',
    mac_address  text NOT NULL DEFAULT '',
    created      timestamptz NOT NULL DEFAULT now(),
    updated      timestamptz NOT NULL DEFAULT now(),
    observed     timestamptz NOT NULL DEFAULT '-infinity', -- when the world was last asked about it
    removed      timestamptz,
    CHECK (NOT external OR role = 'worker'),
    CHECK (phase NOT IN ('chosen','leaving') OR job_id IS NOT NULL)
);
CREATE INDEX IF NOT EXISTS vms_of_cluster ON vms (cluster_id, seq) WHERE removed IS NULL;
CREATE INDEX IF NOT EXISTS vms_of_job ON vms (job_id) WHERE job_id IS NOT NULL;
DO $$ BEGIN
    ALTER TABLE jobs ADD CONSTRAINT jobs_vm_id_fkey FOREIGN KEY (vm_id) REFERENCES vms;
EXCEPTION WHEN duplicate_object THEN NULL; END $$;

-- What a simulated world remembers, one document per cluster.
CREATE TABLE IF NOT EXISTS world_documents (
    key      text PRIMARY KEY,
    document jsonb NOT NULL,
    due      timestamptz -- when it changes by itself; NULL = never
);
CREATE INDEX IF NOT EXISTS world_documents_due ON world_documents (due) WHERE due IS NOT NULL;
