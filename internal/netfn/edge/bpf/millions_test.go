package bpf

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/traffic"
)

// TestPairMillions sends more than 10,000,000 packets over three paths: each is first once, and all other copies are
// repeats. The 16 low bits of the numbers of the largest flow wrap more than 100 times.
func TestPairMillions(t *testing.T) {
	long.Test(t)
	const million = 1_000_000
	p := newPair(t, pairing{outer: []uint8{4, 6, 4}, format: FormatEncapsulated})
	p.addSegmenter()
	want := uint64(0)
	for _, part := range []struct {
		name     string
		ipv6     bool
		segments int
		discover int
		count    int
	}{
		{"segments", false, 16, -1, 6.8 * million},
		{"segments with identification 0", false, 16, unix.IP_PMTUDISC_DO, 2 * million},
		{"segments over IPv6", true, 16, -1, 0.5 * million},
		{"identification 0", false, 1, unix.IP_PMTUDISC_PROBE, 0.2 * million},
		{"connected", false, 1, -1, 0.2 * million},
		{"IPv6", true, 1, -1, 0.2 * million},
	} {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		got, err := p.newFlow(part.ipv6, part.segments, part.discover).Transfer(ctx, part.count, 20*time.Millisecond)
		cancel()
		if err != nil || got != (traffic.Result{Sent: part.count, Arrived: part.count}) {
			t.Errorf("%s: %+v, %v, want each once", part.name, got, err)
		}
		want += uint64(part.count)
		t.Logf("%s: %d packets in %v", part.name, part.count, time.Since(began).Round(time.Millisecond))
	}
	p.checkCounts(want)
	stream := p.stream(false, 256<<20)
	c := p.counts()
	t.Logf("TCP: %.2f Gbit/s, %d segments, %d retransmitted", 8*256<<20/stream.Elapsed.Seconds()/1e9, stream.Segments,
		stream.Retransmitted)
	if c.Outside+c.Malformed+c.Refused+c.Congested > 0 || c.First < 10*million || c.First+c.Repeated != c.Packets {
		t.Errorf("the receiver counted %+v", c)
	}
}
