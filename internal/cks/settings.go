package cks

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The names of the settings that something is decided by.
const (
	SettingMaxSize      = "cloud.kubernetes.cluster.max.size"
	SettingDrainTimeout = "cloud.kubernetes.cluster.node.drain.timeout"
	SettingEndpointURL  = "endpoint.url"
	SettingEnforcePost  = "enforce.post.requests.and.timestamps"

	SettingStartTimeout   = "cloud.kubernetes.cluster.start.timeout"
	SettingScaleTimeout   = "cloud.kubernetes.cluster.scale.timeout"
	SettingUpgradeTimeout = "cloud.kubernetes.cluster.upgrade.timeout"
	SettingAddTimeout     = "cloud.kubernetes.cluster.add.node.timeout"
	SettingRemoveTimeout  = "cloud.kubernetes.cluster.remove.node.timeout"
)

// TimeoutSettings say by which setting the deadline of a command's job is set
// when it begins. A command that is not here has the server's own.
var TimeoutSettings = map[string]string{
	"scaleKubernetesCluster":                     SettingScaleTimeout,
	"createKubernetesCluster":                    SettingStartTimeout,
	"stopKubernetesCluster":                      SettingStartTimeout,
	"startKubernetesCluster":                     SettingStartTimeout,
	"upgradeKubernetesCluster":                   SettingUpgradeTimeout,
	"addNodesToKubernetesCluster":                SettingAddTimeout,
	"addVirtualMachinesToKubernetesCluster":      SettingAddTimeout,
	"removeNodesFromKubernetesCluster":           SettingRemoveTimeout,
	"removeVirtualMachinesFromKubernetesCluster": SettingRemoveTimeout,
}

// SettingType is what kind of value a setting has.
type SettingType string

// The types, under CloudStack's names.
const (
	SettingNumber  SettingType = "Number"
	SettingBoolean SettingType = "Boolean"
	SettingString  SettingType = "String"
)

// Setting is one entry of listConfigurations.
type Setting struct {
	Name        string
	Category    string
	Description string
	Type        SettingType
	Default     string // the environment's
	Value       string // that counts
	AccountID   string // whose value it is; "" = everybody's
	OfAccount   bool   // an account can have its own
	Dynamic     bool   // updateConfiguration can change it
	least       int64  // of a number
	check       func(string) bool
	form        string // of a value that check accepts
}

// Scope is where a value can be set.
func (s Setting) Scope() string {
	if s.OfAccount {
		return "account"
	}
	return "global"
}

// The largest number of a setting: as seconds they are more than a lifetime.
const mostOfSetting = 1<<31 - 1

// unused ends the description of what is there only for those who ask.
const unused = "; without effect here, as it is not modelled"

// timeoutSetting is a limit in seconds.
func timeoutSetting(name, what string) Setting {
	return Setting{Name: name, Description: "seconds that " + what + " may take", Type: SettingNumber, Dynamic: true, least: 1}
}

// fixed is a setting that cannot be changed.
func fixed(name, value string, kind SettingType, description string) Setting {
	return Setting{Name: name, Default: value, Type: kind, Description: description}
}

