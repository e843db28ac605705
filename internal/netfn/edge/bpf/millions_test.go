package bpf

import (
	"context"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/race"
	"github.com/volsfu/volsfu/test/traffic"
)

// TestPairMillions sends more than 10,000,000 packets over three paths: each is first once, and all other copies are
// repeats. The 16 low bits of the numbers of the largest flow wrap 150 times. vollab check duplication sends the same
// through edges, with and without delays.
func TestPairMillions(t *testing.T) {
	long.Test(t)
	if race.Enabled {
		t.Skip("skipped: the kernel does most of the work: runs without the race detector")
	}
	p := newPair(t, pairing{outer: []uint8{4, 6, 4}, format: FormatEncapsulated})
	p.addSegmenter()
	ends := &traffic.Ends{From: p.a, To: p.b, Source: innerFrom4, Destination: innerTo4, Source6: innerFrom6,
		Destination6: innerTo6}
	want := uint64(0)
	for i := range traffic.Kinds {
		k := &traffic.Kinds[i]
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		got, err := k.Transfer(ctx, ends, traffic.Options{Size: 1000, InFlight: inFlight}, k.Count, 20*time.Millisecond)
		cancel()
		if err != nil || got != (traffic.Result{Sent: k.Count, Arrived: k.Count}) {
			t.Errorf("%s: %+v, %v, want each once", k.Name, got, err)
		}
		want += uint64(k.Count)
		t.Logf("%s: %d packets in %v", k.Name, k.Count, time.Since(began).Round(time.Millisecond))
	}
	p.checkCounts(want)
	stream := p.stream(false, 256<<20)
	c := p.counts()
	t.Logf("TCP: %.2f Gbit/s, %d segments, %d retransmitted", 8*256<<20/stream.Elapsed.Seconds()/1e9, stream.Segments,
		stream.Retransmitted)
	if c.Outside+c.Malformed+c.Refused+c.Congested > 0 || c.First < 10_000_000 || c.First+c.Repeated != c.Packets {
		t.Errorf("the receiver counted %+v", c)
	}
}
