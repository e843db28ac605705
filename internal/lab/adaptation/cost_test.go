package adaptation

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/lab"
)

// burn keeps a processor busy until the context ends, with arithmetic of its own: what the race detector does for a call into the context is
// code that is not Go's, whose samples have no stack that would lead back here.
func burn(ctx context.Context) {
	for sum := uint32(1); ctx.Err() == nil; {
		for range 1 << 20 {
			sum ^= sum << 13
			sum ^= sum >> 17
			sum ^= sum << 5
		}
		if sum == 0 {
			panic("a shift register that was not empty became empty")
		}
	}
}

// TestProfile takes a profile of this process, which does little but one thing.
func TestProfile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(pprof.Profile))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var burning sync.WaitGroup
	burning.Go(func() { burn(ctx) })
	p, err := fetchProfile(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second)
	cancel()
	burning.Wait()
	if err != nil {
		t.Fatal(err)
	}
	total, within := p.of(""), p.of("/lab/adaptation.burn", "no such package")
	if total <= 0 || within < total/2 || within > total || p.of("no such package") != 0 {
		t.Errorf("%g s in all, %g s of them in burn", total, within)
	}
}

// TestNoProfile: what is no profile is an error.
func TestNoProfile(t *testing.T) {
	for _, handler := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
	} {
		server := httptest.NewServer(handler)
		if _, err := fetchProfile(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second); err == nil {
			t.Error("expected an error")
		}
		server.Close()
		if _, err := fetchProfile(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second); err == nil {
			t.Error("expected an error of a server that is gone")
		}
	}
}

// TestAttending brings a small load to a server that is there already.
func TestAttending(t *testing.T) {
	there, err := lab.NewConference(lab.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	conference := lab.Attend(there.Server.URL())
	defer conference.Close()
	cost := &Cost{Load: lab.Load{Name: "body", Tiles: 2, Qualities: 1, FrameBytes: 2000, Rate: 20}, Receivers: 2, Settle: 500 * time.Millisecond}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	receivers, err := cost.attend(ctx, conference)
	if err != nil || len(receivers) != 2 {
		t.Fatalf("%d receivers, %v", len(receivers), err)
	}
}
