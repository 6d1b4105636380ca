package main

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ckscale/internal/secretbox"
	"ckscale/internal/service"
)

// config is the whole configuration. Each field is one environment variable;
// an empty one counts as not set. The help text is made from the tags: derived
// says what an unset field becomes when that is not a plain value, min is the
// smallest value allowed.
type config struct {
	Addr         string        `env:"CKSCALE_ADDR" default:"127.0.0.1:8080" help:"listen address; port 0 takes a free port"`
	AddrFile     string        `env:"CKSCALE_ADDR_FILE" help:"file that the address is written to once requests are served"`
	TLSCert      string        `env:"CKSCALE_TLS_CERT" help:"file with the server's certificate and those above it (PEM); with it, requests are served by TLS only. A file that changes is read anew"`
	TLSKey       string        `env:"CKSCALE_TLS_KEY" help:"file with the certificate's private key (PEM)"`
	Insecure     bool          `env:"CKSCALE_INSECURE" default:"false" help:"whether to serve without TLS on an address that other machines reach"`
	Proxies      string        `env:"CKSCALE_TRUSTED_PROXIES" help:"proxies whose X-Forwarded-For is believed: addresses and networks, such as 10.0.0.0/8,192.0.2.1"`
	RateLimit    int           `env:"CKSCALE_RATE_LIMIT" default:"0" min:"0" help:"requests that an account may make in a second; 0 = any number (CloudStack's api.throttling.max)"`
	DatabaseURL  string        `env:"DATABASE_URL" derived:"an embedded PostgreSQL in the data directory" help:"PostgreSQL 15 or newer"`
	DirectURL    string        `env:"DATABASE_DIRECT_URL" derived:"DATABASE_URL" help:"the same database without the transaction pooler that DATABASE_URL leads to: for migrations and to hear the other servers"`
	DataDir      string        `env:"CKSCALE_DATA_DIR" derived:"/var/lib/ckscale for root, else $XDG_STATE_HOME/ckscale or ~/.local/state/ckscale" help:"data of the embedded PostgreSQL and generated keys"`
	AdminAPIKey  string        `env:"CKSCALE_ADMIN_API_KEY" derived:"generated once and kept in the data directory" help:"API key of the account admin"`
	AdminSecret  string        `env:"CKSCALE_ADMIN_SECRET_KEY" derived:"generated once and kept in the data directory" help:"secret key of the account admin"`
	AdminPasswd  string        `env:"CKSCALE_ADMIN_PASSWORD" derived:"none: the account admin cannot log in, unless by server account password" help:"password of the account admin, for clients that log in instead of signing"`
	EncryptKey   secretbox.Key `env:"CKSCALE_ENCRYPTION_KEY" derived:"generated once and kept in the data directory" help:"32 bytes in base64 or hex, with which secret keys are encrypted in the database; the same for all of its servers"`
	EndpointURL  string        `env:"CKSCALE_ENDPOINT_URL" derived:"http://ADDRESS/client/api of the listen address, https with TLS" help:"address of the API as clusters reach it (CloudStack's endpoint.url)"`
	EnforcePost  bool          `env:"CKSCALE_ENFORCE_POST" default:"false" help:"whether changes have to be sent by POST, and signatures of version 3 expiring within 15 minutes (CloudStack's enforce.post.requests.and.timestamps)"`
	Demo         bool          `env:"CKSCALE_DEMO" derived:"true with the embedded PostgreSQL, else false" help:"fill an empty database with a zone, offerings, versions and a running cluster"`
	SimSpeed     float64       `env:"CKSCALE_SIM_SPEED" default:"1" min:"0.001" help:"divides every duration of the simulated cloud"`
	ScanInterval time.Duration `env:"CKSCALE_SCAN_INTERVAL" default:"30s" min:"10ms" help:"how often every cluster is looked at"`
	KeepEvents   time.Duration `env:"CKSCALE_EVENT_RETENTION" default:"0" min:"0" help:"how long events are kept, such as 2160h; 0 = for ever (CloudStack's event.purge.delay)"`
	ScaleTimeout time.Duration `env:"CKSCALE_SCALE_TIMEOUT" default:"3600s" min:"1s" help:"limit of one scaling job"`
	StartTimeout time.Duration `env:"CKSCALE_START_TIMEOUT" default:"3600s" min:"1s" help:"limit of one job that creates, starts or stops a cluster (CloudStack's cloud.kubernetes.cluster.start.timeout)"`
	UpgradeLimit time.Duration `env:"CKSCALE_UPGRADE_TIMEOUT" default:"3600s" min:"1s" help:"limit of one job that upgrades a cluster (CloudStack's cloud.kubernetes.cluster.upgrade.timeout)"`
	AddTimeout   time.Duration `env:"CKSCALE_ADD_NODE_TIMEOUT" default:"3600s" min:"1s" help:"limit of one job that adds external nodes"`
	LeaveTimeout time.Duration `env:"CKSCALE_REMOVE_NODE_TIMEOUT" default:"900s" min:"1s" help:"limit of one job that removes external nodes"`
	DrainTimeout time.Duration `env:"CKSCALE_DRAIN_TIMEOUT" default:"60s" min:"10ms" help:"limit of one attempt to drain a node"`
	RetryWait    time.Duration `env:"CKSCALE_RETRY_WAIT" default:"30s" min:"10ms" help:"wait before a failed step of a job is tried again; three tries in all"`
	MaxSize      int           `env:"CKSCALE_MAX_SIZE" default:"10" min:"1" help:"most nodes of a cluster, control nodes included"`
	Lease        time.Duration `env:"CKSCALE_LEASE" default:"10s" min:"1s" help:"how long a job stays with a server that has gone silent"`
	Grace        time.Duration `env:"CKSCALE_GRACE" default:"20s" min:"10ms" help:"how long steps of jobs may go on when the server is told to stop"`
	Workers      int           `env:"CKSCALE_WORKERS" default:"64" min:"1" help:"jobs carried out at once"`
	LogLevel     slog.Level    `env:"CKSCALE_LOG_LEVEL" default:"INFO" help:"DEBUG, INFO, WARN or ERROR"`
}

