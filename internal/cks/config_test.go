package cks

import "testing"

// A kubeconfig is there once the control plane is, whatever the state then, and
// until the cluster is removed.
//
// Keeps: clients/config-refused.
func TestCheckConfig(t *testing.T) {
	t.Parallel()
	control := func(p Phase) []VM { return []VM{{Role: Etcd, Phase: Member}, {Role: Control, Phase: p}} }
	for name, c := range map[string]struct {
		cluster Cluster
		vms     []VM
		text    string
	}{
		"running":           {Cluster{State: Running}, control(Member), ""},
		"alert":             {Cluster{State: Alert}, control(Member), ""},
		"stopped":           {Cluster{State: Stopped}, control(Member), ""},
		"started again":     {Cluster{State: Starting}, control(Member), ""},
		"control leaves":    {Cluster{State: Scaling}, control(Leaving), ""},
		"being made":        {Cluster{State: Starting}, control(Chosen), "Setup is in progress for Kubernetes cluster : demo, config not available at this moment"},
		"only recorded":     {Cluster{State: Created}, nil, "Config not found for Kubernetes cluster : demo"},
		"never made":        {Cluster{State: Error}, control(Doomed), "Config not found for Kubernetes cluster : demo"},
		"managed elsewhere": {Cluster{State: Running, ExternalManaged: true}, control(Member), "Config not found for Kubernetes cluster : demo"},
		"removed":           {Cluster{State: Destroyed, Removed: true}, control(Member), "Invalid Kubernetes cluster ID specified"},
	} {
		c.cluster.ID, c.cluster.Name = "c1", "demo"
		err := CheckConfig(ClusterView{Cluster: c.cluster, VMs: c.vms})
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		checkText(t, err, Failed, c.text)
	}
	checkText(t, CheckConfig(ClusterView{}), Failed, "Invalid Kubernetes cluster ID specified")
}

// Which templates a templatefilter asks for, and who may ask for all.
//
// Keeps: clients/templates.
func TestTemplatesShown(t *testing.T) {
	t.Parallel()
	for which, want := range map[string]bool{
		"featured": true, "executable": true, "all": true,
		"self": false, "selfexecutable": false, "sharedexecutable": false, "community": false,
	} {
		if shown, err := TemplatesShown(which, Account{Admin: true}); err != nil || shown != want {
			t.Errorf("%s: %t, %v", which, shown, err)
		}
	}
	_, err := TemplatesShown("all", Account{})
	checkText(t, err, Invalid, "Filter all can be specified by admin only")
	_, err = TemplatesShown("Mine", Account{Admin: true})
	checkText(t, err, Invalid, "Please specify a valid templatefilter: Mine is none")
}
