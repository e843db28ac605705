// Package acme obtains the certificates of a server from a certificate authority and renews them, by ACME (RFC 8555)
// with the challenge TLS-ALPN-01 (RFC 8737), which the listener of the server itself answers.
package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/idna"
)

const (
	// Protocol is the ALPN protocol by which a certificate authority checks a domain. The listener has to offer it.
	Protocol = acme.ALPNProto
	// DefaultDirectory is the directory URL of Let's Encrypt.
	DefaultDirectory = autocert.DefaultACMEDirectory
)

// ErrNoCertificate is the sentinel of handshakes for which there is no certificate.
var ErrNoCertificate = errors.New("no certificate")

// Config configures an Issuer.
type Config struct {
	// Domains are host names for which ValidDomain is true.
	Domains []string
	// Cache is the directory of certificates, their keys and the account key. It is created if necessary.
	Cache string
	// Directory is the directory URL of the ACME server.
	Directory string
	// Transport sends the requests to the ACME server; nil is http.DefaultTransport.
	Transport http.RoundTripper
}

// ValidDomain reports whether a certificate can be requested for a name: a host name of at least two labels.
func ValidDomain(name string) bool {
	ascii, err := idna.Lookup.ToASCII(name)
	return err == nil && strings.Contains(strings.Trim(ascii, "."), ".") && !strings.ContainsAny(ascii, "*:/")
}

// Issuer has the certificates of its domains. It requests the missing ones, one after another, and renews each when a
// third of its validity is left. Handshakes never cause a request: authorities limit failed requests. The methods are
// safe for concurrent use.
type Issuer struct {
	manager *autocert.Manager
	// domains are in ASCII and lower case.
	domains []string
	log     *zap.Logger
	retry   chan struct{}
	end     context.CancelFunc

	mu sync.Mutex
	// issued are the domains with a certificate.
	issued map[string]bool
}

// Start returns an issuer, which has begun to request certificates and ends with Close. The account is registered with
// the first request, which accepts the terms of the authority.
func Start(c Config, log *zap.Logger) (*Issuer, error) {
	if err := os.MkdirAll(c.Cache, 0o700); err != nil {
		return nil, fmt.Errorf("directory of ACME: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	i := &Issuer{log: log, retry: make(chan struct{}, 1), end: end, issued: make(map[string]bool)}
	for _, domain := range c.Domains {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			end()
			return nil, fmt.Errorf("domain %q of ACME: %w", domain, err)
		}
		i.domains = append(i.domains, strings.Trim(ascii, "."))
	}
	if c.Transport == nil {
		c.Transport = http.DefaultTransport
	}
	i.manager = &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(c.Cache), HostPolicy: autocert.HostWhitelist(i.domains...),
		Client: &acme.Client{DirectoryURL: c.Directory, UserAgent: "volsfu",
			HTTPClient: &http.Client{Timeout: requestTimeout, Transport: until{ctx, c.Transport}}},
	}
	go i.run(ctx)
	return i, nil
}

// requestTimeout bounds one request to the ACME server.
const requestTimeout = time.Minute

// until is a transport that sends no request after the end of a context. The manager's own contexts have no parent.
type until struct {
	ctx       context.Context
	transport http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (u until) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := u.ctx.Err(); err != nil {
		return nil, err
	}
	return u.transport.RoundTrip(r)
}

// Close ends the requests to the ACME server. Close does not wait for the current one.
func (i *Issuer) Close() { i.end() }

// Retry requests missing certificates at once, without waiting for the time after a failure.
func (i *Issuer) Retry() {
	select {
	case i.retry <- struct{}{}:
	default:
		// A retry is pending.
	}
}

// retryWait returns the time from the given number of failures in a row to the next request: 5, 10, 20, 40, and then 60
// minutes. Let's Encrypt refuses further requests for a domain after five failures in an hour.
func retryWait(failures int) time.Duration {
	return min(5*time.Minute<<min(failures-1, 4), time.Hour)
}

// run requests the missing certificates until all are issued. The renewals are the manager's.
func (i *Issuer) run(ctx context.Context) {
	for failures := 1; !i.request(ctx, retryWait(failures)); failures++ {
		select {
		case <-time.After(retryWait(failures)):
		case <-i.retry:
		case <-ctx.Done():
			return
		}
	}
}

// request requests the missing certificates, and reports whether all are issued. wait is the time until the next
// request after a failure.
func (i *Issuer) request(ctx context.Context, wait time.Duration) (all bool) {
	all = true
	for _, domain := range i.domains {
		if i.has(domain) {
			continue
		}
		certificate, err := i.manager.GetCertificate(helloOf(domain))
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			all = false
			i.log.Error("the certificate authority has issued no certificate; it has to reach this server at TCP port 443 "+
				"of the domain", zap.String("domain", domain), zap.Duration("next_request", wait), zap.Error(err))
			continue
		}
		i.mu.Lock()
		i.issued[domain] = true
		i.mu.Unlock()
		i.log.Info("the certificate of ACME is ready", zap.String("domain", domain),
			zap.Time("expires", certificate.Leaf.NotAfter))
	}
	return all
}

func (i *Issuer) has(domain string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.issued[domain]
}

// helloOf returns a handshake for a domain. Clients without ECDSA are not served: they would need a second certificate.
func helloOf(domain string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{
		ServerName: domain, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
	}
}

// GetCertificate implements tls.Config.GetCertificate: the answer to a challenge, or the certificate of the domain. A
// handshake without a server name gets that of the first domain.
func (i *Issuer) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	domain := i.domains[0]
	if hello.ServerName != "" {
		ascii, err := idna.Lookup.ToASCII(strings.Trim(hello.ServerName, "."))
		if err != nil || !slices.Contains(i.domains, ascii) {
			return nil, fmt.Errorf("%w: %q is not among the domains of ACME", ErrNoCertificate, hello.ServerName)
		}
		domain = ascii
	}
	if slices.Equal(hello.SupportedProtos, []string{Protocol}) {
		return i.manager.GetCertificate(hello)
	}
	if !i.has(domain) {
		return nil, fmt.Errorf("%w: the authority has not issued that of %q yet", ErrNoCertificate, domain)
	}
	return i.manager.GetCertificate(helloOf(domain))
}

// errCached is wrapped with the name of a file of the cache.
var errCached = errors.New("no certificate in the file")

// Cached returns the certificate of a domain in the cache of an issuer. The error wraps fs.ErrNotExist if there is none.
func Cached(cache, domain string) (*x509.Certificate, error) {
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(cache, strings.Trim(ascii, "."))
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, fmt.Errorf("%w %s", errCached, file)
}
