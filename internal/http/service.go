package http

import (
	"context"
	"time"

	"ckscale/internal/cks"
)

// Service is what the commands do. Errors that carry a cks.Code may be shown
// to the client; any other is our own and is not.
type Service interface {
	// Authenticate returns the account of an API key with its secret key. It
	// fails with cks.Unauthorized when the key is unknown.
	Authenticate(ctx context.Context, apiKey string) (account cks.Account, secret string, err error)

	// Login opens a session for whoever knows a password; it fails with
	// cks.BadLogin. Session returns the account of one, and fails with
	// cks.Unauthorized when there is none with that key. Logout ends one.
	Login(ctx context.Context, req cks.LoginRequest) (cks.Session, error)
	Session(ctx context.Context, id, key string) (cks.Account, error)
	Logout(ctx context.Context, id, key string) error

	Scale(ctx context.Context, caller cks.Account, req cks.ScaleRequest) (cks.Job, error)
	DryRun(ctx context.Context, caller cks.Account, req cks.ScaleRequest) (cks.DryRun, error)
	CreateCluster(ctx context.Context, caller cks.Account, req cks.CreateRequest) (clusterID string, job cks.Job, err error)
	StartCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error)
	StopCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error)
	UpgradeCluster(ctx context.Context, caller cks.Account, req cks.UpgradeRequest) (cks.Job, error)
	DeleteCluster(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error)
	DeleteClusterAndVMs(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error)
	AddNodes(ctx context.Context, caller cks.Account, req cks.NodesRequest) (cks.Job, error)
	RemoveNodes(ctx context.Context, caller cks.Account, req cks.NodesRequest) (cks.Job, error)
	LinkVMs(ctx context.Context, caller cks.Account, req cks.LinkRequest) error
	UnlinkVMs(ctx context.Context, caller cks.Account, req cks.LinkRequest) ([]cks.Unlinked, error)
	Clusters(ctx context.Context, caller cks.Account, f cks.ClusterFilter) (page []cks.ClusterView, total int, err error)

	ClusterConfig(ctx context.Context, caller cks.Account, id string) (cks.ClusterConfig, error)

	Job(ctx context.Context, caller cks.Account, jobID string) (cks.Job, error)
	AwaitJob(ctx context.Context, caller cks.Account, jobID string, wait time.Duration) (cks.Job, error)
	Jobs(ctx context.Context, caller cks.Account, f cks.JobFilter) (page []cks.Job, total int, err error)
	CancelJob(ctx context.Context, caller cks.Account, jobID string) error

	Events(ctx context.Context, caller cks.Account, f cks.EventFilter) (page []cks.AuditEvent, total int, err error)

	VMs(ctx context.Context, caller cks.Account, f cks.VMFilter) (page []cks.VMView, total int, err error)
	StartVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error)
	StopVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error)
	DeployVM(ctx context.Context, caller cks.Account, req cks.DeployRequest) (vmID string, job cks.Job, err error)
	DestroyVM(ctx context.Context, caller cks.Account, req cks.VMRequest) (cks.Job, error)

	Offerings(ctx context.Context, f cks.CatalogFilter) (page []cks.Offering, total int, err error)
	Versions(ctx context.Context, f cks.CatalogFilter) (page []cks.KubernetesVersion, total int, err error)
	Templates(ctx context.Context, caller cks.Account, f cks.TemplateFilter) (page []cks.Template, total int, err error)
	Networks(ctx context.Context, caller cks.Account, f cks.NetworkFilter) (page []cks.NetworkView, total int, err error)
	AddVersion(ctx context.Context, caller cks.Account, req cks.VersionRequest) (cks.KubernetesVersion, error)
	UpdateVersion(ctx context.Context, caller cks.Account, id, state string) (cks.KubernetesVersion, error)
	DeleteVersion(ctx context.Context, caller cks.Account, id, jobID string) (cks.Job, error)
	Zones(ctx context.Context, f cks.CatalogFilter) (page []cks.Zone, total int, err error)

	Accounts(ctx context.Context, caller cks.Account, f cks.AccountFilter) (page []cks.AccountEntry, total int, err error)
	Projects(ctx context.Context, caller cks.Account, f cks.ProjectFilter) (page []cks.Project, total int, err error)

	Settings(ctx context.Context, f cks.SettingFilter) (page []cks.Setting, total int, err error)
	UpdateSetting(ctx context.Context, caller cks.Account, name, value, accountID string) (cks.Setting, error)

	ConfigureSimulator(ctx context.Context, caller cks.Account, f cks.Fault) error
	QuerySimulator(ctx context.Context, caller cks.Account, clusterID string) (cks.Simulation, error)

	// Ready fails while the server cannot serve: the database is lost or its
	// schema is not up to date.
	Ready(ctx context.Context) error
}
