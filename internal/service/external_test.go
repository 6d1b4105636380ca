package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"ckscale/internal/cks"
	"ckscale/internal/store"
	"ckscale/internal/store/storetest"
)

// request is a deployment with the cluster's zone, template and offering.
func (s scene) request(name string) cks.DeployRequest {
	return cks.DeployRequest{Name: name, ZoneID: s.view.Zone.ID, OfferingID: s.view.Cluster.DefaultOffering, TemplateID: s.view.Template.ID}
}

// deployed is a plain VM of the account, which runs.
func (s scene) deployed(owner cks.Account, name string) cks.VM {
	s.Helper()
	id, job, err := s.DeployVM(s.Context(), owner, s.request(name))
	must(id, err)(s)
	claimed, err := s.st.ClaimJobs(s.Context(), uuid.NewString(), 100, time.Minute)
	for _, j := range must(claimed, err)(s) {
		if j.ID != job.ID {
			continue
		}
		if err := s.st.InTx(s.Context(), func(q *store.Queries) error {
			if err := q.PlainSettled(s.Context(), j, false); err != nil {
				return err
			}
			view, err := q.VMView(s.Context(), id)
			if err != nil {
				return err
			}
			return q.FinishJob(s.Context(), j, cks.JobResult{VM: &view})
		}); err != nil {
			s.Fatal(err)
		}
	}
	if err := s.st.ObserveVM(s.Context(), id, cks.Machine{State: cks.VMRunning}, time.Now().Add(time.Hour)); err != nil {
		s.Fatal(err)
	}
	return s.vm(id)
}

func (s scene) vm(id string) cks.VM {
	s.Helper()
	v, err := s.st.VMByRef(s.Context(), id)
	return must(v, err)(s)
}

func (s scene) nodes(vms ...cks.VM) cks.NodesRequest {
	return cks.NodesRequest{Cluster: s.view.Cluster.ID, NodeIDs: ids(vms)}
}

