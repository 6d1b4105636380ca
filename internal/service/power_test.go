package service

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store/storetest"
)

// version adds a Kubernetes version.
func (s scene) version(number string) cks.KubernetesVersion {
	s.Helper()
	v, err := s.st.AddVersion(s.Context(), cks.KubernetesVersion{Name: "v" + number, Version: number, ISOName: "iso", MinCores: 2, MinMemoryMB: 2048, Enabled: true})
	return must(v, err)(s)
}

// Where starting, stopping and upgrading take a cluster from each state that it
// can rest in, by which job, and what they are refused with (cks.md §4).
//
// Keeps: §4/start-stop, §4/start-created, §4/start-stop-already, §4/start-refused, §4/stop-refused, §4/upgrade.
func TestLifeOfAClusterFromEveryState(t *testing.T) {
	t.Parallel()
	type outcome struct {
		kind cks.Kind
		to   cks.State
		text string
	}
	none := func(state, done string) outcome {
		return outcome{text: "Kubernetes cluster : test is in " + state + " state and can not be " + done}
	}
	notRunning := func(state string) outcome {
		return outcome{text: "Kubernetes cluster : test is not in running state, it is in " + state + " state"}
	}
	for from, want := range map[cks.State]map[string]outcome{
		cks.Created: {"start": {cks.CreateCluster, cks.Starting, ""}, "stop": none("Created", "stopped"), "upgrade": notRunning("Created")},
		cks.Running: {"start": {cks.Nothing, cks.Running, ""}, "stop": {cks.StopCluster, cks.Stopping, ""}, "upgrade": {cks.UpgradeCluster, cks.Upgrading, ""}},
		cks.Stopped: {"start": {cks.StartCluster, cks.Starting, ""}, "stop": {cks.Nothing, cks.Stopped, ""}, "upgrade": notRunning("Stopped")},
		cks.Alert:   {"start": none("Alert", "started"), "stop": {cks.StopCluster, cks.Stopping, ""}, "upgrade": notRunning("Alert")},
		cks.Error:   {"start": none("Error", "started"), "stop": none("Error", "stopped"), "upgrade": notRunning("Error")},
	} {
		for name, o := range want {
			t.Run(string(from)+"/"+name, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, storetest.Spec{State: from, Control: 1, Workers: 2})
				newer := s.version("1.34.1")
				set := settings
				set.StartTimeout, set.UpgradeTimeout = 2*time.Hour, 3*time.Hour
				s.Service = New(s.st, nil, set)
				id, jobID := s.view.Cluster.ID, uuid.NewString()
				var job cks.Job
				var err error
				limit := set.StartTimeout
				switch name {
				case "start":
					job, err = s.StartCluster(t.Context(), s.owner, id, jobID)
				case "stop":
					job, err = s.StopCluster(t.Context(), s.owner, id, jobID)
				default:
					limit = set.UpgradeTimeout
					job, err = s.UpgradeCluster(t.Context(), s.owner, cks.UpgradeRequest{Cluster: id, Version: newer.ID, JobID: jobID})
				}
				if must(job, err)(t); job.ID != jobID || job.Command != name+"KubernetesCluster" || job.ClusterID != id {
					t.Errorf("job is %+v", job)
				}
				c := s.now().Cluster
				switch {
				case o.text != "":
					s.in(t).refused(job, o.text)
				case o.kind == cks.Nothing:
					if job.Status != cks.JobSucceeded || (name == "stop") != job.Result.Success || (name == "start") != (job.Result.Cluster != nil) {
						t.Errorf("job is %+v", job)
					}
				case job.Kind != o.kind || c.HeldBy != jobID || job.Remaining < limit-time.Minute || job.Remaining > limit:
					t.Errorf("%s, cluster held by %q, limit %s", job.Kind, c.HeldBy, job.Remaining)
				}
				if to := o.to; to != "" && c.State != to || to == "" && c.State != from {
					t.Errorf("the cluster is %s", c.State)
				}
				if name == "upgrade" && o.text == "" && (job.Args.VersionID != newer.ID || job.Args.Version != "1.34.1") {
					t.Errorf("asked for %+v", job.Args)
				}
			})
		}
	}
}

