package adaptation

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
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
	total, within := p.of([]string{""}, nil), p.of([]string{"/lab/adaptation.burn", "no such package"}, nil)
	if total <= 0 || within < total/2 || within > total || p.of([]string{"no such package"}, driving) != 0 {
		t.Errorf("%g s in all, %g s of them in burn", total, within)
	}
}

// TestAttribution: of the hot path's time that which drives estimator and pacer counts, with what is called outside of the hot path, and not what is called within it to send.
func TestAttribution(t *testing.T) {
	const forward = "github.com/volsfu/volsfu/internal/forward"
	own := func(name, file string) *profile.Function {
		return &profile.Function{Name: forward + "." + name, Filename: forward + "/" + file}
	}
	offer, write, hear := own("(*writer).offer", "pacing.go"), own("(*writer).write", "forwarding.go"), own("(*writer).hear", "departures.go")
	fix := &profile.Function{Name: "container/heap.Fix", Filename: "container/heap/heap.go"}
	seal := &profile.Function{Name: "github.com/volsfu/volsfu/internal/srtp.(*Context).Seal", Filename: "github.com/volsfu/volsfu/internal/srtp/context.go"}
	admit := &profile.Function{Name: "github.com/volsfu/volsfu/internal/congestion/pacing.(*Pacer).Admit", Filename: "pacer.go"}
	for _, c := range []struct {
		name    string
		stack   []*profile.Function // the innermost first
		counted bool
	}{
		{"in a driver", []*profile.Function{offer, write}, true},
		{"in what a driver calls elsewhere", []*profile.Function{fix, offer}, true},
		{"in the pacer", []*profile.Function{admit, offer}, true},
		{"in what sends", []*profile.Function{write, offer}, false},
		{"in what that calls", []*profile.Function{seal, write, offer}, false},
		{"in reading a report", []*profile.Function{hear}, false},
		{"elsewhere", []*profile.Function{seal}, false},
	} {
		apart, inlined := &profile.Sample{Value: []int64{1, 1e9}}, &profile.Location{}
		for _, f := range c.stack {
			apart.Location = append(apart.Location, &profile.Location{Line: []profile.Line{{Function: f}}})
			inlined.Line = append(inlined.Line, profile.Line{Function: f})
		}
		p := cpuProfile{&profile.Profile{Sample: []*profile.Sample{apart, {Value: []int64{1, 1e9}, Location: []*profile.Location{inlined}}}}}
		want := 0.0
		if c.counted {
			want = 2
		}
		if got := p.of(adapting, driving); got != want {
			t.Errorf("%s: %g s, expected %g", c.name, got, want)
		}
	}
}

// TestDrivingFiles: the files that are counted are there.
func TestDrivingFiles(t *testing.T) {
	for _, file := range slices.Concat(driving, hearing) {
		if _, err := os.Stat(filepath.Join("..", "..", "forward", file)); err != nil {
			t.Error(err)
		}
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