// A deployment is recorded as a VM of the caller's with a live job; what is
// wrong with it is an error, and an event.
//
// Keeps: ours/plain, ours/plain-name, ours/plain-limits.
func TestDeployVM(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	jobID := uuid.NewString()
	req := s.request("box")
	req.JobID, req.DisplayName, req.Keypair, req.NetworkIDs = jobID, "my box", "k", []string{strings.ToUpper(s.view.Cluster.NetworkID), number64(s.lan().Seq)}
	id, job, err := s.DeployVM(t.Context(), s.owner, req)
	must(id, err)(t)
	view := must(s.st.VMView(t.Context(), id))(t)
	if job.ID != jobID || job.Kind != cks.DeployVM || job.VMID != id || view.VM.Phase != cks.Chosen || view.Account.ID != s.owner.ID ||
		view.NetworkID != s.view.Cluster.NetworkID || view.NetworkName != s.view.Cluster.NetworkName || view.VM.Name != "box" ||
		view.VM.DisplayName != "my box" || view.VM.Keypair != "k" || view.VM.ClusterID != "" || view.VM.Place != id {
		t.Errorf("job %+v\nVM %+v", job, view)
	}
	unnamed, _, err := s.DeployVM(t.Context(), s.owner, s.request(""))
	must(unnamed, err)(t)
	if v := must(s.st.VMView(t.Context(), unnamed))(t); v.VM.Name != "VM-"+unnamed || v.NetworkName != s.owner.Name+"-network" || v.NetworkID == "" {
		t.Errorf("VM %+v", v)
	}
	if _, total, err := s.Networks(t.Context(), s.owner, cks.NetworkFilter{Keyword: s.owner.Name + "-network"}); err != nil || total != 1 {
		t.Errorf("%d networks of the account, %v", total, err)
	}
	other := s.account("other", false)
	theirs := s.request("theirs")
	theirs.NetworkIDs = req.NetworkIDs
	_, _, err = s.DeployVM(t.Context(), other, theirs)
	coded(t, err, cks.Denied, denied)
	must(first(s.DeployVM(t.Context(), other, s.request("BOX"))))(t) // another account's names are its own
	for want, edit := range map[string]func(*cks.DeployRequest){
		"There already exists a VM with the name: Box.":                            func(r *cks.DeployRequest) { r.Name = "Box" },
		unknownText("zoneid", "x"):                                                 func(r *cks.DeployRequest) { r.ZoneID = "x" },
		unknownText("serviceofferingid", "4711"):                                   func(r *cks.DeployRequest) { r.OfferingID = "4711" },
		unknownText("templateid", "x"):                                             func(r *cks.DeployRequest) { r.TemplateID = "x" },
		unknownText("networkids", jobID):                                           func(r *cks.DeployRequest) { r.NetworkIDs = []string{jobID} },
		unknownText("networkids", "x"):                                             func(r *cks.DeployRequest) { r.NetworkIDs = []string{"x"} },
		"UUID: x doesn't follow the UUID format":                                   func(r *cks.DeployRequest) { r.JobID = "x" },
		"UUID: " + jobID + " already exists so can't create/update with custom id": func(r *cks.DeployRequest) { r.JobID = jobID },
	} {
		req := s.request("more")
		edit(&req)
		if _, _, err := s.DeployVM(t.Context(), s.owner, req); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	four := 4
	if err := s.st.SetLimits(t.Context(), s.owner.ID, store.Limits{VMs: &four}); err != nil { // two of the cluster, two plain ones
		t.Fatal(err)
	}
	_, _, err = s.DeployVM(t.Context(), s.owner, s.request("more"))
	coded(t, err, cks.Failed, "Resource limits prevent creating the Instance: the account may use 4 VMs, uses 4 and needs 1 more")
	s.refused(s.scale(cks.ScaleRequest{Size: new(int64(2))}), "Resource limits prevent scaling the cluster: the account may use 4 VMs, uses 4 and needs 1 more")
	if _, n, err := s.st.Events(t.Context(), cks.EventFilter{Type: "VM.CREATE", Level: "ERROR"}, s.owner.ID); err != nil || n != 2 {
		t.Errorf("%d refusals are told: %v", n, err)
	}
	if n := len(s.live()); n != 3 {
		t.Errorf("%d live jobs", n)
	}
}

// Deployments at once do not pass a limit together.
//
// Keeps: ours/plain-limits.
func TestDeploymentsDoNotPassALimitTogether(t *testing.T) {
	t.Parallel()
	services, s := replicas(t, 2, running(1))
	five := 5 // two of the cluster
	if err := s.st.SetLimits(t.Context(), s.owner.ID, store.Limits{VMs: &five}); err != nil {
		t.Fatal(err)
	}
	_, _ = atOnce(12, func(i int) (cks.Job, error) {
		_, job, err := services[i%2].DeployVM(t.Context(), s.owner, s.request(fmt.Sprintf("box%d", i)))
		return job, err
	})
	if n, _, _, err := s.st.Usage(t.Context(), s.owner.ID); err != nil || n != five {
		t.Errorf("the account uses %d VMs: %v", n, err)
	}
}

func first(id string, _ cks.Job, err error) (string, error) { return id, err }

// VMs and clusters of others are refused at once, and nothing is told of them.
//
// Keeps: ours/nodes-own.
func TestNodesOfOthersAreDenied(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(2))
	other, admin := s.account("other", false), s.account("root", true)
	mine, theirs := s.deployed(s.owner, "mine"), s.deployed(other, "theirs")
	outside, _, err := s.CreateCluster(t.Context(), s.owner, cks.CreateRequest{Name: "capc", ZoneID: s.view.Zone.ID, Linked: true})
	must(outside, err)(t)
	for name, call := range map[string]func() error{
		"destroy": func() error { _, err := s.DestroyVM(t.Context(), other, cks.VMRequest{VM: mine.ID}); return err },
		"stop":    func() error { _, err := s.StopVM(t.Context(), other, cks.VMRequest{VM: mine.ID}); return err },
		"cluster": func() error { _, err := s.AddNodes(t.Context(), other, s.nodes(theirs)); return err },
		"node":    func() error { _, err := s.AddNodes(t.Context(), s.owner, s.nodes(mine, theirs)); return err },
		"removal": func() error { _, err := s.RemoveNodes(t.Context(), other, s.nodes(theirs)); return err },
		"link": func() error {
			return s.LinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: outside, VMIDs: ids([]cks.VM{mine, theirs})})
		},
		"link to": func() error {
			return s.LinkVMs(t.Context(), other, cks.LinkRequest{Cluster: outside, VMIDs: ids([]cks.VM{theirs})})
		},
		"unlink": func() error {
			_, err := s.UnlinkVMs(t.Context(), other, cks.LinkRequest{Cluster: outside, VMIDs: ids([]cks.VM{theirs})})
			return err
		},
	} {
		if err := call(); cks.CodeOf(err) != cks.Denied || err.Error() != denied {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v := s.vm(mine.ID); v.ClusterID != "" || len(s.live()) != 0 {
		t.Errorf("VM %+v, live jobs %+v", v, s.live())
	}
	if vms, n, err := s.VMs(t.Context(), other, cks.VMFilter{}); err != nil || n != 1 || vms[0].VM.ID != theirs.ID {
		t.Errorf("%d VMs are listed: %v", n, err)
	}
	s.refused(must(s.AddNodes(t.Context(), admin, s.nodes(theirs)))(t), // a root admin may, but it is not the owner's
		"Instance theirs can not be added to Kubernetes cluster : test as a node: it belongs to another account")
	if job := must(s.AddNodes(t.Context(), admin, s.nodes(mine)))(t); job.Status != cks.JobPending {
		t.Error(job.ErrorText)
	}
}

// A request is refused as a whole, and one that is accepted has its VMs from
// that moment on, for as long as the setting says at most.
//
// Keeps: §4/external-nodes, ours/nodes-whole, ours/nodes-alone.
func TestNodesAreTakenAtOnce(t *testing.T) {
	t.Parallel()
	s := newScene(t, storetest.Spec{Workers: 1, External: 1})
	s.set.AddTimeout, s.set.RemoveTimeout = 3*time.Hour, 2*time.Hour
	box, busy := s.deployed(s.owner, "box"), s.deployed(s.owner, "busy")
	stop := must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: busy.ID}))(t)
	s.refused(must(s.AddNodes(t.Context(), s.owner, s.nodes(box, busy)))(t), "another job is in progress for VM "+busy.ID)
	unknown := s.nodes(box)
	unknown.NodeIDs = append(unknown.NodeIDs, "4711")
	s.refused(must(s.AddNodes(t.Context(), s.owner, unknown))(t), "Invalid node ids")
	unknown.NodeIDs[1] = uuid.NewString()
	_, err := s.AddNodes(t.Context(), s.owner, unknown)
	coded(t, err, cks.UnknownID, unknownText("nodeids", unknown.NodeIDs[1]))
	none := s.nodes(box)
	none.Cluster = "4711"
	s.refused(must(s.AddNodes(t.Context(), s.owner, none))(t), "Invalid Kubernetes cluster ID specified")
	if v, c := s.vm(box.ID), s.now().Cluster; v.ClusterID != "" || c.State != cks.Running || len(s.live()) != 1 || s.live()[0].ID != stop.ID {
		t.Fatalf("VM %+v, cluster %s, live jobs %+v", v, c.State, s.live())
	}
	req := s.nodes(box)
	req.NodeIDs[0], req.ManualUpgrade = " "+strings.ToUpper(box.ID), true
	add := must(s.AddNodes(t.Context(), s.owner, req))(t)
	v, c := s.vm(box.ID), s.now().Cluster
	if c.State != cks.Importing || c.HeldBy != add.ID || c.Size != 2 || v.ClusterID != c.ID || !v.External || v.Phase != cks.Chosen || !v.Manual ||
		v.NodeVersion != "1.33.1" || v.Role != cks.Worker || add.Notes.Wanted != 1 {
		t.Errorf("cluster %s, VM %+v, job %+v", c.State, v, add)
	}
	if left := s.remaining(add); left < 2*time.Hour || left > 3*time.Hour {
		t.Errorf("it may take %s", left)
	}
	const moving = "Instance box is being added to a Kubernetes cluster and can not be "
	s.refused(must(s.StopVM(t.Context(), s.owner, cks.VMRequest{VM: box.ID}))(t), moving+"stopped")
	s.refused(must(s.DestroyVM(t.Context(), s.owner, cks.VMRequest{VM: box.ID}))(t),
		cks.CheckDestroyVM(v, "test").Error())
	s.refused(must(s.AddNodes(t.Context(), s.owner, s.nodes(box)))(t), "Kubernetes cluster : test is in Importing state and nodes can not be added to it")
	s.end(add, func(q *store.Queries, j cks.Job) error { return q.NodeJoined(t.Context(), j, box.ID, true) })

	remove := must(s.RemoveNodes(t.Context(), s.owner, s.nodes(s.vm(box.ID), s.view.VMs[len(s.view.VMs)-1])))(t)
	if v, c := s.vm(box.ID), s.now().Cluster; c.State != cks.RemovingNodes || c.Size != 3 || v.Phase != cks.Leaving || s.remaining(remove) > 2*time.Hour {
		t.Errorf("cluster %s, VM %+v, job %+v", c.State, v, remove)
	}
	s.refused(must(s.StartVM(t.Context(), s.owner, cks.VMRequest{VM: box.ID}))(t), "Instance box is being removed from a Kubernetes cluster and can not be started")
}

