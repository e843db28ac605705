// Package authority is a small certificate authority for tests of ACME (RFC 8555). It checks domains by TLS-ALPN-01 (RFC
// 8737), and the signatures of requests not at all.
package authority

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"
)

// validity is that of the certificates.
const validity = 90 * 24 * time.Hour

// Authority is a running authority. The methods are safe for concurrent use.
type Authority struct {
	t           testing.TB
	http        *httptest.Server
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate

	mu sync.Mutex
	// account is the key of the last account.
	account crypto.PublicKey
	// server is the address at which all domains are reached, empty if they are not reached.
	server string
	orders []*order
}

// order is an order with its only authorization and challenge.
type order struct {
	domain, token, status, authorized string
	chain                             []byte
}

// New starts an authority, which ends with the test. It reaches no domain until Reach.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err == nil {
		a.certificate, err = x509.ParseCertificate(der)
	}
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /directory", a.directory)
	mux.HandleFunc("/nonce", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("POST /account", a.register)
	mux.HandleFunc("POST /order", a.open)
	mux.HandleFunc("POST /order/{order}", a.of(a.show))
	mux.HandleFunc("POST /authorization/{order}", a.of(a.authorization))
	mux.HandleFunc("POST /challenge/{order}", a.of(a.challenge))
	mux.HandleFunc("POST /finalize/{order}", a.of(a.finalize))
	mux.HandleFunc("POST /certificate/{order}", a.of(a.issued))
	a.http = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Replay-Nonce", rand.Text())
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.http.Close)
	return a
}

// URL returns the directory URL.
func (a *Authority) URL() string { return a.http.URL + "/directory" }

// Transport returns a transport that trusts the listener of the authority.
func (a *Authority) Transport() http.RoundTripper { return a.http.Client().Transport }

// ListenerFile returns a PEM file with the certificate of the listener, for SSL_CERT_FILE.
func (a *Authority) ListenerFile() string {
	a.t.Helper()
	file := filepath.Join(a.t.TempDir(), "listener.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.http.Certificate().Raw})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return file
}

// Roots trusts the certificates of the authority.
func (a *Authority) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Reach sets the address at which the authority reaches all domains.
func (a *Authority) Reach(address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.server = address
}

// Orders returns the number of orders.
func (a *Authority) Orders() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.orders)
}

func (a *Authority) directory(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]string{
		"newNonce": a.http.URL + "/nonce", "newAccount": a.http.URL + "/account", "newOrder": a.http.URL + "/order",
	})
}

// signed is a signed request (RFC 7515).
type signed struct {
	Protected, Payload string
}

