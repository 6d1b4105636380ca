package http

import (
	"ckscale/internal/cks"
	"ckscale/internal/http/api"
)

func encodeOffering(o cks.Offering) api.ServiceOffering {
	return api.ServiceOffering{
		Id:               o.ID,
		Name:             o.Name,
		Displaytext:      o.DisplayText,
		Cpunumber:        o.Cores,
		Cpuspeed:         o.SpeedMHz,
		Memory:           o.MemoryMB,
		Created:          date(o.Created),
		Storagetype:      "shared",
		Provisioningtype: "thin",
		Iscustomized:     o.Custom(),
		State:            "Active",
	}
}

func encodeVersion(v cks.KubernetesVersion) api.KubernetesVersion {
	state := "Disabled"
	if v.Enabled {
		state = "Enabled"
	}
	return api.KubernetesVersion{
		Id:                  v.ID,
		Name:                v.Name,
		Semanticversion:     v.Version,
		Isoid:               v.ISOID,
		Isoname:             v.ISOName,
		Isostate:            "Ready",
		Supportsha:          v.SupportsHA(),
		Supportsautoscaling: v.SupportsAutoscaling(),
		State:               state,
		Mincpunumber:        v.MinCores,
		Minmemory:           v.MinMemoryMB,
		Created:             date(v.Created),
	}
}

func encodeZone(z cks.Zone) api.Zone {
	return api.Zone{
		Id:              z.ID,
		Name:            z.Name,
		Allocationstate: "Enabled",
		Networktype:     "Advanced",
		Type:            "Core",
	}
}
