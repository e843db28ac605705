package turnserver

import (
	"net"
	"net/netip"
	"strconv"
)

// ServeTLS adds the URL of TURN over TLS. name is the name in the certificate, and port the port of the listener that
// passes connections to Serve. Both are replaced by those of Config.Host. ServeTLS reports whether clients can use the
// URL: without a name they cannot check the certificate.
func (s *Server) ServeTLS(name string, port uint16) bool {
	host, own := s.config.hostAndPort()
	if host == "" {
		host = name
	}
	if own == "" {
		own = strconv.Itoa(int(port))
	}
	if host == "" {
		return false
	}
	url := "turns:" + net.JoinHostPort(host, own) + "?transport=tcp"
	s.overTLS.Store(&url)
	return true
}

// URLs returns the URLs (RFC 7065) that clients are told, the fastest first.
func (s *Server) URLs() []string {
	var urls []string
	if s.port != 0 {
		for _, host := range s.hosts() {
			address := net.JoinHostPort(host, strconv.Itoa(int(s.port)))
			urls = append(urls, "turn:"+address+"?transport=udp", "turn:"+address+"?transport=tcp")
		}
	}
	if url := s.overTLS.Load(); url != nil {
		urls = append(urls, *url)
	}
	return urls
}

// hosts returns the hosts in the URLs of UDP and TCP: that of Config.Host, or the first address of the media port of
// each family that clients are told.
func (s *Server) hosts() (hosts []string) {
	if host, _ := s.config.hostAndPort(); host != "" {
		return []string{host}
	}
	var first [2]netip.Addr
	for _, address := range s.media.Addresses() {
		family := 0
		if !address.Addr().Is4() {
			family = 1
		}
		if !first[family].IsValid() {
			first[family] = address.Addr()
			hosts = append(hosts, address.Addr().String())
		}
	}
	return hosts
}

// ServesTLS reports whether clients are told of TURN over TLS.
func (s *Server) ServesTLS() bool { return s.overTLS.Load() != nil }

// LocalURLs returns the URLs of UDP and TCP for this host itself.
func (s *Server) LocalURLs() []string {
	if s.port == 0 {
		return nil
	}
	address := s.listener.Addr().(*net.TCPAddr).AddrPort()
	if address.Addr().IsUnspecified() {
		// A socket of IPv6 on all addresses takes IPv4, too.
		address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), address.Port())
	}
	return []string{"turn:" + address.String() + "?transport=udp", "turn:" + address.String() + "?transport=tcp"}
}