func (a *Authority) register(w http.ResponseWriter, r *http.Request) {
	var s signed
	var header struct {
		JWK struct{ X, Y string } `json:"jwk"`
	}
	if err := errors.Join(json.NewDecoder(r.Body).Decode(&s), decode(s.Protected, &header)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	x, err1 := base64.RawURLEncoding.DecodeString(header.JWK.X)
	y, err2 := base64.RawURLEncoding.DecodeString(header.JWK.Y)
	key, err3 := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err := errors.Join(err1, err2, err3); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	a.account = key
	a.mu.Unlock()
	w.Header().Set("Location", a.http.URL+"/account/1")
	reply(w, http.StatusCreated, map[string]string{"status": "valid"})
}

func (a *Authority) open(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Identifiers []struct{ Value string }
	}
	if err := payload(r, &request); err != nil || len(request.Identifiers) != 1 {
		http.Error(w, "expected one identifier", http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o := &order{domain: request.Identifiers[0].Value, token: rand.Text(), status: "pending", authorized: "pending"}
	a.orders = append(a.orders, o)
	number := strconv.Itoa(len(a.orders) - 1)
	w.Header().Set("Location", a.http.URL+"/order/"+number)
	reply(w, http.StatusCreated, a.stateOf(o, number))
}

// stateOf returns an order as its owner sees it.
func (a *Authority) stateOf(o *order, number string) map[string]any {
	return map[string]any{
		"status": o.status, "identifiers": []map[string]string{{"type": "dns", "value": o.domain}},
		"authorizations": []string{a.http.URL + "/authorization/" + number},
		"finalize":       a.http.URL + "/finalize/" + number, "certificate": a.http.URL + "/certificate/" + number,
	}
}

// of returns the handler of requests for one order. The handler holds the mutex.
func (a *Authority) of(
	handle func(w http.ResponseWriter, r *http.Request, o *order, number string),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		number := r.PathValue("order")
		index, err := strconv.Atoi(number)
		if err != nil || index < 0 || index >= len(a.orders) {
			http.NotFound(w, r)
			return
		}
		handle(w, r, a.orders[index], number)
	}
}

func (a *Authority) show(w http.ResponseWriter, _ *http.Request, o *order, number string) {
	w.Header().Set("Location", a.http.URL+"/order/"+number)
	reply(w, http.StatusOK, a.stateOf(o, number))
}

func (a *Authority) authorization(w http.ResponseWriter, _ *http.Request, o *order, number string) {
	reply(w, http.StatusOK, map[string]any{
		"status": o.authorized, "identifier": map[string]string{"type": "dns", "value": o.domain},
		"challenges": []map[string]string{a.challengeOf(o, number)},
	})
}

func (a *Authority) challengeOf(o *order, number string) map[string]string {
	return map[string]string{"type": "tls-alpn-01", "url": a.http.URL + "/challenge/" + number, "token": o.token,
		"status": o.authorized}
}

// challenge checks the domain of an order.
func (a *Authority) challenge(w http.ResponseWriter, _ *http.Request, o *order, number string) {
	o.authorized, o.status = "valid", "ready"
	if err := a.check(o); err != nil {
		a.t.Logf("authority: %s: %v", o.domain, err)
		o.authorized, o.status = "invalid", "invalid"
	}
	reply(w, http.StatusOK, a.challengeOf(o, number))
}

var (
	errUnreachable = errors.New("the domain is not reached")
	errChallenge   = errors.New("the certificate of the challenge is wrong")
)

// acmeIdentifier is the extension with the digest of the key authorization (RFC 8737, section 3).
var acmeIdentifier = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}

// check performs the challenge TLS-ALPN-01.
func (a *Authority) check(o *order) error {
	if a.server == "" {
		return errUnreachable
	}
	thumbprint, err := acme.JWKThumbprint(a.account)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(o.token + "." + thumbprint))
	want, err := asn1.Marshal(digest[:])
	if err != nil {
		return err
	}
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", a.server, &tls.Config{
		ServerName: o.domain, NextProtos: []string{acme.ALPNProto}, InsecureSkipVerify: true,
	})
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	state := conn.ConnectionState()
	if state.NegotiatedProtocol != acme.ALPNProto {
		return fmt.Errorf("%w: the protocol is %q", errChallenge, state.NegotiatedProtocol)
	}
	leaf := state.PeerCertificates[0]
	for _, extension := range leaf.Extensions {
		if extension.Id.Equal(acmeIdentifier) && extension.Critical && bytes.Equal(extension.Value, want) {
			return leaf.VerifyHostname(o.domain)
		}
	}
	return fmt.Errorf("%w: it has no digest of the key authorization", errChallenge)
}

// finalize issues the certificate of an order.
func (a *Authority) finalize(w http.ResponseWriter, r *http.Request, o *order, number string) {
	var request struct{ CSR string }
	if err := payload(r, &request); err != nil || o.status != "ready" {
		http.Error(w, "the order is not ready", http.StatusForbidden)
		return
	}
	chain, err := a.issue(o.domain, request.CSR)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.chain, o.status = chain, "valid"
	a.show(w, r, o, number)
}

// issue returns the PEM chain for a certificate signing request.
func (a *Authority) issue(domain, csr string) ([]byte, error) {
	der, err := base64.RawURLEncoding.DecodeString(csr)
	if err != nil {
		return nil, err
	}
	request, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{domain}, NotBefore: time.Now().Add(-time.Minute),
		NotAfter: time.Now().Add(validity), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, a.certificate, request.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	var chain []byte
	for _, certificate := range [][]byte{leaf, a.certificate.Raw} {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})...)
	}
	return chain, nil
}

func (a *Authority) issued(w http.ResponseWriter, _ *http.Request, o *order, _ string) {
	w.Header().Set("Content-Type", "application/pem-certificate-chain")
	_, _ = w.Write(o.chain)
}

// payload decodes the payload of a signed request.
func payload(r *http.Request, into any) error {
	var s signed
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		return err
	}
	return decode(s.Payload, into)
}

// decode decodes JSON in base64.
func decode(text string, into any) error {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