func (s scene) remaining(job cks.Job) time.Duration {
	s.Helper()
	j, err := s.st.Job(s.Context(), job.ID)
	return must(j, err)(s).Remaining
}

// Of all that wants a VM at once, one gets it.
//
// Keeps: ours/nodes-alone, §4/conditional.
func TestVMIsTakenOnce(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			services, s := replicas(t, 2, running(1))
			second := storetest.Fixture(t, s.st, running(1)).Cluster.ID
			box := s.deployed(s.owner, "box")
			jobs, err := atOnce(12, func(i int) (cks.Job, error) {
				switch svc := services[i%2]; i % 4 {
				case 0:
					return svc.AddNodes(t.Context(), s.owner, s.nodes(box))
				case 1:
					return svc.AddNodes(t.Context(), s.owner, cks.NodesRequest{Cluster: second, NodeIDs: []string{box.ID}})
				case 2:
					return svc.StopVM(t.Context(), s.owner, cks.VMRequest{VM: box.ID})
				default:
					return svc.DestroyVM(t.Context(), s.owner, cks.VMRequest{VM: box.ID})
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			live := s.live()
			if len(live) != 1 {
				t.Fatalf("live jobs: %+v", live)
			}
			for _, job := range jobs {
				if (job.Status == cks.JobPending) != (job.ID == live[0].ID) {
					t.Errorf("%s has status %d: %s", job.Kind, job.Status, job.ErrorText)
				}
			}
			busy := 0
			for _, id := range []string{s.view.Cluster.ID, second} {
				if must(s.st.ClusterByRef(t.Context(), id))(t).State.Busy() {
					busy++
				}
			}
			v := s.vm(box.ID)
			if added := live[0].Kind == cks.AddNodes; added != (busy == 1) || added != (v.ClusterID == live[0].ClusterID && v.External) {
				t.Errorf("the job is %s, %d clusters are busy, the VM is %+v", live[0].Kind, busy, v)
			}
		})
	}
}

