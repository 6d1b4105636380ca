package http

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// canned is a Service that gives what it holds and remembers what it was
// asked.
type canned struct {
	Service
	account  cks.Account
	job      cks.Job
	jobs     []cks.Job
	dry      cks.DryRun
	events   []cks.AuditEvent
	clusters []cks.ClusterView
	vms      []cks.VMView
	offers   []cks.Offering
	versions []cks.KubernetesVersion
	zones    []cks.Zone
	config   cks.ClusterConfig
	images   []cks.Template
	networks []cks.NetworkView
	world    cks.Simulation
	unlinked []cks.Unlinked
	session  cks.Session
	accounts []cks.AccountEntry
	projects []cks.Project
	settings []cks.Setting
	total    int
	err      error
	asked    any // the last request
}

func (c *canned) ask(req any) error {
	c.asked = req
	return c.err
}

func (c *canned) Authenticate(context.Context, string) (cks.Account, string, error) {
	return c.account, adminSecret, nil
}

func (c *canned) Login(_ context.Context, req cks.LoginRequest) (cks.Session, error) {
	return c.session, c.ask(req)
}

func (c *canned) Session(_ context.Context, id, key string) (cks.Account, error) {
	return c.account, c.ask([]string{id, key})
}

func (c *canned) Logout(_ context.Context, id, key string) error { return c.ask([]string{id, key}) }

func (c *canned) Accounts(_ context.Context, _ cks.Account, f cks.AccountFilter) ([]cks.AccountEntry, int, error) {
	return c.accounts, c.total, c.ask(f)
}

func (c *canned) Projects(_ context.Context, _ cks.Account, f cks.ProjectFilter) ([]cks.Project, int, error) {
	return c.projects, c.total, c.ask(f)
}

func (c *canned) Settings(_ context.Context, f cks.SettingFilter) ([]cks.Setting, int, error) {
	return c.settings, c.total, c.ask(f)
}

func (c *canned) UpdateSetting(_ context.Context, _ cks.Account, name, value, accountID string) (cks.Setting, error) {
	if err := c.ask([]string{name, value, accountID}); err != nil || len(c.settings) == 0 {
		return cks.Setting{}, err
	}
	return c.settings[0], nil
}

func (c *canned) Scale(_ context.Context, _ cks.Account, req cks.ScaleRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) DryRun(_ context.Context, _ cks.Account, req cks.ScaleRequest) (cks.DryRun, error) {
	return c.dry, c.ask(req)
}

func (c *canned) CreateCluster(_ context.Context, _ cks.Account, req cks.CreateRequest) (string, cks.Job, error) {
	return clusterID, c.job, c.ask(req)
}

func (c *canned) DeleteCluster(_ context.Context, _ cks.Account, id, jobID string) (cks.Job, error) {
	return c.job, c.ask([]string{id, jobID})
}

func (c *canned) StartCluster(_ context.Context, _ cks.Account, id, jobID string) (cks.Job, error) {
	return c.job, c.ask([]string{id, jobID})
}

func (c *canned) StopCluster(_ context.Context, _ cks.Account, id, jobID string) (cks.Job, error) {
	return c.job, c.ask([]string{id, jobID})
}

func (c *canned) UpgradeCluster(_ context.Context, _ cks.Account, req cks.UpgradeRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) Clusters(_ context.Context, _ cks.Account, f cks.ClusterFilter) ([]cks.ClusterView, int, error) {
	return c.clusters, c.total, c.ask(f)
}

func (c *canned) Job(_ context.Context, _ cks.Account, id string) (cks.Job, error) {
	return c.job, c.ask(id)
}

func (c *canned) AwaitJob(_ context.Context, _ cks.Account, id string, wait time.Duration) (cks.Job, error) {
	return c.job, c.ask(awaited{id, wait})
}

// awaited is what AwaitJob was asked.
type awaited struct {
	id   string
	wait time.Duration
}

func (c *canned) Jobs(_ context.Context, _ cks.Account, f cks.JobFilter) ([]cks.Job, int, error) {
	return c.jobs, c.total, c.ask(f)
}

func (c *canned) CancelJob(_ context.Context, _ cks.Account, id string) error { return c.ask(id) }

func (c *canned) Events(_ context.Context, _ cks.Account, f cks.EventFilter) ([]cks.AuditEvent, int, error) {
	return c.events, c.total, c.ask(f)
}

