package cks

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// ptr returns a pointer to v: a parameter that was sent.
func ptr[T any](v T) *T { return &v }

// offerings by id. "custom" leaves its size open.
func testOfferings() map[string]Offering {
	m := map[string]Offering{}
	for i, o := range []Offering{
		{Name: "tiny", Cores: 1, SpeedMHz: 2000, MemoryMB: 4096},
		{Name: "thin", Cores: 4, SpeedMHz: 1000, MemoryMB: 1024},
		{Name: "small", Cores: 2, SpeedMHz: 1000, MemoryMB: 2048},
		{Name: "medium", Cores: 4, SpeedMHz: 1000, MemoryMB: 4096},
		{Name: "large", Cores: 8, SpeedMHz: 1000, MemoryMB: 8192},
		{Name: "slow", Cores: 4, SpeedMHz: 500, MemoryMB: 8192},
		{Name: "custom"},
		{Name: "lean", Cores: 8, SpeedMHz: 1000, MemoryMB: 2048},
	} {
		o.ID, o.Seq = o.Name, int64(i+1)
		m[o.ID] = o
	}
	return m
}

// edit changes the facts of a test.
type edit = func(*ScaleFacts)

// newFacts is a Running cluster "demo" with 3 control nodes and 2 workers, all
// on offering medium, Kubernetes 1.33.1, autoscaling off; and what edits make
// of it.
func newFacts(edits ...edit) ScaleFacts {
	f := ScaleFacts{
		View: ClusterView{
			Cluster: Cluster{ID: "c1", Name: "demo", State: Running, DefaultOffering: "medium", AccountID: "a1"},
			Zone:    Zone{ID: "z1", Name: "zone1"},
			Version: &KubernetesVersion{
				ID: "v1", Name: "v1.33.1", Version: "1.33.1", MinCores: 2, MinMemoryMB: 2048, Enabled: true,
			},
			Template: &Template{ID: "t1", Name: "node-image", Ready: true},
		},
		Offerings: testOfferings(), MaxSize: 10, EndpointURL: "http://10.1.1.1:8080/client/api",
	}
	with(nodesOf(3, 0, 2, 0))(&f)
	with(edits...)(&f)
	return f
}

func with(edits ...edit) edit {
	return func(f *ScaleFacts) {
		for _, e := range edits {
			e(f)
		}
	}
}

// nodesOf gives the cluster these nodes: ctl1…, etcd1…, w1…, ext1….
func nodesOf(control, etcd, workers, external int) edit {
	return func(f *ScaleFacts) {
		c := &f.View.Cluster
		c.ControlNodes, c.EtcdNodes, c.Size = control, etcd, workers+external
		f.View.VMs = nil
		add := func(n int, name string, role Role, external bool) {
			for i := range n {
				id := fmt.Sprintf("%s%d", name, i+1)
				f.View.VMs = append(f.View.VMs, VM{
					ID: id, Seq: int64(len(f.View.VMs) + 1), ClusterID: c.ID, Name: "demo-" + id, Role: role,
					External: external, OfferingID: c.OfferingFor(role), State: VMRunning, Phase: Member,
				})
			}
		}
		add(etcd, "etcd", Etcd, false)
		add(control, "ctl", Control, false)
		add(workers, "w", Worker, false)
		add(external, "ext", Worker, true)
	}
}

func inTheState(s State) edit { return func(f *ScaleFacts) { f.View.Cluster.State = s } }

// vm puts a VM into a state.
func vm(id string, s VMState) edit {
	return onVM(id, func(v *VM) { v.State = s })
}

func onVM(id string, change func(*VM)) edit {
	return func(f *ScaleFacts) {
		i := slices.IndexFunc(f.View.VMs, func(v VM) bool { return v.ID == id })
		change(&f.View.VMs[i])
	}
}

func cluster(change func(*Cluster)) edit { return func(f *ScaleFacts) { change(&f.View.Cluster) } }

func version(change func(*KubernetesVersion)) edit {
	return func(f *ScaleFacts) { change(f.View.Version) }
}

func autoscales(lo, hi int) edit {
	return cluster(func(c *Cluster) { c.Autoscaling = Autoscaling{Enabled: true, Min: lo, Max: hi} })
}

// inAlertWith is an Alert cluster that may be scaled: worker 1 is down.
func inAlertWith(edits ...edit) edit {
	return with(append([]edit{inTheState(Alert), vm("w1", VMStopped)}, edits...)...)
}

