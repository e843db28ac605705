package codectest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// greedy is a decoder that uses memory or time.
type greedy struct {
	bytes int
	cpu   time.Duration
	err   error
}

func (g greedy) Decode(*pointcloud.Cloud, []byte) error {
	took := make([]byte, g.bytes)
	for i := 0; i < len(took); i += 1 << 10 {
		took[i] = 1
	}
	runtime.KeepAlive(took)
	if g.cpu > 0 {
		for began := threadTime(); threadTime()-began < g.cpu; {
			continue
		}
	}
	return g.err
}

// failure is a test that records its failure.
type failure struct {
	testing.TB
	said string
}

func (f *failure) Helper() {}
func (f *failure) Fatalf(format string, values ...any) {
	f.said = fmt.Sprintf(format, values...)
	runtime.Goexit()
}

// outcome returns the failure of a decoder's test, or "" on success.
func outcome(t *testing.T, decoder codec.Decoder, size int) string {
	f := &failure{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = decode(f, decoder, new(pointcloud.Cloud), make([]byte, size), 1)
	}()
	<-done
	return f.said
}

// tooLong is more processor time than is permitted for a short frame.
const tooLong = instrumentedSlowness * (mostCPU + 50*time.Millisecond)

// TestDecode expects that decoders that use too much fail their tests.
func TestDecode(t *testing.T) {
	for name, c := range map[string]struct {
		decoder greedy
		size    int
		says    string
	}{
		"nothing":                      {greedy{}, 40, ""},
		"an error":                     {greedy{err: codec.ErrMalformed}, 40, ""},
		"another error":                {greedy{err: fmt.Errorf("no memory")}, 40, "got no memory"},
		"what few bytes may take":      {greedy{bytes: 60 << 20}, 40, ""},
		"more than few bytes may":      {greedy{bytes: 65 << 20}, 40, "of Go's heap"},
		"what more bytes may take":     {greedy{bytes: 65 << 20}, 40_000, ""},
		"more than any frame may":      {greedy{bytes: 200 << 20}, 1 << 20, "of Go's heap"},
		"more time than few bytes may": {greedy{cpu: tooLong}, 40, "expected at most"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.decoder.cpu > 0 && threadTime() == 0 {
				t.Skip("skipped: the system does not tell a thread's processor time")
			}
			if got := outcome(t, c.decoder, c.size); !strings.Contains(got, c.says) || (got == "") != (c.says == "") {
				t.Errorf("the test says %q, want %q", got, c.says)
			}
		})
	}
}

// TestResident expects that memory outside of Go's heap counts: a mapping made by the program
// itself.
func TestResident(t *testing.T) {
	if residentNow() == 0 {
		t.Skip("skipped: the system does not tell the memory of a process")
	}
	const size = 80 << 20
	cost := Measure(func() { mapped(t, size) })
	if cost.Resident < size*9/10 || cost.Heap > size/10 {
		t.Errorf("%d bytes of memory and %d of Go's heap, want about %d and none", cost.Resident, cost.Heap, size)
	}
}