func (c *canned) VMs(_ context.Context, _ cks.Account, f cks.VMFilter) ([]cks.VMView, int, error) {
	return c.vms, c.total, c.ask(f)
}

func (c *canned) StartVM(_ context.Context, _ cks.Account, req cks.VMRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) StopVM(_ context.Context, _ cks.Account, req cks.VMRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) DeployVM(_ context.Context, _ cks.Account, req cks.DeployRequest) (string, cks.Job, error) {
	return workerVM, c.job, c.ask(req)
}

func (c *canned) DestroyVM(_ context.Context, _ cks.Account, req cks.VMRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) AddNodes(_ context.Context, _ cks.Account, req cks.NodesRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) RemoveNodes(_ context.Context, _ cks.Account, req cks.NodesRequest) (cks.Job, error) {
	return c.job, c.ask(req)
}

func (c *canned) LinkVMs(_ context.Context, _ cks.Account, req cks.LinkRequest) error {
	return c.ask(req)
}

func (c *canned) UnlinkVMs(_ context.Context, _ cks.Account, req cks.LinkRequest) ([]cks.Unlinked, error) {
	return c.unlinked, c.ask(req)
}

func (c *canned) DeleteClusterAndVMs(_ context.Context, _ cks.Account, id, jobID string) (cks.Job, error) {
	return c.job, c.ask([]string{id, jobID, "and VMs"})
}

func (c *canned) Offerings(_ context.Context, f cks.CatalogFilter) ([]cks.Offering, int, error) {
	return c.offers, c.total, c.ask(f)
}

func (c *canned) Versions(_ context.Context, f cks.CatalogFilter) ([]cks.KubernetesVersion, int, error) {
	return c.versions, c.total, c.ask(f)
}

func (c *canned) Zones(_ context.Context, f cks.CatalogFilter) ([]cks.Zone, int, error) {
	return c.zones, c.total, c.ask(f)
}

func (c *canned) ClusterConfig(_ context.Context, _ cks.Account, id string) (cks.ClusterConfig, error) {
	return c.config, c.ask(id)
}

func (c *canned) AddVersion(_ context.Context, _ cks.Account, req cks.VersionRequest) (cks.KubernetesVersion, error) {
	return version, c.ask(req)
}

func (c *canned) UpdateVersion(_ context.Context, _ cks.Account, id, state string) (cks.KubernetesVersion, error) {
	return version, c.ask([]string{id, state})
}

func (c *canned) DeleteVersion(_ context.Context, _ cks.Account, id, jobID string) (cks.Job, error) {
	return c.job, c.ask([]string{id, jobID})
}

func (c *canned) Templates(_ context.Context, _ cks.Account, f cks.TemplateFilter) ([]cks.Template, int, error) {
	return c.images, c.total, c.ask(f)
}

func (c *canned) Networks(_ context.Context, _ cks.Account, f cks.NetworkFilter) ([]cks.NetworkView, int, error) {
	return c.networks, c.total, c.ask(f)
}

func (c *canned) ConfigureSimulator(_ context.Context, _ cks.Account, f cks.Fault) error {
	return c.ask(f)
}

func (c *canned) QuerySimulator(_ context.Context, _ cks.Account, id string) (cks.Simulation, error) {
	return c.world, c.ask(id)
}

// What the samples are made of.
const (
	jobID    = "8f8c699e-beab-4ccb-a71c-233416e9db59"
	workerVM = "aaaaaaaa-0000-4000-8000-000000000011"
	domainID = "2c2e2b3a-7a1d-4a49-8a0d-1f0c3c0f9d21"
	smallID  = "d7892a54-8604-44ab-8892-dcd1357571a0"
	largeID  = "e8903b65-9715-45bc-99a3-ede2468682b1"
)

