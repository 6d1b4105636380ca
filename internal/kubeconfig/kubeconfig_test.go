package kubeconfig

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"ckscale/internal/cks"
)

// file is a kubeconfig as client-go reads it.
type file struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Clusters   []struct {
		Name    string
		Cluster struct {
			Server string
			CA     string `yaml:"certificate-authority-data"`
		}
	}
	Contexts []struct {
		Name    string
		Context struct{ Cluster, User string }
	}
	CurrentContext string         `yaml:"current-context"`
	Preferences    map[string]any `yaml:"preferences"`
	Users          []struct {
		Name string
		User struct {
			Certificate string `yaml:"client-certificate-data"`
			Key         string `yaml:"client-key-data"`
		}
	}
}

func read(t *testing.T, text string) (f file) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(f.Clusters) != 1 || len(f.Contexts) != 1 || len(f.Users) != 1 {
		t.Fatalf("not one of each: %s", text)
	}
	return f
}

func decoded(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var made = time.Date(2026, 11, 7, 18, 39, 39, 0, time.UTC)

func credentials(t *testing.T) cks.Credentials {
	t.Helper()
	c, err := NewCredentials(made)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The file names one cluster, one user and the context that joins them; its
// certificate and key belong together, and the authority has signed it for a
// client (clients.md §4: Terraform's data source parses it).
//
// Keeps: clients/config.
func TestFile(t *testing.T) {
	t.Parallel()
	f := read(t, File("https://203.0.113.7:6443/", credentials(t)))
	c, x, u := f.Clusters[0], f.Contexts[0], f.Users[0]
	if f.APIVersion != "v1" || f.Kind != "Config" || f.CurrentContext != x.Name || x.Context.Cluster != c.Name || x.Context.User != u.Name {
		t.Errorf("%+v", f)
	}
	if c.Cluster.Server != "https://203.0.113.7:6443" {
		t.Errorf("server is %q", c.Cluster.Server)
	}
	pair, err := tls.X509KeyPair(decoded(t, u.User.Certificate), decoded(t, u.User.Key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(decoded(t, c.Cluster.CA)) {
		t.Fatal("no authority")
	}
	for _, at := range []time.Time{made.Add(-time.Minute), made.AddDate(9, 11, 0)} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{
			Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}); err != nil {
			t.Errorf("at %s: %v", at, err)
		}
	}
	if s := pair.Leaf.Subject; s.CommonName != "kubernetes-admin" || len(s.Organization) != 1 || s.Organization[0] != "system:masters" {
		t.Errorf("subject is %v", s)
	}
}

// Each cluster has an authority of its own: what one has signed, another does
// not take.
//
// Keeps: clients/config-same.
func TestCredentialsAreTheirClusters(t *testing.T) {
	t.Parallel()
	a, b := credentials(t), credentials(t)
	pair, err := tls.X509KeyPair([]byte(a.Certificate), []byte(a.Key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(b.CA))
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: made, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("another cluster's authority has signed it")
	}
}
