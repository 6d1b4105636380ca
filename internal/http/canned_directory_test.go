package http

import (
	"ckscale/internal/cks"
)

// Who is there in the samples.
var (
	adminEntry = cks.AccountEntry{Account: admin, Enabled: true, Created: submitted}
	annEntry   = cks.AccountEntry{
		Account: cks.Account{ID: "6e1e0a2d-2dc0-4d5f-9b66-ac9f3e9b8f21", Name: "ann", UserID: "ab7d9b5f-5c2f-4e2b-9a49-4b5a6a7b8b23",
			DomainID: domainID, Domain: "ROOT", DomainPath: "ROOT"},
		Limits:  cks.Limits{VMs: ptr(20), Cores: ptr(8), MemoryMB: ptr(int64(40960))},
		Used:    cks.Usage{VMs: 5, Cores: 10, MemoryMB: 10240},
		Created: submitted,
	}
	shop = cks.Project{
		ID: "3b8e5a10-5a25-4c0f-9d3c-2f1e7c6b5a40", Name: "shop", DisplayText: "The <web> shop", Owners: []cks.Account{annEntry.Account}, Created: submitted,
		Account: cks.Account{ID: "7f2f1b3e-3ed1-4e6a-8c77-bda04facaa32", Name: "PrjAcct-shop", UserID: "bc8eac6a-6d3a-4f3c-8b5a-5c6b7b8c9c34",
			DomainID: domainID, Domain: "ROOT", DomainPath: "ROOT", ProjectID: "3b8e5a10-5a25-4c0f-9d3c-2f1e7c6b5a40", Project: "shop"},
	}
)

// clusterOfProject is a cluster that no account owns.
func clusterOfProject() cks.ClusterView {
	v := fullCluster()
	v.Account = shop.Account
	return v
}

// sampleSettings are one that cannot be changed, and one that was, for an
// account.
func sampleSettings() []cks.Setting {
	found := make([]cks.Setting, 2)
	for _, s := range cks.Settings(cks.SettingDefaults{cks.SettingMaxSize: "10"}) {
		switch s.Name {
		case "cloud.kubernetes.service.enabled":
			found[0] = s
		case cks.SettingMaxSize:
			s.Value, s.AccountID = "20", annEntry.ID
			found[1] = s
		}
	}
	return found
}