var (
	// submitted is not in UTC: answers are.
	submitted = time.Date(2026, 11, 7, 19, 39, 39, 5e8, time.FixedZone("", 3600))
	admin     = cks.Account{
		ID: "5d0d9f1c-1cbf-4c4e-8a55-9b8f2d8a7e10", Name: "admin", Admin: true,
		UserID: "9a6c8a4e-4b1e-4d1a-8f38-3a4f5f6f7a12", DomainID: domainID, Domain: "ROOT", DomainPath: "ROOT",
	}
	zone    = cks.Zone{ID: "1f0a6d0b-7b1c-4a4e-8f0e-5d6c7b8a9f01", Name: "demo-zone"}
	small   = cks.Offering{ID: smallID, Seq: 1, Name: "small", DisplayText: "2 vCPU, 2 GB", Cores: 2, SpeedMHz: 1000, MemoryMB: 2048, Created: submitted}
	large   = cks.Offering{ID: largeID, Seq: 2, Name: "large", DisplayText: "8 vCPU, 32 GB", Cores: 8, SpeedMHz: 2000, MemoryMB: 32768, Created: submitted}
	custom  = cks.Offering{ID: "f9014c76-0826-46cd-80b4-fef3579793c2", Seq: 3, Name: "custom", DisplayText: "any size", Created: submitted}
	version = cks.KubernetesVersion{
		ID: "4d2b1c5e-06d7-4dd4-9c12-0e1b6c0c2b9a", Name: "v1.33.1", Version: "1.33.1",
		ISOID: "1c0a7a7e-3f0b-43a5-8bb3-52e4a2e0ed10", ISOName: "v1.33.1-Kubernetes-Binaries-ISO",
		MinCores: 2, MinMemoryMB: 2048, Enabled: true, Created: submitted,
	}
	oldVersion = cks.KubernetesVersion{
		ID: "5e3c2d6f-17e8-4ee5-8d23-1f2c7d1d3cab", Name: "v1.9.0", Version: "1.9.0",
		ISOID: "2d1b8b8f-401c-44b6-9cc4-63f5b3f1fe21", ISOName: "v1.9.0-Kubernetes-Binaries-ISO",
		MinCores: 2, MinMemoryMB: 2048, Created: submitted,
	}
	template = cks.Template{ID: "0b8f6a52-3f1c-4a1e-9b55-4f5e6d7c8b9a", Name: "cks-ubuntu", Ready: true, Created: submitted}
	network  = cks.NetworkView{Account: admin, Zone: zone, Network: cks.Network{
		ID: "6e0a4f9e-1f8b-4a9d-9c6e-2a1b3c4d5e6f", Name: "demo-network", Made: true, InUse: true, Created: submitted}}
)

func sampleVM(id, name string, role cks.Role, o cks.Offering) cks.VM {
	return cks.VM{
		ID: id, ClusterID: clusterID, Name: name, Role: role, OfferingID: o.ID, Cores: o.Cores, MemoryMB: o.MemoryMB,
		State: cks.VMRunning, Phase: cks.Member, NodeVersion: "1.33.1", IPAddress: "10.1.0.11", MACAddress: "02:01:00:00:00:0b",
		Created: submitted, Updated: submitted,
	}
}

// fullCluster has everything that a cluster's API object can show.
func fullCluster() cks.ClusterView {
	etcd := sampleVM("aaaaaaaa-0000-4000-8000-000000000009", "Demo-etcd-1-197eb5e9270", cks.Etcd, small)
	etcd.NodeVersion = ""
	external := sampleVM("aaaaaaaa-0000-4000-8000-000000000012", "outside", cks.Worker, large)
	external.External, external.State = true, cks.VMStopped
	return cks.ClusterView{
		Cluster: cks.Cluster{
			ID: clusterID, Seq: 7, Name: "demo", Description: `<b>"R&D"</b>, Zoë's`, AccountID: admin.ID, ZoneID: zone.ID,
			VersionID: version.ID, TemplateID: template.ID, NetworkID: "6e0a4f9e-1f8b-4a9d-9c6e-2a1b3c4d5e6f",
			NetworkName: "demo-network", DefaultOffering: smallID,
			Offerings:    map[cks.Role]string{cks.Worker: largeID, cks.Control: smallID, cks.Etcd: smallID},
			ControlNodes: 1, EtcdNodes: 1, Size: 2, State: cks.Alert, Autoscaling: cks.Autoscaling{Enabled: true, Min: 2, Max: 5},
			CSI: true, Keypair: "ops", Endpoint: "https://203.0.113.10:6443/", IPAddress: "203.0.113.10",
			IPAddressID: "8d7c6b5a-4f3e-4d2c-9b1a-0f9e8d7c6b5a", Created: submitted,
		},
		VMs: []cks.VM{
			etcd,
			sampleVM("aaaaaaaa-0000-4000-8000-000000000010", "demo-control-197eb5e9280", cks.Control, small),
			sampleVM(workerVM, "demo-node-197eb5e9290", cks.Worker, large),
			external,
		},
		Account: admin, Zone: zone, Version: &version, Template: &template,
		Offerings: map[string]cks.Offering{smallID: small, largeID: large},
	}
}