// embedded reports whether we run the database ourselves.
func (c config) embedded() bool { return c.DatabaseURL == "" }

// loadConfig reads the configuration. Its error lists every problem.
func loadConfig(getenv func(string) string) (config, error) {
	var c config
	var problems []error
	for f, v := range settings(&c) {
		text := cmp.Or(getenv(f.Tag.Get("env")), f.Tag.Get("default"))
		if text == "" {
			continue
		}
		if err := parse(v, text, f.Tag.Get("min")); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", f.Tag.Get("env"), err))
		}
	}
	if getenv("CKSCALE_DEMO") == "" {
		c.Demo = c.embedded()
	}
	if c.DataDir == "" {
		c.DataDir = defaultDataDir(os.Geteuid(), getenv)
	}
	if err := errors.Join(append(problems, c.check()...)...); err != nil {
		return config{}, fmt.Errorf("the configuration has problems (server -help lists all settings):\n%w", err)
	}
	return c, nil
}

// settings yields the fields of c with their values.
func settings(c *config) func(func(reflect.StructField, reflect.Value) bool) {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		v := reflect.ValueOf(c).Elem()
		for i := range v.NumField() {
			if !yield(v.Type().Field(i), v.Field(i)) {
				return
			}
		}
	}
}

func parse(v reflect.Value, text, least string) error {
	switch p := v.Addr().Interface().(type) {
	case *string:
		*p = text
		return nil
	case *bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*p = b
		return nil
	case *int:
		return atLeast(p, text, least, "whole number", strconv.Atoi)
	case *float64:
		return atLeast(p, text, least, "number", parseFinite)
	case *time.Duration:
		return atLeast(p, text, least, "duration such as 90s or 5m", time.ParseDuration)
	case encoding.TextUnmarshaler:
		return p.UnmarshalText([]byte(text))
	default:
		return fmt.Errorf("setting of a type that nobody reads: %T", p)
	}
}

func parseFinite(text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err == nil && (math.IsInf(f, 0) || math.IsNaN(f)) {
		err = strconv.ErrRange
	}
	return f, err
}

