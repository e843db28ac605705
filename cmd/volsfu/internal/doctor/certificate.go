package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/internal/acme"
	"github.com/volsfu/volsfu/internal/authority"
	"github.com/volsfu/volsfu/pkg/signal"
)

// expiryNotice is the remaining validity below which a certificate is reported. Renewal begins with a third of the
// validity left, 30 of 90 days.
const expiryNotice = 14 * 24 * time.Hour

// certificate checks the certificate of the server: files, or those of ACME.
func (o *options) certificate(ctx context.Context) []Finding {
	const subject = "certificate"
	c := o.settings.Server
	switch {
	case len(c.ACMEDomains) > 0:
		return o.issued(ctx)
	case c.TLSCert != "":
		pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
		if err != nil {
			return []Finding{{subject, Failed, err.Error(),
				"The certificate file needs the chain with the server's own certificate first, the key file its key."}}
		}
		var host string
		if u, err := url.Parse(o.url); err == nil {
			host = u.Hostname()
		}
		return []Finding{validity(subject, pair.Leaf, host, time.Now()), chain(pair, time.Now())}
	case c.Dev:
		return []Finding{{subject, Skipped, "a server with --dev is reached on loopback, where browsers need none", ""}}
	case strings.HasPrefix(o.url, "https:"):
		return []Finding{{subject, Skipped, "the server has none; that of --url is checked", ""}}
	default:
		return []Finding{{subject, Warning, "the server has no certificate: browsers need https:// except on loopback",
			"Use --tls-cert and --tls-key, ACME (--acme-domains), or a proxy (docs/operations.md), and check the " +
				"proxy with --url."}}
	}
}

// validity judges times and names of a certificate. host is empty if it is unknown.
func validity(subject string, leaf *x509.Certificate, host string, now time.Time) Finding {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	left := leaf.NotAfter.Sub(now)
	f := Finding{Subject: subject, Status: OK, Result: fmt.Sprintf("for %s, valid until %s", strings.Join(names, ", "),
		leaf.NotAfter.UTC().Format(time.DateOnly))}
	switch {
	case left <= 0:
		f.Status, f.Result = Failed, "expired at "+leaf.NotAfter.UTC().Format(time.DateTime)
		f.Advice = "Renew it; the running server reads the new files by itself."
	case now.Before(leaf.NotBefore):
		f.Status, f.Result = Failed, "valid only from "+leaf.NotBefore.UTC().Format(time.DateTime)
		f.Advice = "Check the clock of this host."
	case host != "" && leaf.VerifyHostname(host) != nil:
		f.Status, f.Result = Failed, fmt.Sprintf("it is for %s, and clients use %s", strings.Join(names, ", "), host)
		f.Advice = "Obtain a certificate for the name in clients' addresses."
	case left < expiryNotice:
		f.Status = Warning
		f.Advice = "Renew it, and check why the automatic renewal has not."
	}
	return f
}

// chain judges whether clients can verify a certificate with the authorities of this host.
func chain(pair tls.Certificate, now time.Time) Finding {
	intermediates := x509.NewCertPool()
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(c)
		}
	}
	_, err := pair.Leaf.Verify(x509.VerifyOptions{Intermediates: intermediates, CurrentTime: now})
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		return Finding{"certificate chain", Warning, "no authority of this host has signed the certificate",
			"Add the intermediate certificates to the file. For a private authority, install it in browsers, and " +
				"pass its certificate to volpeer with --ca."}
	}
	if err != nil {
		return Finding{"certificate chain", Failed, err.Error(),
			"Replace the certificate, or the intermediate certificates in the file if the certificate itself is valid."}
	}
	return Finding{"certificate chain", OK, "an authority of this host has signed the certificate", ""}
}

// issued checks the certificates of ACME, in the cache, and whether the authority can reach the domains.
func (o *options) issued(ctx context.Context) []Finding {
	c := o.settings.Server
	var found []Finding
	if _, port, _ := net.SplitHostPort(c.Listen); port != "443" {
		found = append(found, Finding{"ACME", Warning, "the server listens on port " + port +
			", and the certificate authority connects to 443", "Listen on :443, or forward TCP port 443 to this port."})
	}
	for _, domain := range c.ACMEDomains {
		subject := "certificate of " + domain
		if _, err := net.DefaultResolver.LookupHost(ctx, domain); err != nil {
			found = append(found, Finding{subject, Failed, err.Error(),
				"Add A and AAAA records of the name with the public addresses of this host."})
			continue
		}
		leaf, err := acme.Cached(c.ACMECache, domain)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found = append(found, Finding{subject, Warning, "not issued yet",
				"Start the server; it requests the certificate and logs the reason if that fails."})
		case err != nil:
			found = append(found, Finding{subject, Failed, err.Error(), "Delete the file, and restart the server."})
		default:
			found = append(found, validity(subject, leaf, domain, time.Now()))
		}
	}
	return found
}

// clients checks the address that clients use: certificate, and whether a websocket reaches the server.
func (o *options) clients(ctx context.Context) []Finding {
	const subject = "clients' address"
	if o.url == "" {
		return []Finding{{subject, Skipped, "not given",
			"Pass --url https://HOST to check the address that clients use, through the proxy if there is one."}}
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return []Finding{{subject, Failed, fmt.Sprintf("--url is %q", o.url), "Pass https://HOST[:PORT]."}}
	}
	dialer := websocket.Dialer{HandshakeTimeout: checkTimeout}
	if dialer.TLSClientConfig, err = authority.Trust(o.authority); err != nil {
		return []Finding{{subject, Failed, "--ca: " + err.Error(), "Pass a PEM file with certificates."}}
	}
	target := u.JoinPath(signal.Path)
	target.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	conn, response, err := dialer.DialContext(ctx, target.String(), nil)
	if conn != nil {
		_ = conn.Close()
	}
	status := 0
	if response != nil {
		status = response.StatusCode
	}
	return []Finding{websocketFinding(subject, target, status, err)}
}

// websocketFinding judges the answer to a websocket without a token. status is 0 without an answer.
func websocketFinding(subject string, target *url.URL, status int, err error) Finding {
	f := Finding{Subject: subject, Status: Failed}
	var invalid *tls.CertificateVerificationError
	switch {
	case err == nil:
		return Finding{subject, OK, target.String() + " accepts websockets, without a token", ""}
	case status == http.StatusUnauthorized:
		f.Status, f.Result = OK, target.String()+" answers, and asks for a token"
	case errors.As(err, &invalid):
		f.Result = invalid.Err.Error()
		f.Advice = "Correct the certificate, or pass the certificate of a private authority with --ca."
	case status == 0:
		f.Result = err.Error()
		f.Advice = "Check the name, the firewall and the proxy. Some networks do not reach their own public address: " +
			"repeat the check elsewhere."
	case status == http.StatusTooManyRequests:
		f.Status, f.Result, f.Advice = Warning, "too many connections of this host", "Repeat the check later."
	default:
		f.Result = fmt.Sprintf("%s answers with status %d, expected a websocket or 401", target, status)
		f.Advice = "The proxy has to pass the websocket upgrade of " + signal.Path + " (docs/operations.md)."
	}
	return f
}
