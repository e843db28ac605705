package server

import (
	"crypto/tls"
	"fmt"
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

// certificateName returns the host name for which the server has a certificate, empty if there is none.
func (s *Server) certificateName() string {
	if len(s.config.Server.ACMEDomains) > 0 {
		return s.config.Server.ACMEDomains[0]
	}
	if s.tls == nil {
		return ""
	}
	certificate, err := s.tls.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || len(certificate.Leaf.DNSNames) == 0 {
		return ""
	}
	return certificate.Leaf.DNSNames[0]
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