func atLeast[T cmp.Ordered](p *T, text, least, what string, read func(string) (T, error)) error {
	got, err := read(text)
	if err != nil {
		return fmt.Errorf("%q is no %s", text, what)
	}
	limit, err := read(least)
	if err != nil {
		return fmt.Errorf("smallest value %q: %w", least, err)
	}
	if got < limit {
		return fmt.Errorf("%s is less than %s", text, least)
	}
	*p = got
	return nil
}

// check finds what is wrong although it could be read.
func (c config) check() []error {
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if _, p, err := net.SplitHostPort(c.Addr); err != nil {
		problem("CKSCALE_ADDR: %q is no address such as 127.0.0.1:8080", c.Addr)
	} else if _, err := strconv.ParseUint(p, 10, 16); err != nil {
		problem("CKSCALE_ADDR: %q is no port from 0 to 65535", p)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		problem("CKSCALE_TLS_CERT, CKSCALE_TLS_KEY: only one of the two is set")
	}
	if _, err := parseNetworks(c.Proxies); err != nil {
		problem("CKSCALE_TRUSTED_PROXIES: %w", err)
	}
	if !c.embedded() {
		if _, err := pgxpool.ParseConfig(c.DatabaseURL); err != nil { // its text leaves the password out
			problem("DATABASE_URL: %w", err)
		}
	}
	if c.DirectURL != "" {
		if _, err := pgxpool.ParseConfig(c.DirectURL); err != nil {
			problem("DATABASE_DIRECT_URL: %w", err)
		}
		if c.embedded() {
			problem("DATABASE_DIRECT_URL: it says nothing without DATABASE_URL")
		}
	}
	if c.DataDir == "" {
		problem("CKSCALE_DATA_DIR: there is no home directory to derive it from; set it")
	}
	if (c.AdminAPIKey == "") != (c.AdminSecret == "") {
		problem("CKSCALE_ADMIN_API_KEY, CKSCALE_ADMIN_SECRET_KEY: only one of the two is set")
	}
	if c.AdminPasswd != "" {
		if err := service.CheckPassword(c.AdminPasswd); err != nil {
			problem("CKSCALE_ADMIN_PASSWORD: %w", err)
		}
	}
	if strings.ContainsFunc(c.AdminAPIKey, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }) {
		problem("CKSCALE_ADMIN_API_KEY: only visible ASCII characters without a colon can be sent")
	}
	if c.EndpointURL != "" {
		if u, err := url.Parse(c.EndpointURL); err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
			problem("CKSCALE_ENDPOINT_URL: %q is no http or https URL", c.EndpointURL)
		}
	}
	return problems
}

// parseNetworks reads addresses and networks, separated by commas.
func parseNetworks(list string) ([]netip.Prefix, error) {
	var networks []netip.Prefix
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		network, err := netip.ParsePrefix(item)
		if addr, e := netip.ParseAddr(item); e == nil {
			network, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a network such as 10.0.0.0/8", item)
		}
		networks = append(networks, network)
	}
	return networks, nil
}

// defaultDataDir is "" if there is no home directory.
func defaultDataDir(uid int, getenv func(string) string) string {
	if uid == 0 {
		return "/var/lib/ckscale"
	}
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "ckscale")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "ckscale")
	}
	return ""
}

// unknownSettings returns the variables that look like ours and are not. They
// are no error: Kubernetes sets such variables after the names of services.
func unknownSettings(environ []string) []string {
	known := make(map[string]bool)
	for f := range settings(new(config)) {
		known[f.Tag.Get("env")] = true
	}
	var unknown []string
	for _, e := range environ {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "CKSCALE_") && !known[name] {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// printSettings writes every setting with its default.
func printSettings(w io.Writer) error {
	for f := range settings(new(config)) {
		value := cmp.Or(f.Tag.Get("default"), f.Tag.Get("derived"), "none")
		if _, err := fmt.Fprintf(w, "  %s\n        %s\n        default: %s\n", f.Tag.Get("env"), f.Tag.Get("help"), value); err != nil {
			return err
		}
	}
	return nil
}