// The endpoint of a cluster that others manage is a URL, also when its address
// is of IPv6 (spec/cks.md §2.6).
func TestEndpointOfALinkedCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	for address, want := range map[string]string{
		"": "", "192.0.2.1": "https://192.0.2.1:6443/", "2001:db8::1": "https://[2001:db8::1]:6443/",
	} {
		req := cks.CreateRequest{Name: "capc", ZoneID: s.view.Zone.ID, Linked: true, Endpoint: address}
		id, _, err := s.CreateCluster(t.Context(), s.owner, req)
		if err != nil {
			t.Fatal(err)
		}
		if c := must(s.st.View(t.Context(), id))(t).Cluster; c.Endpoint != want || c.IPAddress != address {
			t.Errorf("address %q: %q, %q", address, c.IPAddress, c.Endpoint)
		}
	}
}

// What is linked is counted, and links are all or none.
//
// Keeps: ours/linked-create, ours/linked-vms.
func TestLinkVMs(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	req := cks.CreateRequest{Name: "capc", ZoneID: s.view.Zone.ID, Linked: true, Endpoint: "192.0.2.1", JobID: uuid.NewString()}
	id, job, err := s.CreateCluster(t.Context(), s.owner, req)
	must(id, err)(t)
	if job.ID != req.JobID || job.Status != cks.JobSucceeded || job.Result.Cluster.Cluster.ID != id || job.Result.Cluster.Cluster.State != cks.Running {
		t.Errorf("job %+v", job)
	}
	boxes := []cks.VM{s.deployed(s.owner, "a"), s.deployed(s.owner, "b"), s.deployed(s.owner, "c")}
	link := func(control bool, refs ...string) error {
		return s.LinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: id, VMIDs: refs, Control: control})
	}
	counted := func(control, size int) {
		t.Helper()
		if c := must(s.st.ClusterByRef(t.Context(), id))(t); c.ControlNodes != control || c.Size != size {
			t.Errorf("%d control nodes, size %d; want %d, %d", c.ControlNodes, c.Size, control, size)
		}
	}
	counted(1, 0)
	for want, err := range map[string]error{
		"Invalid VM ID specified": link(false, "4711"),
		"Instance " + s.workers()[0].Name + " is part of another Kubernetes cluster": link(false, boxes[0].ID, s.workers()[0].ID),
	} {
		coded(t, err, cks.Invalid, want)
	}
	counted(1, 0)
	if s.vm(boxes[0].ID).ClusterID != "" {
		t.Error("a VM was linked")
	}
	for _, err := range []error{link(true, boxes[0].ID), link(false, boxes[1].ID, boxes[2].ID, boxes[1].ID), link(false, boxes[0].ID)} {
		if err != nil {
			t.Error(err)
		}
	}
	counted(1, 2)
	if v := s.vm(boxes[0].ID); v.Role != cks.Control || !v.Linked || v.Place != v.ID {
		t.Errorf("VM %+v", v)
	}
	result := must(s.UnlinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: id, VMIDs: []string{boxes[0].ID, boxes[1].ID, s.workers()[0].ID}}))(t)
	for _, u := range result {
		if (u.Why != "") != (u.VMID == s.workers()[0].ID) {
			t.Errorf("%+v", u)
		}
	}
	counted(0, 1)
	if v := s.vm(boxes[0].ID); v.Role != cks.Worker || v.Linked || v.ClusterID != "" {
		t.Errorf("VM %+v", v)
	}
	if _, n, err := s.st.Events(t.Context(), cks.EventFilter{Type: "KUBERNETES.CLUSTER.NODES.ADD", ResourceID: id}, ""); err != nil || n != 3 {
		t.Errorf("%d events tell of the links: %v", n, err)
	}
	if job := must(s.DeleteCluster(t.Context(), s.owner, id, ""))(t); job.Status != cks.JobSucceeded || !job.Result.Success {
		t.Errorf("job %+v", job)
	}
	if c := must(s.st.ClusterByRef(t.Context(), id))(t); !c.Removed || c.State != cks.Destroyed || s.vm(boxes[2].ID).ClusterID != "" || s.vm(boxes[2].ID).Removed {
		t.Errorf("cluster %+v, VM %+v", c, s.vm(boxes[2].ID))
	}
	s.refused(must(s.DeleteCluster(t.Context(), s.owner, id, ""))(t), "Invalid Kubernetes cluster ID")
	coded(t, link(false, boxes[0].ID), cks.Invalid, "Invalid Kubernetes cluster ID specified")
}

