package cpuprofile

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

// burn keeps a processor busy until the context ends, with arithmetic in Go. burn rarely calls into the context: with
// the race detector, such a call runs code outside of Go, whose samples have no stack that leads to burn.
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

// TestProfile takes a profile of this process, which mostly runs one function.
func TestProfile(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(pprof.Profile))
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	var burning sync.WaitGroup
	burning.Go(func() { burn(ctx) })
	p, err := Take(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second)
	cancel()
	burning.Wait()
	if err != nil {
		t.Fatal(err)
	}
	total, within := p.Total(), p.Of(func(s Stack) bool { return s.Through("/lab/cpuprofile.burn", "no such package") })
	if total <= 0 || within < total/2 || within > total {
		t.Errorf("%v in total, %v in burn", total, within)
	}
}

// TestStacks: an inlined function is on the stack like a called function.
func TestStacks(t *testing.T) {
	functions := []*profile.Function{{Name: "some/heap.Fix", Filename: "some/heap/heap.go"},
		{Name: "a/forward.offer", Filename: "/src/a/forward/pacing.go"},
		{Name: "a/forward.run", Filename: "/src/a/forward/writer.go"}}
	apart, inlined := &profile.Sample{Value: []int64{1, 1e9}}, &profile.Sample{Value: []int64{1, 2e9},
		Location: []*profile.Location{{}}}
	for _, f := range functions {
		apart.Location = append(apart.Location, &profile.Location{Line: []profile.Line{{Function: f}}})
		inlined.Location[0].Line = append(inlined.Location[0].Line, profile.Line{Function: f})
	}
	p := read(&profile.Profile{Sample: []*profile.Sample{apart, inlined, {Value: []int64{1, 4e9}}}})
	for name, test := range map[string]struct {
		counts func(Stack) bool
		want   time.Duration
	}{
		"everything":         {func(Stack) bool { return true }, 7 * time.Second},
		"through a package":  {func(s Stack) bool { return s.Through("b/other", "a/forward.") }, 3 * time.Second},
		"through no package": {func(s Stack) bool { return s.Through("b/other") }, 0},
		"through a file":     {func(s Stack) bool { return s.ThroughFile("/forward/writer.go") }, 3 * time.Second},
		"through no file":    {func(s Stack) bool { return s.ThroughFile("/other/writer.go") }, 0},
		"the innermost frame": {func(s Stack) bool {
			f, ok := s.Innermost("/forward/")
			return ok && f.Function == "a/forward.offer" && f.File == "/src/a/forward/pacing.go"
		}, 3 * time.Second},
		"outside of a folder": {func(s Stack) bool {
			_, ok := s.Innermost("/other/")
			return !ok
		}, 7 * time.Second},
	} {
		if got := p.Of(test.counts); got != test.want {
			t.Errorf("%s: %v, expected %v", name, got, test.want)
		}
	}
}

// TestNoProfile: a response that is not a profile is an error.
func TestNoProfile(t *testing.T) {
	for _, handler := range []http.HandlerFunc{
		func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
	} {
		server := httptest.NewServer(handler)
		if _, err := Take(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second); err == nil {
			t.Error("expected an error")
		}
		server.Close()
		if _, err := Take(context.Background(), strings.TrimPrefix(server.URL, "http://"), time.Second); err == nil {
			t.Error("expected an error from a stopped server")
		}
	}
}
