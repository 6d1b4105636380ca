package main

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// environment makes a getenv of pairs.
func environment(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

// The table of design.md §7.
//
// Keeps: §1.1/endpoint.
// Keeps: §6/interval, §5.4/1-timeout.
// Keeps: seed/same-deadline.
func TestDefaultsWork(t *testing.T) {
	t.Parallel()
	got, err := loadConfig(environment(map[string]string{"HOME": "/home/me", "XDG_STATE_HOME": ""}))
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		Addr: "127.0.0.1:8080", DataDir: got.DataDir, Demo: true, SimSpeed: 1,
		ScanInterval: 30 * time.Second, ScaleTimeout: time.Hour, StartTimeout: time.Hour, UpgradeLimit: time.Hour,
		AddTimeout: time.Hour, LeaveTimeout: 15 * time.Minute, DrainTimeout: time.Minute,
		RetryWait: 30 * time.Second, MaxSize: 10, Lease: 10 * time.Second, Grace: 20 * time.Second, Workers: 64, LogLevel: slog.LevelInfo,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEverySettingIsRead(t *testing.T) {
	t.Parallel()
	got, err := loadConfig(environment(map[string]string{
		"CKSCALE_ADDR": ":0", "CKSCALE_ADDR_FILE": "/run/addr", "CKSCALE_TLS_CERT": "/tls.crt", "CKSCALE_TLS_KEY": "/tls.key", "CKSCALE_INSECURE": "true",
		"CKSCALE_TRUSTED_PROXIES": "10.0.0.0/8", "CKSCALE_RATE_LIMIT": "25", "DATABASE_URL": "postgres://u:p@db/x?sslmode=disable",
		"DATABASE_DIRECT_URL": "postgres://u:p@direct/x",
		"CKSCALE_DATA_DIR":    "/data", "CKSCALE_ADMIN_API_KEY": "key", "CKSCALE_ADMIN_SECRET_KEY": "secret",
		"CKSCALE_ENDPOINT_URL": "https://cloud.example/client/api", "CKSCALE_ENFORCE_POST": "true", "CKSCALE_DEMO": "true", "CKSCALE_SIM_SPEED": "0.5",
		"CKSCALE_SCAN_INTERVAL": "1s", "CKSCALE_EVENT_RETENTION": "2160h", "CKSCALE_SCALE_TIMEOUT": "2m", "CKSCALE_START_TIMEOUT": "3m", "CKSCALE_UPGRADE_TIMEOUT": "4m", "CKSCALE_DRAIN_TIMEOUT": "1500ms",
		"CKSCALE_ADD_NODE_TIMEOUT": "3m", "CKSCALE_REMOVE_NODE_TIMEOUT": "4m",
		"CKSCALE_RETRY_WAIT": "250ms",
		"CKSCALE_MAX_SIZE":   "30", "CKSCALE_LEASE": "3s", "CKSCALE_GRACE": "2s", "CKSCALE_WORKERS": "4", "CKSCALE_LOG_LEVEL": "debug",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		Addr: ":0", AddrFile: "/run/addr", TLSCert: "/tls.crt", TLSKey: "/tls.key", Insecure: true,
		Proxies: "10.0.0.0/8", RateLimit: 25, DatabaseURL: "postgres://u:p@db/x?sslmode=disable", DirectURL: "postgres://u:p@direct/x", DataDir: "/data",
		AdminAPIKey: "key", AdminSecret: "secret", EndpointURL: "https://cloud.example/client/api", EnforcePost: true, Demo: true, SimSpeed: 0.5,
		ScanInterval: time.Second, KeepEvents: 2160 * time.Hour, ScaleTimeout: 2 * time.Minute, StartTimeout: 3 * time.Minute, UpgradeLimit: 4 * time.Minute, DrainTimeout: 1500 * time.Millisecond,
		AddTimeout: 3 * time.Minute, LeaveTimeout: 4 * time.Minute,
		RetryWait: 250 * time.Millisecond, MaxSize: 30, Lease: 3 * time.Second, Grace: 2 * time.Second, Workers: 4, LogLevel: slog.LevelDebug,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDemoFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database, demo string
		want           bool
	}{
		{"", "", true}, {"", "false", false},
		{"postgres://db/x", "", false}, {"postgres://db/x", "1", true},
	} {
		got, err := loadConfig(environment(map[string]string{"DATABASE_URL": c.database, "CKSCALE_DEMO": c.demo, "HOME": "/home/me"}))
		if err != nil || got.Demo != c.want {
			t.Errorf("database %q, demo %q: %v, %v", c.database, c.demo, got.Demo, err)
		}
	}
}

func TestDataDirFollowsTheUser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uid             int
		xdg, home, want string
	}{
		{0, "/x", "/root", "/var/lib/ckscale"},
		{1000, "/x", "/home/me", "/x/ckscale"},
		{1000, "relative", "/home/me", "/home/me/.local/state/ckscale"},
		{1000, "", "", ""},
	} {
		if got := defaultDataDir(c.uid, environment(map[string]string{"XDG_STATE_HOME": c.xdg, "HOME": c.home})); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestEachWrongValueIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, value, want string }{
		{"CKSCALE_ADDR", "8080", "is no address"},
		{"CKSCALE_ADDR", "localhost:70000", "is no port"},
		{"DATABASE_URL", "postgres://u:topsecret@db:port/x", "DATABASE_URL"},
		{"CKSCALE_ADMIN_API_KEY", "key", "only one of the two"},
		{"CKSCALE_ADMIN_SECRET_KEY", "secret", "only one of the two"},
		{"CKSCALE_ADMIN_API_KEY", "a:b", "without a colon"},
		{"CKSCALE_TLS_CERT", "/tls.crt", "only one of the two"},
		{"CKSCALE_TLS_KEY", "/tls.key", "only one of the two"},
		{"CKSCALE_INSECURE", "yes please", "neither true nor false"},
		{"CKSCALE_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example", `"proxy.example" is neither an address nor a network`},
		{"CKSCALE_RATE_LIMIT", "-1", "is less than 0"},
		{"CKSCALE_ENDPOINT_URL", "cloud.example", "is no http"},
		{"CKSCALE_DEMO", "perhaps", "neither true nor false"},
		{"CKSCALE_ENFORCE_POST", "1s", "neither true nor false"},
		{"CKSCALE_SIM_SPEED", "0", "is less than"},
		{"CKSCALE_SIM_SPEED", "Inf", "is no number"},
		{"CKSCALE_SIM_SPEED", "NaN", "is no number"},
		{"CKSCALE_SCAN_INTERVAL", "30", "is no duration"},
		{"CKSCALE_SCALE_TIMEOUT", "0s", "is less than 1s"},
		{"CKSCALE_DRAIN_TIMEOUT", "-1s", "is less than"},
		{"CKSCALE_RETRY_WAIT", "0s", "is less than"},
		{"CKSCALE_MAX_SIZE", "0", "is less than 1"},
		{"CKSCALE_LEASE", "10ms", "is less than 1s"},
		{"CKSCALE_GRACE", "0s", "is less than 10ms"},
		{"DATABASE_DIRECT_URL", "postgres://u:topsecret@db:port/x", "DATABASE_DIRECT_URL"},
		{"DATABASE_DIRECT_URL", "postgres://db/x", "says nothing without DATABASE_URL"},
		{"CKSCALE_WORKERS", "many", "is no whole number"},
		{"CKSCALE_LOG_LEVEL", "loud", "CKSCALE_LOG_LEVEL"},
	} {
		_, err := loadConfig(environment(map[string]string{"HOME": "/home/me", c.name: c.value}))
		if err == nil || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
		if err != nil && strings.Contains(err.Error(), "topsecret") {
			t.Errorf("the error shows a password: %v", err)
		}
	}
}

func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	wrong := map[string]string{
		"CKSCALE_ADDR": "x", "CKSCALE_DEMO": "x", "CKSCALE_SIM_SPEED": "x", "CKSCALE_LEASE": "x", "CKSCALE_LOG_LEVEL": "x",
		"CKSCALE_ENDPOINT_URL": "x", "CKSCALE_ADMIN_API_KEY": "x", "CKSCALE_WORKERS": "-1",
	}
	_, err := loadConfig(environment(wrong))
	if err == nil {
		t.Fatal("no error")
	}
	for name := range wrong {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v\ndoes not name %s", err, name)
		}
	}
}

func TestHelpListsEverySettingWithItsDefault(t *testing.T) {
	t.Parallel()
	var help strings.Builder
	if err := printSettings(&help); err != nil {
		t.Fatal(err)
	}
	for f := range settings(new(config)) {
		if f.Tag.Get("env") == "" || f.Tag.Get("help") == "" {
			t.Errorf("%s has no name or no help text", f.Name)
		}
		if !strings.Contains(help.String(), "  "+f.Tag.Get("env")+"\n") || !strings.Contains(help.String(), f.Tag.Get("default")) {
			t.Errorf("the help text leaves out %s", f.Tag.Get("env"))
		}
	}
}

func TestMistypedSettingsAreNoticed(t *testing.T) {
	t.Parallel()
	got := unknownSettings([]string{"CKSCALE_LEASE=1s", "CKSCALE_LAESE=1s", "PATH=/bin", "CKSCALE_ADRR=x"})
	if want := []string{"CKSCALE_ADRR", "CKSCALE_LAESE"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