// While a cluster is deleted together with its VMs, none is linked to it, which
// would be lost, and none is unlinked, which may be gone already.
//
// Keeps: ours/linked-vms.
func TestVMsOfAClusterThatIsDeletedStay(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	id, _, err := s.CreateCluster(t.Context(), s.owner, cks.CreateRequest{Name: "capc", ZoneID: s.view.Zone.ID, Linked: true})
	must(id, err)(t)
	in, out := s.deployed(s.owner, "in"), s.deployed(s.owner, "out")
	if err := s.LinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: id, VMIDs: []string{in.ID}}); err != nil {
		t.Fatal(err)
	}
	if job := must(s.DeleteClusterAndVMs(t.Context(), s.owner, id, ""))(t); job.Status != cks.JobPending {
		t.Fatalf("job %+v", job)
	}
	const why = "Kubernetes cluster : capc is in Destroying state and its VMs can not be changed"
	coded(t, s.LinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: id, VMIDs: []string{out.ID}}), cks.Conflict, why)
	_, err = s.UnlinkVMs(t.Context(), s.owner, cks.LinkRequest{Cluster: id, VMIDs: []string{in.ID}})
	coded(t, err, cks.Conflict, why)
	if s.vm(in.ID).ClusterID != id || s.vm(out.ID).ClusterID != "" {
		t.Errorf("%+v\n%+v", s.vm(in.ID), s.vm(out.ID))
	}
}

