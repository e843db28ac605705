package signalling

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

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestVR2GatherCandidates tells peers of candidates over UDP only, and only of those that are configured.
func TestVR2GatherCandidates(t *testing.T) {
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
		o := &vr2GatherOutbox{client: &vr2GatherClient{server: &VR2GatherServer{config: VR2GatherConfig{Candidates: c.filter}}}}
		if got := o.keeps(c.candidate); got != c.kept {
			t.Errorf("%q with filter %q: %t", c.candidate, c.filter, got)
		}
	}
}

// TestVR2GatherConfig finds the values that nobody can mean.
func TestVR2GatherConfig(t *testing.T) {
	if err := DefaultVR2GatherConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*VR2GatherConfig){
		"no room":            func(c *VR2GatherConfig) { c.DefaultRoom = "" },
		"no tiles":           func(c *VR2GatherConfig) { c.Tiles = 0 },
		"too many tiles":     func(c *VR2GatherConfig) { c.Tiles = volumetric.MaxTiles + 1 },
		"less than nothing":  func(c *VR2GatherConfig) { c.MinBitrate = -1 },
		"no qualities":       func(c *VR2GatherConfig) { c.Qualities = 0 },
		"too many qualities": func(c *VR2GatherConfig) { c.Qualities = volumetric.MaxQualities + 1 },
	} {
		c := DefaultVR2GatherConfig()
		spoil(&c)
		if err := c.Validate(); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// nobody is an Authenticator that refuses everybody.
type nobody struct{}

func (nobody) Authenticate(*http.Request) (Credentials, error) {
	return Credentials{}, errors.New("no")
}

// TestVR2GatherRefusalsWait: answers to refused peers of one address wait as those of signalling v1 do, whether the
// request is refused or the join. Peers of other addresses do not wait, nor do those who have gone.
func TestVR2GatherRefusalsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultVR2GatherConfig()
		config.RequireToken = true
		s, err := NewVR2GatherServer(config, DefaultConfig(), nil, nobody{}, uncounted{}, NewLog(zap.NewNop()), false)
		if err != nil {
			t.Fatal(err)
		}
		request := func(ctx context.Context, remote string) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, VR2GatherPath, nil)
			r.RemoteAddr = remote
			recorder := httptest.NewRecorder()
			if s.ServeHTTP(recorder, r); ctx.Err() == nil && recorder.Code != http.StatusUnauthorized {
				t.Errorf("status %d, expected 401", recorder.Code)
			}
		}
		join := func(remote string) {
			c := &vr2GatherClient{server: s, remote: remote}
			c.outbox = &vr2GatherOutbox{client: c, notify: make(chan struct{}, 1)}
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
			"who has gone": func() { request(gone, address) },
		} {
			if wait := took(refuse); wait != 0 {
				t.Errorf("%s waits for %v", who, wait)
			}
		}
	})
}
