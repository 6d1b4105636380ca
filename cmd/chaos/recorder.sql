-- What happens in a run, written by the transactions in which it happens. The
-- servers know nothing of it. seq orders what concerns one row or one lease; app
-- is the process.
CREATE SCHEMA chaos;
CREATE SEQUENCE chaos.seq;

-- Every state of a cluster as it was committed, with the VMs it had then.
CREATE TABLE chaos.clusters (
    seq     bigint NOT NULL DEFAULT nextval('chaos.seq'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    cluster uuid NOT NULL,
    state   text NOT NULL,
    size    int NOT NULL,
    holder  uuid,
    vms     jsonb NOT NULL
);
CREATE FUNCTION chaos.cluster_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos.clusters (cluster, state, size, holder, vms)
    SELECT c.id, c.state, c.size, c.held_by, (
        SELECT coalesce(jsonb_agg(jsonb_build_object('id', v.id, 'role', v.role, 'phase', v.phase) ORDER BY v.seq), '[]')
        FROM public.vms v WHERE v.cluster_id = c.id AND v.removed IS NULL)
    FROM public.clusters c WHERE c.id = NEW.id AND c.version = NEW.version; -- of several changes the last
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER chaos AFTER INSERT OR UPDATE OF version ON clusters DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION chaos.cluster_changed();

CREATE TABLE chaos.vms (
    seq     bigint NOT NULL DEFAULT nextval('chaos.seq'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    vm      uuid NOT NULL,
    cluster uuid NOT NULL,
    job     uuid,
    role    text NOT NULL,
    state   text NOT NULL,
    phase   text NOT NULL,
    removed boolean NOT NULL
);
CREATE FUNCTION chaos.vm_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos.vms (vm, cluster, job, role, state, phase, removed)
    VALUES (NEW.id, NEW.cluster_id, NEW.job_id, NEW.role, NEW.state, NEW.phase, NEW.removed IS NOT NULL);
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_made AFTER INSERT ON vms FOR EACH ROW EXECUTE FUNCTION chaos.vm_changed();
CREATE TRIGGER chaos_changed AFTER UPDATE ON vms FOR EACH ROW
    WHEN ((OLD.state, OLD.phase, OLD.removed) IS DISTINCT FROM (NEW.state, NEW.phase, NEW.removed)) EXECUTE FUNCTION chaos.vm_changed();

-- The life of a job but for the renewals of its lease. taken: from whom still
-- had it.
CREATE TABLE chaos.jobs (
    seq     bigint NOT NULL DEFAULT nextval('chaos.seq'),
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    app     text NOT NULL DEFAULT current_setting('application_name'),
    job     uuid NOT NULL,
    owner   text,
    attempt bigint NOT NULL,
    taken   boolean NOT NULL,
    status  int NOT NULL,
    step    text NOT NULL,
    tries   int NOT NULL,
    failure text NOT NULL
);
CREATE FUNCTION chaos.job_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos.jobs (job, owner, attempt, taken, status, step, tries, failure)
    VALUES (NEW.id, NEW.owner, NEW.attempt, TG_OP = 'UPDATE' AND OLD.owner IS NOT NULL AND NEW.attempt > OLD.attempt,
        NEW.status, NEW.step, NEW.tries, NEW.failure);
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_made AFTER INSERT ON jobs FOR EACH ROW EXECUTE FUNCTION chaos.job_changed();
CREATE TRIGGER chaos_changed AFTER UPDATE ON jobs FOR EACH ROW
    WHEN ((OLD.owner, OLD.attempt, OLD.status, OLD.step, OLD.tries, OLD.failure) IS DISTINCT FROM
        (NEW.owner, NEW.attempt, NEW.status, NEW.step, NEW.tries, NEW.failure)) EXECUTE FUNCTION chaos.job_changed();

-- The calls that the simulated cloud counted, one by one.
CREATE TABLE chaos.calls (
    seq       bigint NOT NULL DEFAULT nextval('chaos.seq'),
    at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    app       text NOT NULL DEFAULT current_setting('application_name'),
    cluster   text NOT NULL,
    operation text NOT NULL,
    vm        text NOT NULL
);
CREATE FUNCTION chaos.called() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos.calls (cluster, operation, vm)
    SELECT substr(NEW.key, length('simulator/calls/') + 1), o.key, v.key
    FROM jsonb_each(NEW.document) o, jsonb_each(o.value) v
    WHERE OLD.document -> o.key -> v.key IS DISTINCT FROM v.value;
    RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER UPDATE ON world_documents FOR EACH ROW
    WHEN (NEW.key LIKE 'simulator/calls/%') EXECUTE FUNCTION chaos.called();
