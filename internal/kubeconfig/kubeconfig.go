// Package kubeconfig makes what an administrator needs to reach a cluster's
// Kubernetes API: credentials of the cluster's own authority, and the file that
// kubectl reads them from.
package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	"ckscale/internal/cks"
)

// How long the certificates are good: the authority as kubeadm makes it, and
// the administrator as long, for there is no command that renews one. They are
// good a little before they are made, for clocks that are behind.
const (
	life = 10 * 365 * 24 * time.Hour
	slip = time.Hour
)

// The names that kubeadm gives.
const (
	cluster = "kubernetes"
	user    = "kubernetes-admin"
	context = user + "@" + cluster
)

// NewCredentials makes an authority and an administrator whom it has signed.
// Nobody keeps the authority's key, so it signs nobody else.
func NewCredentials(now time.Time) (cks.Credentials, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cks.Credentials{}, fmt.Errorf("make the authority's key: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cks.Credentials{}, fmt.Errorf("make the administrator's key: %w", err)
	}
	authority := &x509.Certificate{
		Subject: pkix.Name{CommonName: cluster}, NotBefore: now.Add(-slip), NotAfter: now.Add(life),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	admin := &x509.Certificate{
		Subject:   pkix.Name{CommonName: user, Organization: []string{"system:masters"}},
		NotBefore: now.Add(-slip), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	if err != nil {
		return cks.Credentials{}, fmt.Errorf("make the authority's certificate: %w", err)
	}
	certificate, err := x509.CreateCertificate(rand.Reader, admin, authority, &key.PublicKey, caKey)
	if err != nil {
		return cks.Credentials{}, fmt.Errorf("make the administrator's certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return cks.Credentials{}, fmt.Errorf("encode the administrator's key: %w", err)
	}
	return cks.Credentials{
		CA: toPEM("CERTIFICATE", ca), Certificate: toPEM("CERTIFICATE", certificate), Key: toPEM("PRIVATE KEY", secret),
	}, nil
}

func toPEM(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// File is the kubeconfig with which the administrator reaches the API at
// endpoint.
func File(endpoint string, c cks.Credentials) string {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: %[1]s
  cluster:
    certificate-authority-data: %[4]s
    server: %[5]q
contexts:
- name: %[3]s
  context:
    cluster: %[1]s
    user: %[2]s
current-context: %[3]s
preferences: {}
users:
- name: %[2]s
  user:
    client-certificate-data: %[6]s
    client-key-data: %[7]s
`, cluster, user, context, b64(c.CA), strings.TrimSuffix(endpoint, "/"), b64(c.Certificate), b64(c.Key))
}
