package invariant

import (
	"strings"
	"testing"
	"time"

	"ckscale/internal/cks"
)

// sound is a service with a quiet cluster and one that is being scaled, whose
// new VM is not listed yet.
func sound() Facts {
	return Facts{
		Clusters: []Cluster{
			{"a", "quiet", cks.Alert, 1, []VM{{ID: "a1"}, {ID: "a2", Worker: true}}},
			{"b", "busy", cks.Scaling, 1, []VM{{ID: "b1"}, {ID: "b2", Worker: true}, {ID: "b3", Worker: true, Changing: true}}},
		},
		VMs:   []VM{{ID: "p", Name: "plain"}, {ID: "q", Name: "in work", Changing: true}},
		Jobs:  []Job{{ID: "j", ClusterID: "b", Holds: true, Remaining: -time.Second}, {ID: "k", VMID: "q"}},
		Cloud: []Machine{{"a1", "a1", "a"}, {"a2", "a2", "a"}, {"b1", "b1", "b"}, {"b2", "b2", "b"}, {"b4", "b4", "b"}, {"p", "plain", ""}},
	}
}

// Each breach is told, and nothing is told of what is sound.
func TestBreachesAreTold(t *testing.T) {
	t.Parallel()
	if broken := sound().Broken(); len(broken) > 0 {
		t.Errorf("sound, but %q", broken)
	}
	mixed := sound() // in Alert, and while a job has the cluster
	mixed.Kubelets = map[string]string{"a2": "v1.34.1", "b2": "v1.34.1"}
	if broken := mixed.Broken(); len(broken) > 0 {
		t.Errorf("an upgrade that is under way or has failed, but %q", broken)
	}
	for want, spoil := range map[string]func(f *Facts){
		"I1: the size of quiet is 2 and 1 workers are listed": func(f *Facts) { f.Clusters[0].Size = 2 },
		"I2: cluster busy is Scaling with 0 live jobs":        func(f *Facts) { f.Jobs = nil },
		"I2: cluster quiet is Alert with 1 live jobs":         func(f *Facts) { f.Jobs[0].ClusterID = "a" },
		"I2: cluster busy is Scaling with 2 live jobs":        func(f *Facts) { f.Jobs = append(f.Jobs, f.Jobs[0]) },
		"I2: 1 clusters are busy and 2 jobs hold one":         func(f *Facts) { f.Jobs = []Job{{Holds: true}, {Holds: true}} },
		"I3: VM a2 exists and is not listed":                  func(f *Facts) { f.Clusters[0].VMs = f.Clusters[0].VMs[:1] },
		"I3: VM left exists and is not listed":                func(f *Facts) { f.Cloud = append(f.Cloud, Machine{"x", "left", "gone"}) },
		"I3: VM  is listed and does not exist":                func(f *Facts) { f.Cloud = f.Cloud[1:] },
		"I5: node a2 has version v1.34.1 and is listed with \"1.33.1\"": func(f *Facts) {
			f.Clusters[0].State, f.Clusters[0].VMs[1].Name, f.Clusters[0].VMs[1].Version = cks.Running, "a2", "1.33.1"
			f.Kubelets = map[string]string{"a2": "v1.34.1"}
		},
		"I4: job j should have ended 1m1s ago":        func(f *Facts) { f.Jobs[0].Remaining = -Margin - time.Second },
		"I3: VM plain is listed and does not exist":   func(f *Facts) { f.Cloud = f.Cloud[:5] },
		"I3: VM in work is listed and does not exist": func(f *Facts) { f.Jobs[1].VMID = "" },
		"I3: VM plain exists and is not listed":       func(f *Facts) { f.VMs = f.VMs[1:] },
		"I6: VM plain waits for a job that has ended": func(f *Facts) { f.VMs[0].Changing = true },
		"I6: VM a2 waits for a job that has ended": func(f *Facts) {
			f.Clusters[0].VMs[1].Name, f.Clusters[0].VMs[1].Changing = "a2", true
		},
		"I3: VM a1 is in two places": func(f *Facts) { f.Cloud = append(f.Cloud, Machine{"a1", "a1", "a"}) },
	} {
		f := sound()
		spoil(&f)
		if broken := f.Broken(); !strings.Contains(strings.Join(broken, "\n"), want) {
			t.Errorf("want %q, got %q", want, broken)
		}
	}
}
