package signalling

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/signal"
)

// countedErrors counts errors that were sent to clients.
type countedErrors map[signal.Code]int

// SignallingMessage implements Metrics.
func (countedErrors) SignallingMessage(string, signal.Type) {}

// SignallingError implements Metrics.
func (c countedErrors) SignallingError(code signal.Code) { c[code]++ }

// visit makes a request that stays open until leave is called.
func visit(
	limits *AddressLimits, peer, header string,
) (answer *httptest.ResponseRecorder, remote string, leave func()) {
	inside, left, done := make(chan string, 1), make(chan struct{}), make(chan struct{})
	answer = httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/v1/signal", nil)
	r.RemoteAddr = peer
	if header != "" {
		r.Header.Set(headerXForwardedFor, header)
	}
	go func() {
		defer close(done)
		limits.Guard(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			inside <- r.RemoteAddr
			<-left
		})).ServeHTTP(answer, r)
	}()
	leave = func() { close(left); <-done }
	select {
	case remote = <-inside:
	case <-done:
	}
	return answer, remote, leave
}

func TestAddressLimits(t *testing.T) {
	config := DefaultConfig()
	config.AddressWebsockets, config.AddressRate, config.AddressBurst = 2, 1e-9, 4
	config.TrustedProxies = []string{"10.0.0.1", "127.0.0.1"}
	errors := countedErrors{}
	limits, err := NewAddressLimits(config, errors, NewLog(zap.NewNop()))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(what, peer, header string, status int, text string) (leave func()) {
		t.Helper()
		answer, remote, leave := visit(limits, peer, header)
		if answer.Code != status || !strings.Contains(answer.Body.String(), text) {
			t.Errorf("%s: status %d, %q, expected %d, %q", what, answer.Code, answer.Body, status, text)
		}
		if again := answer.Header().Get("Retry-After"); (again != "") != (status == http.StatusTooManyRequests) {
			t.Errorf("%s: Retry-After is %q", what, again)
		}
		if inside := remote != ""; inside != (status == http.StatusOK) {
			t.Errorf("%s: let in is %v", what, inside)
		} else if want := map[bool]string{false: peer, true: header + ":0"}[header != ""]; inside && remote != want {
			t.Errorf("%s: seen as %s, expected %s", what, remote, want)
		}
		return leave
	}
	const ada, grace = "203.0.113.9:1", "203.0.113.10:1"
	first := expect("the first", ada, "", http.StatusOK, "")
	second := expect("the second", ada, "", http.StatusOK, "")
	expect("one more than may be open", ada, "", http.StatusTooManyRequests, "signalling.address_websockets")
	expect("the same by a proxy", "10.0.0.1:1", "203.0.113.9", http.StatusTooManyRequests, "the limit is 2")
	other := expect("another address", grace, "", http.StatusOK, "")
	proxied := expect("another by a proxy", "10.0.0.1:1", "203.0.113.11", http.StatusOK, "")
	expect("a header that is none", "10.0.0.1:1", "nobody", http.StatusBadRequest, "nobody")
	first()
	first = expect("one for one that has gone", ada, "", http.StatusOK, "")
	first()
	first = expect("another one", ada, "", http.StatusOK, "")
	first()
	expect("one more than may come at once", ada, "", http.StatusTooManyRequests, "signalling.address_rate")
	for range 10 {
		expect("one of this host", "[::1]:1", "", http.StatusOK, "")()
	}
	expect("one more by a proxy on this host", "127.0.0.1:1", "203.0.113.9", http.StatusTooManyRequests,
		"signalling.address_rate")
	for _, leave := range []func(){second, other, proxied} {
		leave()
	}
	if got, want := limits.Stats(), (AddressStats{Open: 2, Rate: 2, Header: 1}); got != want {
		t.Errorf("counted %+v, expected %+v", got, want)
	}
	if errors[signal.CodeRateLimited] != 4 || errors[signal.CodeInvalid] != 1 {
		t.Errorf("told %v", errors)
	}
	for source, m := range limits.quota.members {
		if m.open != 0 {
			t.Errorf("%d are open from %v after all have gone", m.open, source)
		}
	}
}
