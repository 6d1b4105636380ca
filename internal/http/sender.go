package http

import (
	nethttp "net/http"
	"net/netip"
	"slices"
	"strings"
)

// sender is the address that a request comes from, and of IPv6 the network of
// 64 bits that it is in, since whoever has one address there has them all. What
// X-Forwarded-For says is believed of proxies of ours only. The zero Prefix
// stands for what is no address.
func (s *server) sender(r *nethttp.Request) netip.Prefix {
	addr := parseSender(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) { // each proxy appends whom it heard
		before := parseSender(strings.TrimSpace(hop))
		if !before.IsValid() || !s.isProxy(addr) {
			break
		}
		addr = before
	}
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

// address is how a sender is told of: an address, or of IPv6 a network.
func address(from netip.Prefix) string {
	if from.IsSingleIP() {
		return from.Addr().String()
	}
	return from.String()
}

func (s *server) isProxy(addr netip.Addr) bool {
	return slices.ContainsFunc(s.proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// parseSender reads an address with or without a port.
func parseSender(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone("")
}