// settingTable is every setting (spec/cks.md §9), by name.
var settingTable = []Setting{
	fixed("api.sessionkey.check.locations", "CookieAndParameter", SettingString, "where the key of a session has to be shown"),
	timeoutSetting(SettingAddTimeout, "adding nodes to a Kubernetes cluster"),
	fixed("cloud.kubernetes.cluster.experimental.features.enabled", "false", SettingBoolean, "whether experimental features of the Kubernetes service are on"),
	{Name: SettingMaxSize, Type: SettingNumber, OfAccount: true, Dynamic: true, least: 1,
		Description: "most nodes of a cluster of its owner's, control nodes included"},
	fixed("cloud.kubernetes.cluster.network.offering", "DefaultNetworkOfferingforKubernetesService", SettingString,
		"network offering of the networks that are made for clusters"+unused),
	timeoutSetting(SettingDrainTimeout, "one attempt to drain a node"),
	timeoutSetting(SettingRemoveTimeout, "removing nodes from a Kubernetes cluster"),
	timeoutSetting(SettingScaleTimeout, "scaling a Kubernetes cluster"),
	timeoutSetting(SettingStartTimeout, "starting a Kubernetes cluster"),
	fixed("cloud.kubernetes.cluster.upgrade.retries", "3", SettingNumber, "how often the upgrade of a node is tried"),
	timeoutSetting(SettingUpgradeTimeout, "upgrading a Kubernetes cluster"),
	fixed("cloud.kubernetes.control.node.install.attempt.wait.duration", "15", SettingNumber, "seconds between attempts to install a control node"+unused),
	fixed("cloud.kubernetes.control.node.install.reattempt.count", "100", SettingNumber, "attempts to install a control node"+unused),
	fixed("cloud.kubernetes.etcd.node.start.port", "50000", SettingNumber, "first port by which etcd nodes are reached"+unused),
	fixed("cloud.kubernetes.service.enabled", "true", SettingBoolean, "whether the Kubernetes service is on, which is all that this server does"),
	fixed("cloud.kubernetes.worker.node.install.attempt.wait.duration", "30", SettingNumber, "seconds between attempts to install a worker node"+unused),
	fixed("cloud.kubernetes.worker.node.install.reattempt.count", "40", SettingNumber, "attempts to install a worker node"+unused),
	fixed("default.page.size", strconv.Itoa(DefaultPageSize), SettingNumber, "rows of a page of a list, and the most that there can be"),
	{Name: SettingEndpointURL, Type: SettingString, Dynamic: true, check: isURL, form: "an http or https URL without a password",
		Description: "address of the API as clusters reach it; autoscaling needs one that is not localhost"},
	fixed(SettingEnforcePost, "false", SettingBoolean, "whether changes have to be sent by POST, and signatures have to expire within 15 minutes"),
	fixed("job.cancel.threshold.minutes", "60", SettingNumber, "minutes after which a job that blocks others is cancelled"+unused),
	fixed("job.expire.minutes", "0", SettingNumber, "minutes for which jobs are kept; 0 is for ever"),
	fixed("json.content.type", "application/json; charset=UTF-8", SettingString, "content type of answers"),
}

// SettingDefaults are the settings that the environment decides. Durations are
// in seconds.
type SettingDefaults map[string]string

// Settings returns every setting by name, with its default for its value.
func Settings(env SettingDefaults) []Setting {
	all := slices.Clone(settingTable)
	for i := range all {
		s := &all[i]
		if v, given := env[s.Name]; given {
			s.Default = v
		}
		s.Category, s.Value = "Advanced", s.Default
	}
	return all
}

// CheckSetting refuses a value that the setting cannot have, with cks.Invalid,
// and returns it in its plain form. accountID is whose the value is to be.
func CheckSetting(s Setting, value, accountID string) (string, error) {
	value = strings.TrimSpace(value)
	switch {
	case !s.Dynamic:
		return "", Errorf(Invalid, "The configuration %s can not be changed by updateConfiguration: it is decided by the server and its environment", s.Name)
	case accountID != "" && !s.OfAccount:
		return "", Errorf(Invalid, "Invalid scope id provided for the parameter %s: it can not be set for an account", s.Name)
	case s.Type == SettingNumber:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < s.least || n > mostOfSetting {
			return "", Errorf(Invalid, "Please enter a whole number from %d to %d for the configuration %s, not %q", s.least, mostOfSetting, s.Name, value)
		}
		return strconv.FormatInt(n, 10), nil
	case !s.check(value):
		return "", Errorf(Invalid, "Please enter %s for the configuration %s, not %q", s.form, s.Name, value)
	}
	return value, nil
}

// isURL refuses a password in the URL, since an event tells of the value.
func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Host != "" && u.User == nil && slices.Contains([]string{"http", "https"}, u.Scheme)
}

// SettingFilter is listConfigurations.
type SettingFilter struct {
	Name      string // exact, in any case
	Category  string // likewise
	Keyword   string // part of the name or of the description, in any case
	AccountID string // only what an account can have for itself, with this one's values
	Page      Page
}

// Matches reports whether the setting is among those asked for.
func (f SettingFilter) Matches(s Setting) bool {
	return (f.Name == "" || strings.EqualFold(f.Name, s.Name)) &&
		(f.Category == "" || strings.EqualFold(f.Category, s.Category)) &&
		(f.AccountID == "" || s.OfAccount) &&
		strings.Contains(strings.ToLower(s.Name+" "+s.Description), strings.ToLower(f.Keyword))
}