// While one job has the cluster, nobody else's request gets it.
//
// Keeps: §4/stop-refused, #14609.
func TestHeldClusterIsNeitherStartedStoppedNorUpgraded(t *testing.T) {
	t.Parallel()
	for _, state := range cks.States {
		if !state.Busy() {
			continue
		}
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, storetest.Spec{State: state, Control: 1, Workers: 2})
			c, newer := s.view.Cluster, s.version("1.34.1")
			in := "Kubernetes cluster : test is in " + string(state) + " state and can not be "
			s.refused(must(s.StartCluster(t.Context(), s.owner, c.ID, ""))(t), in+"started")
			s.refused(must(s.StopCluster(t.Context(), s.owner, c.ID, ""))(t), in+"stopped")
			s.refused(must(s.UpgradeCluster(t.Context(), s.owner, cks.UpgradeRequest{Cluster: c.ID, Version: newer.ID}))(t),
				"Kubernetes cluster : test is not in running state, it is in "+string(state)+" state")
			s.refused(must(s.DeleteCluster(t.Context(), s.owner, c.ID, ""))(t), "Cannot perform delete operation on Kubernetes cluster : test in state: "+string(state))
			s.refused(s.scale(cks.ScaleRequest{Size: new(int64(3))}), notScalable(c, state))
			if now := s.now().Cluster; now.State != state || now.HeldBy != c.HeldBy || now.Version != c.Version {
				t.Errorf("the cluster is %s, held by %q", now.State, now.HeldBy)
			}
		})
	}
}

// Of requests of every kind that come together one holds the cluster.
//
// Keeps: #14609, A45.
func TestOneOfManyKindsHolds(t *testing.T) {
	t.Parallel()
	services, s := replicas(t, 2, running(2))
	id, newer := s.view.Cluster.ID, s.version("1.34.1")
	jobs, err := atOnce(12, func(i int) (cks.Job, error) {
		switch svc := services[i%2]; i % 3 {
		case 0:
			return svc.StopCluster(t.Context(), s.owner, id, "")
		case 1:
			return svc.UpgradeCluster(t.Context(), s.owner, cks.UpgradeRequest{Cluster: id, Version: newer.ID})
		default:
			return svc.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: id, Size: new(int64(3))})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	live := s.live()
	if len(live) != 1 || s.now().Cluster.HeldBy != live[0].ID {
		t.Fatalf("live jobs: %+v", live)
	}
	for _, job := range jobs {
		if (job.Status == cks.JobPending) != (job.ID == live[0].ID) {
			t.Errorf("job %s has status %d", job.ID, job.Status)
		}
	}
}

// Somebody else's cluster is refused at once, before anything else is looked
// at; ids that name nothing are errors, numbers that name nothing refusals.
//
// Keeps: E12, §4/upgrade-refused.
func TestLifeOfOthersClusters(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	other, root := s.account("other", false), s.account("root", true)
	newer, nobody := s.version("1.34.1"), uuid.NewString()
	ctx, calls := t.Context(), []func(a cks.Account, id, version, jobID string) (cks.Job, error){
		func(a cks.Account, id, _, jobID string) (cks.Job, error) {
			return s.StartCluster(t.Context(), a, id, jobID)
		},
		func(a cks.Account, id, _, jobID string) (cks.Job, error) {
			return s.StopCluster(t.Context(), a, id, jobID)
		},
		func(a cks.Account, id, version, jobID string) (cks.Job, error) {
			return s.UpgradeCluster(t.Context(), a, cks.UpgradeRequest{Cluster: id, Version: version, JobID: jobID})
		},
	}
	for _, call := range calls {
		for _, ref := range []string{s.view.Cluster.ID, number64(s.view.Cluster.Seq)} {
			_, err := call(other, ref, nobody, "")
			coded(t, err, cks.Denied, denied)
		}
		_, err := call(s.owner, nobody, newer.ID, "")
		coded(t, err, cks.UnknownID, unknownText("id", nobody))
		_, err = call(s.owner, s.view.Cluster.ID, newer.ID, "x")
		coded(t, err, cks.Parameter, "UUID: x doesn't follow the UUID format")
		s.refused(must(call(s.owner, "4711", newer.ID, ""))(t), "Invalid Kubernetes cluster ID")
	}
	upgrade := calls[2]
	_, err := upgrade(s.owner, s.view.Cluster.ID, nobody, "")
	coded(t, err, cks.UnknownID, unknownText("kubernetesversionid", nobody))
	s.refused(must(upgrade(s.owner, s.view.Cluster.ID, "4711", ""))(t), "Invalid Kubernetes version ID")
	events, _, err := s.st.Events(ctx, cks.EventFilter{Level: "ERROR", Account: "other"}, "")
	if must(events, err)(t); len(events) != 6 || !slices.ContainsFunc(events, func(e cks.AuditEvent) bool { return e.Type == cks.EventClusterUpgrade }) {
		t.Errorf("told to other: %+v", events)
	}
	if job := must(upgrade(root, number64(s.view.Cluster.Seq), number64(2), ""))(t); job.Status != cks.JobPending || job.Account.ID != root.ID {
		t.Errorf("job is %+v", job)
	}
}