func toSize(n int64) ScaleRequest { return ScaleRequest{Size: &n} }

func without(ids ...string) ScaleRequest {
	return ScaleRequest{NodeIDs: append([]string{}, ids...)}
}

func offering(ref string) ScaleRequest { return ScaleRequest{OfferingID: &ref} }

// nodeOfferings takes pairs of node type and offering.
func nodeOfferings(pairs ...string) ScaleRequest {
	r := ScaleRequest{}
	for p := range slices.Chunk(pairs, 2) {
		r.NodeOfferings = append(r.NodeOfferings, NodeOffering{Node: &p[0], Offering: &p[1]})
	}
	return r
}

func autoscale(on bool, bounds ...int64) ScaleRequest {
	r := ScaleRequest{Autoscaling: &on}
	if len(bounds) > 0 {
		r.MinSize = &bounds[0]
	}
	if len(bounds) > 1 {
		r.MaxSize = &bounds[1]
	}
	return r
}

// both is a request with the parameters of all rs; the first that has one wins.
func both(rs ...ScaleRequest) ScaleRequest {
	var sum ScaleRequest
	for _, r := range slices.Backward(rs) {
		if r.OfferingID != nil {
			sum.OfferingID = r.OfferingID
		}
		if r.Size != nil {
			sum.Size = r.Size
		}
		if r.Autoscaling != nil {
			sum.Autoscaling = r.Autoscaling
		}
		if r.MinSize != nil {
			sum.MinSize = r.MinSize
		}
		if r.MaxSize != nil {
			sum.MaxSize = r.MaxSize
		}
		if r.NodeIDs != nil {
			sum.NodeIDs = r.NodeIDs
		}
		sum.NodeOfferings = append(sum.NodeOfferings, r.NodeOfferings...)
	}
	return sum
}

// resolve finds the rows that nodeids name, as the service does: in the
// cluster, in another cluster (x1), and removed ones (gone).
func resolve(f *ScaleFacts, req ScaleRequest) {
	rows := map[string]VM{
		"x1":   {ID: "x1", ClusterID: "c2", Name: "other-x1", Role: Worker, State: VMRunning, Phase: Member},
		"x2":   {ID: "x2", ClusterID: "c2", Name: "other-x2", Role: Control, State: VMRunning, Phase: Member},
		"gone": {ID: "gone", ClusterID: "c1", Name: "demo-gone", Role: Worker, State: VMExpunging, Phase: Member, Removed: true},
	}
	for _, v := range f.View.VMs {
		rows[v.ID] = v
	}
	for _, id := range req.NodeIDs {
		f.NodeVMs = append(f.NodeVMs, rows[strings.ToLower(strings.TrimSpace(id))])
	}
}

// checkText fails the test unless err is a refusal with this code and text.
func checkText(t *testing.T, err error, code Code, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("accepted, want %q", text)
	}
	if err.Error() != text || CodeOf(err) != code {
		t.Fatalf("refused with\n  %s: %s\nwant\n  %s: %s", CodeOf(err), err, code, text)
	}
}

// outcome runs a check list, without one check if drop is not empty. A panic
// counts as an outcome of its own.
func outcome[F any](list []check[F], drop string, f F) (name, text string) {
	defer func() {
		if p := recover(); p != nil {
			name, text = "panic", fmt.Sprint(p)
		}
	}()
	list = slices.DeleteFunc(slices.Clone(list), func(c check[F]) bool { return c.name == drop })
	name, err := firstBroken(list, f)
	if err != nil {
		text = err.Error()
	}
	return name, text
}

// checkList fails the test unless names, in the order of the first case of each
// check, are exactly the checks of the list.
func checkList[F any](t *testing.T, list []check[F], names []string) {
	t.Helper()
	var want []string
	for _, n := range names {
		if !slices.Contains(want, n) {
			want = append(want, n)
		}
	}
	var got []string
	for _, c := range list {
		got = append(got, c.name)
		if c.ref == "" {
			t.Errorf("check %q says not where it comes from", c.name)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("checks are\n  %s\nand the cases, in the order of the specification,\n  %s",
			strings.Join(got, " | "), strings.Join(want, " | "))
	}
	if set := maps.Collect(slices.All(got)); len(set) != len(got) {
		t.Fatal("a name occurs twice")
	}
}
