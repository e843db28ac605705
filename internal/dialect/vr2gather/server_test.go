package vr2gather

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/signalling"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestCandidates checks that peers receive only candidates over UDP that match the configuration.
func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		filter, candidate string
		kept              bool
	}{
		{"", "candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host", true},
		{"", "candidate:1 1 UDP 2130706431 10.8.0.1 7882 typ host", true},
		{"", "candidate:2 1 tcp 1671430143 10.8.0.1 7882 typ host tcptype passive", false},
		{"", "candidate:", false},
		{"", "", false},
		{"10.8.", "candidate:1 1 udp 2130706431 10.8.0.1 7882 typ host", true},
		{"10.8.", "candidate:1 1 udp 2130706431 192.0.2.1 7882 typ srflx raddr 10.8.0.1 rport 7882", false},
	} {
		o := &outbox{client: &client{server: &Server{config: Config{Candidates: c.filter}}}}
		if got := o.keeps(c.candidate); got != c.kept {
			t.Errorf("%q with filter %q: %t", c.candidate, c.filter, got)
		}
	}
}

// TestConfig checks that invalid values are rejected.
func TestConfig(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no room":            func(c *Config) { c.DefaultRoom = "" },
		"no tiles":           func(c *Config) { c.Tiles = 0 },
		"too many tiles":     func(c *Config) { c.Tiles = volumetric.MaxTiles + 1 },
		"less than nothing":  func(c *Config) { c.MinBitrate = -1 },
		"no qualities":       func(c *Config) { c.Qualities = 0 },
		"too many qualities": func(c *Config) { c.Qualities = volumetric.MaxQualities + 1 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// nobody is an Authenticator that refuses every client.
type nobody struct{}

func (nobody) Authenticate(*http.Request) (signalling.Credentials, error) {
	return signalling.Credentials{}, errors.New("no")
}

// uncounted discards counts.
type uncounted struct{}

func (uncounted) SignallingMessage(string, signal.Type) {}
func (uncounted) SignallingError(signal.Code)           {}

// The delays of signalling: the number of immediate refusals of an address, and the number per second after that. No
// join waits longer than maxJoinWait.
const (
	answerBurst = 100
	answerRate  = 10
	maxJoinWait = 1500 * time.Millisecond
)

// TestRefusalsWait checks that refusals of requests and of joins are delayed per address, as in signalling v1. Peers of
// other addresses do not wait, and a peer that has gone ends its wait.
func TestRefusalsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.RequireToken = true
		s, err := NewServer(config, signalling.DefaultConfig(), nil, nobody{}, uncounted{},
			signalling.NewLog(zap.NewNop()), false)
		if err != nil {
			t.Fatal(err)
		}
		request := func(ctx context.Context, remote string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, Path, nil)
			r.RemoteAddr = remote
			recorder := httptest.NewRecorder()
			if s.ServeHTTP(recorder, r); ctx.Err() == nil && recorder.Code != http.StatusUnauthorized {
				t.Errorf("status %d, expected 401", recorder.Code)
			}
		}
		join := func(remote string) {
			c := &client{server: s, remote: remote}
			c.outbox = &outbox{Writer: &signalling.Writer{}, client: c}
			if c.refuseJoin(&signal.Error{Code: signal.CodeLimit}); !c.outbox.ended() {
				t.Error("the connection of a refused join goes on")
			}
		}
		took := func(do func()) time.Duration {
			began := time.Now()
			do()
			return time.Since(began)
		}
		const address, other = "203.0.113.9:1", "203.0.113.10:1"
		for i := range answerBurst {
			if wait := took(func() { request(t.Context(), address) }); wait != 0 {
				t.Fatalf("refusal %d waits for %v", i, wait)
			}
		}
		for _, refuse := range []func(){func() { request(t.Context(), address) }, func() { join(address) }} {
			if wait := took(refuse); (wait - time.Second/answerRate).Abs() > time.Microsecond {
				t.Errorf("a refusal waits for %v, expected %v", wait, time.Second/answerRate)
			}
		}
		waits := make(chan time.Duration, 100)
		for range cap(waits) {
			go func() { waits <- took(func() { join(address) }) }()
		}
		var all []time.Duration
		for range cap(waits) {
			all = append(all, <-waits)
		}
		if longest := slices.Max(all); longest != maxJoinWait {
			t.Errorf("of %d refused joins at once one waits for %v, expected %v", len(all), longest, maxJoinWait)
		}
		gone, leave := context.WithCancel(t.Context())
		leave()
		for who, refuse := range map[string]func(){
			"another address": func() { join(other) }, "this host": func() { join("127.0.0.1:1") },
			"a peer that has gone": func() { request(gone, address) },
		} {
			if wait := took(refuse); wait != 0 {
				t.Errorf("%s waits for %v", who, wait)
			}
		}
	})
}