// bareCluster has as little as a cluster can have.
func bareCluster() cks.ClusterView {
	return cks.ClusterView{
		Cluster: cks.Cluster{
			ID: clusterID, Name: "bare", NetworkID: "6e0a4f9e-1f8b-4a9d-9c6e-2a1b3c4d5e6f", NetworkName: "bare-network",
			IPAddressID: "8d7c6b5a-4f3e-4d2c-9b1a-0f9e8d7c6b5a", // recorded before there is an address
			State:       cks.Created, ExternalManaged: true, Created: submitted,
		},
		Account: admin, Zone: zone,
	}
}

func fullVM() cks.VMView {
	return cks.VMView{
		VM:          sampleVM(workerVM, "demo-node-197eb5e9290", cks.Worker, large),
		ClusterName: "demo", NetworkID: "6e0a4f9e-1f8b-4a9d-9c6e-2a1b3c4d5e6f", NetworkName: "demo-network",
		Account: admin, Zone: zone, Offering: large, Template: &template,
	}
}

// newVM has been chosen and does not exist yet.
func newVM() cks.VMView {
	v := fullVM()
	v.VM.State, v.VM.IPAddress, v.VM.MACAddress, v.Template = cks.VMStopped, "", "", nil
	return v
}

func sampleJob(command string, status cks.JobStatus) cks.Job {
	j := cks.Job{ID: jobID, Seq: 3, Command: command, Account: admin, ClusterID: clusterID, Status: status, Created: submitted}
	if status != cks.JobPending {
		j.Completed = submitted.Add(time.Minute)
	}
	return j
}

func runningJob() cks.Job {
	j := sampleJob("scaleKubernetesCluster", cks.JobPending)
	j.Server = "6c1f3e0a-63a0-4bb0-a58e-0f5a2c9d6b77"
	return j
}

// shownJob is j with all that can be shown of how far it has come.
func shownJob(j cks.Job) cks.Job {
	j.Message = "1 of 2 new nodes are Ready; waiting for demo-node-197eb5e9290"
	j.Steps = []cks.JobStep{
		{Name: "choose-vms", State: cks.StepDone, Started: submitted, Ended: submitted.Add(time.Second)},
		{Name: "wait-new-nodes", State: cks.StepCurrent, Started: submitted.Add(time.Second)},
		{Name: "detach-iso", State: cks.StepPending},
	}
	return j
}

func failedJob() cks.Job {
	j := sampleJob("scaleKubernetesCluster", cks.JobFailed)
	j.ErrorText = "Kubernetes cluster <demo> is in Upgrading state & can not be scaled"
	return j
}

func doneJob(command string, result cks.JobResult) cks.Job {
	j := sampleJob(command, cks.JobSucceeded)
	j.Result = &result
	return j
}

func vmJob() cks.Job {
	v := fullVM()
	j := doneJob("stopVirtualMachine", cks.JobResult{VM: &v})
	j.ClusterID, j.VMID = "", workerVM
	return j
}

func clusterJob() cks.Job {
	v := fullCluster()
	return doneJob("scaleKubernetesCluster", cks.JobResult{Cluster: &v})
}

// fullEvent has everything that an event can show.
func fullEvent() cks.AuditEvent {
	return cks.AuditEvent{
		ID: "0a3c5f52-5a83-4b0e-8a43-5c5b9d0f2e77", Seq: 9, Type: cks.EventClusterScale, Level: cks.LevelError, State: cks.Completed,
		Description: "Error while scaling Kubernetes cluster. Kubernetes cluster <demo> is in Upgrading state & can not be scaled",
		Username:    "root", Account: admin, ParentID: "6d1f8a0c-3b1e-4a55-9d0e-7c2f4b8a9e10",
		ResourceType: "KubernetesCluster", ResourceID: clusterID, ResourceName: "demo", Created: submitted,
	}
}

// bareEvent is about nothing that is there.
func bareEvent() cks.AuditEvent {
	return cks.AuditEvent{
		ID: "6d1f8a0c-3b1e-4a55-9d0e-7c2f4b8a9e10", Type: cks.EventClusterScale, Level: cks.LevelInfo, State: cks.Scheduled,
		Description: "Scaling Kubernetes cluster", Username: "admin", Account: admin, Created: submitted,
	}
}
