package main

import (
	"fmt"
	"io"
	"net"
)

// scheme is that of every URL of the server.
func (c config) scheme() string {
	if c.TLSCert != "" {
		return "https"
	}
	return "http"
}

// apiURL is the address of the API for a client on this machine.
func (c config) apiURL(addr string) string {
	return c.scheme() + "://" + reachable(addr) + "/client/api"
}

// reachable is addr with a host that a client on this machine can dial.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		host = "127.0.0.1" // such a socket hears IPv4 as well
	}
	return net.JoinHostPort(host, port)
}

// printBanner tells a person how to use the server. It is the only place that
// shows generated keys, and it is no log. Keys that the environment gave are
// named, not shown.
func printBanner(w io.Writer, url string, a admin) error {
	api, secret, where := a.keys.API, a.keys.Secret, "the keys are kept in the data directory"
	switch a.source {
	case given:
		api, secret, where = "$CKSCALE_ADMIN_API_KEY", "$CKSCALE_ADMIN_SECRET_KEY", "the keys are those of the environment"
	case elsewhere:
		api, secret, where = "APIKEY", "SECRET", "another server of this database made the keys of the account admin; "+
			"set CKSCALE_ADMIN_API_KEY and CKSCALE_ADMIN_SECRET_KEY to replace them"
	case kept:
	}
	_, err := fmt.Fprintf(w, `
ckscale serves %[1]s
%[4]s

  curl -u "%[2]s:%[3]s" '%[1]s?command=listKubernetesClusters'
  cmk -u '%[1]s' -k "%[2]s" -s "%[3]s" list kubernetesclusters

`, url, api, secret, where)
	return err
}