// A VM that somebody has linked to another account's cluster is not destroyed
// with it, unless by one who could destroy it by itself.
//
// Keeps: ours/linked-vms.
func TestLinkedVMsOfOthersAreNotDestroyed(t *testing.T) {
	t.Parallel()
	s := newScene(t, running(1))
	admin, other := s.account("root", true), s.account("other", false)
	id, _, err := s.CreateCluster(t.Context(), s.owner, cks.CreateRequest{Name: "capc", ZoneID: s.view.Zone.ID, Linked: true})
	must(id, err)(t)
	theirs := s.deployed(other, "theirs")
	if err := s.LinkVMs(t.Context(), admin, cks.LinkRequest{Cluster: id, VMIDs: []string{theirs.ID}}); err != nil {
		t.Fatal(err)
	}
	_, err = s.DeleteClusterAndVMs(t.Context(), s.owner, id, "")
	coded(t, err, cks.Denied, denied)
	if c := must(s.st.ClusterByRef(t.Context(), id))(t); c.State != cks.Running {
		t.Errorf("the cluster is %s", c.State)
	}
	if job := must(s.DeleteClusterAndVMs(t.Context(), admin, id, ""))(t); job.Status != cks.JobPending {
		t.Errorf("job %+v", job)
	}
}

// What jobs are about to make counts as well: creations, growth and deployments,
// one after the other or at once, do not pass a limit together.
//
// Keeps: ours/plain-limits.
func TestNothingPassesALimitTogether(t *testing.T) {
	t.Parallel()
	services, s := replicas(t, 2, running(1))
	ten := 10 // two of the cluster
	if err := s.st.SetLimits(t.Context(), s.owner.ID, store.Limits{VMs: &ten}); err != nil {
		t.Fatal(err)
	}
	_, _ = atOnce(12, func(i int) (job cks.Job, err error) {
		switch one := services[i%2]; i % 3 {
		case 0:
			_, job, err = one.CreateCluster(t.Context(), s.owner, s.createRequest(fmt.Sprintf("c%d", i)))
		case 1:
			_, job, err = one.DeployVM(t.Context(), s.owner, s.request(fmt.Sprintf("box%d", i)))
		default:
			job, err = one.Scale(t.Context(), s.owner, cks.ScaleRequest{Cluster: s.view.Cluster.ID, Size: new(int64(3))})
		}
		return job, err
	})
	wanted := 2
	for _, job := range s.live() {
		wanted += map[cks.Kind]int{cks.CreateCluster: 3, cks.ScaleUp: 2, cks.DeployVM: 1}[job.Kind]
	}
	if n, _, _, err := s.st.Usage(t.Context(), s.owner.ID); err != nil || n != wanted || n > ten || n < ten-2 {
		t.Errorf("the account uses %d VMs, its jobs come to %d, and %d are allowed: %v", n, wanted, ten, err)
	}
}
