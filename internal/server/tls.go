package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/volsfu/volsfu/internal/acme"
)

// configureTLS sets the TLS configuration of the listener from the certificate of the configuration, or from a
// certificate authority. Without either, the listener has no TLS.
func (s *Server) configureTLS() error {
	c := s.config.Server
	switch {
	case c.TLSCert != "":
		files := &certificateFiles{certificate: c.TLSCert, key: c.TLSKey}
		if err := s.files.add("TLS certificate", []string{c.TLSCert, c.TLSKey}, files.load); err != nil {
			return err
		}
		s.tls = tlsConfig(files.get)
	case len(c.ACMEDomains) > 0:
		return s.startACME(acme.Config{Domains: c.ACMEDomains, Cache: c.ACMECache, Directory: c.ACMEDirectory})
	}
	return nil
}

// startACME starts to obtain certificates for the listener.
func (s *Server) startACME(c acme.Config) error {
	issuer, err := acme.Start(c, s.log)
	if err != nil {
		return err
	}
	s.issuer = issuer
	s.tls = tlsConfig(issuer.GetCertificate, acme.Protocol)
	return nil
}

// tlsConfig returns the TLS configuration for HTTP and further protocols.
func tlsConfig(get func(*tls.ClientHelloInfo) (*tls.Certificate, error), protocols ...string) *tls.Config {
	return &tls.Config{
		GetCertificate: get, MinVersion: tls.VersionTLS12,
		// Websockets begin as HTTP/1.1 (RFC 6455); over HTTP/2 they would not be available.
		NextProtos: append([]string{"http/1.1"}, protocols...),
	}
}

// certificateName returns the host name or the address for which the server has a certificate, empty if there is none.
// node is the name of this node of a cluster, empty without a cluster.
func (s *Server) certificateName(node string) string {
	if len(s.config.Server.ACMEDomains) > 0 {
		return s.config.Server.ACMEDomains[0]
	}
	if s.tls == nil {
		return ""
	}
	certificate, err := s.tls.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil {
		return ""
	}
	return nameIn(certificate.Leaf, node)
}

// nameIn returns the first host name in a certificate that is no pattern, or the first address, empty if there is none.
// A pattern *.DOMAIN covers NODE.DOMAIN, the name of a node of a cluster.
func nameIn(certificate *x509.Certificate, node string) string {
	for _, name := range certificate.DNSNames {
		domain, isPattern := strings.CutPrefix(name, "*.")
		switch {
		case !isPattern:
			return name
		case node != "":
			return node + "." + domain
		}
	}
	if len(certificate.IPAddresses) > 0 {
		return certificate.IPAddresses[0].String()
	}
	return ""
}

// certificateFiles is a certificate in files. It is safe for concurrent use.
type certificateFiles struct {
	certificate, key string
	current          atomic.Pointer[tls.Certificate]
}

// load reads the files.
func (c *certificateFiles) load() error {
	certificate, err := tls.LoadX509KeyPair(c.certificate, c.key)
	if err != nil {
		return fmt.Errorf("load TLS certificate: %w", err)
	}
	c.current.Store(&certificate)
	return nil
}

// get implements tls.Config.GetCertificate.
func (c *certificateFiles) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.current.Load(), nil
}
