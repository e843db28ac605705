package config

import (
	"errors"
	"testing"
)

// TestACME validates the keys of ACME together.
func TestACME(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Server)
		valid  bool
	}{
		"complete":      {func(*Server) {}, true},
		"no directory":  {func(s *Server) { s.ACMECache = "" }, false},
		"a certificate": {func(s *Server) { s.TLSCert, s.TLSKey = "cert", "key" }, false},
		"a wildcard":    {func(s *Server) { s.ACMEDomains = []string{"*.example.org"} }, false},
		"no dot":        {func(s *Server) { s.ACMEDomains = []string{"localhost"} }, false},
		"plain http":    {func(s *Server) { s.ACMEDirectory = "http://ca.example.org/directory" }, false},
		"no URL":        {func(s *Server) { s.ACMEDirectory = "ca.example.org" }, false},
		"without ACME":  {func(s *Server) { s.ACMEDomains, s.ACMECache, s.ACMEDirectory = nil, "", "" }, true},
		"international": {func(s *Server) { s.ACMEDomains = []string{"bücher.example"} }, true},
		"several names": {func(s *Server) { s.ACMEDomains = []string{"a.example", "b.example"} }, true},
	} {
		s := DefaultServer()
		s.ACMEDomains, s.ACMECache = []string{"sfu.example.org"}, "/var/lib/volsfu/acme"
		test.change(&s)
		if err := s.Validate(); (err == nil) != test.valid || err != nil && !errors.Is(err, ErrValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
