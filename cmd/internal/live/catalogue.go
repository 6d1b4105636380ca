package live

import (
	"context"
	"errors"
)

// Item is an entry of a catalogue.
type Item struct {
	ID, Name     string
	IsCustomized bool
	CPUNumber    int
	Memory       int
}

// Catalogue is what clusters can be made of.
type Catalogue struct {
	Zone, Version Item
	Offerings     []Item // those that a node can have
}

// Catalogue reads the catalogue. It fails unless there are a zone, Kubernetes
// 1.33.1 and two offerings for nodes.
func (c *Client) Catalogue(ctx context.Context) (all Catalogue, err error) {
	zones, err := Call[struct {
		Items []Item `json:"zone"`
	}](ctx, c, "listZones")
	if err != nil {
		return all, err
	}
	versions, err := Call[struct {
		Items []Item `json:"kubernetessupportedversion"`
	}](ctx, c, "listKubernetesSupportedVersions", "keyword=1.33.1")
	if err != nil {
		return all, err
	}
	if len(zones.Items) == 0 || len(versions.Items) == 0 {
		return all, errors.New("the server has no zone, or no Kubernetes version 1.33.1; CKSCALE_DEMO=true fills an empty database")
	}
	all.Zone, all.Version = zones.Items[0], versions.Items[0]
	all.Offerings, err = c.offerings(ctx)
	return all, err
}

func (c *Client) offerings(ctx context.Context) ([]Item, error) {
	list, err := Call[struct {
		Items []Item `json:"serviceoffering"`
	}](ctx, c, "listServiceOfferings")
	var fit []Item
	for _, o := range list.Items {
		if !o.IsCustomized && o.CPUNumber >= 2 && o.Memory >= 2048 {
			fit = append(fit, o)
		}
	}
	if err == nil && len(fit) < 2 {
		err = errors.New("two service offerings with 2 cores and 2048 MB or more are needed")
	}
	return fit, err
}

// Create asks for a cluster of that catalogue, and returns its id and its
// job's.
func (c *Client) Create(ctx context.Context, from Catalogue, name string, params ...string) (id, job string, err error) {
	made, err := Call[struct{ ID, JobID string }](ctx, c, "createKubernetesCluster", append([]string{"name=" + name, "description=" + name,
		"zoneid=" + from.Zone.ID, "kubernetesversionid=" + from.Version.ID, "serviceofferingid=" + from.Offerings[0].ID}, params...)...)
	return made.ID, made.JobID, err
}
