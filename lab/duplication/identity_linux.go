package duplication

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

// setting is a network for the packets of claim 1.
type setting struct {
	name string
	open func(context.Context) (*routable, error)
	// options have the size and the number of datagrams in flight.
	options traffic.Options
	// share divides the number of datagrams of each kind, and of bytes of the streams.
	share int
	// stream is the number of bytes over TCP and over QUIC.
	stream int
}

// delayed delays each packet on each path by a time of its own, from 10 to 170 ms: packets overtake each other on each
// path, and a copy is up to 160 ms later than another. Datagrams in flight fill the paths, and at most half of the
// queue of a device of package topology, 8,192 packets.
var delayed = setting{
	name: "90 ± 80 ms",
	open: func(ctx context.Context) (*routable, error) {
		c := netem.DefaultConfig()
		c.Delay, c.Jitter, c.JitterDistribution, c.JitterReorders = 90*time.Millisecond, 80*time.Millisecond,
			netem.JitterUniform, true
		return newEmulated(ctx, topology.Direction{Config: c}, 1)
	},
	options: traffic.Options{Size: 200, InFlight: 4096},
	share:   1,
	// TCP and QUIC take packets that others overtake for lost, and are slow.
	stream: 1 << 20,
}

// direct joins the hosts by veth pairs. They carry bursts with UDP_SEGMENT as super-packets, which are numbered as
// such; an emulated network needs them cut. A veth pair with XDP queues 256 packets (VETH_RING_SIZE).
var direct = setting{
	name:    "direct",
	open:    func(ctx context.Context) (*routable, error) { return newWires(ctx, paths, 1) },
	options: traffic.Options{Size: 1000, InFlight: 128},
	share:   5,
	stream:  64 << 20,
}

// shortShare divides all numbers in tests.
const shortShare = 2000

// quiet is the time for which late repeats are awaited: more than the difference between two paths.
const quiet = 200 * time.Millisecond

// identity sends all kinds of traffic over three paths, and compares the arrivals with the datagrams sent.
func identity(ctx context.Context, b *bench) ([]claim.Line, error) {
	var lines []claim.Line
	for _, s := range []setting{delayed, direct} {
		if b.short {
			s.share, s.stream = shortShare, 1<<18
		}
		more, err := s.run(ctx, b)
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	more, err := published(ctx, b)
	return append(lines, more...), err
}

// run measures in one network.
func (s *setting) run(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	n, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	pair, err := b.startEdges(ctx, n, onAll)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	var datagrams traffic.Result
	longest := 0 // the number of datagrams that arrived in a flow
	for i := range traffic.Kinds {
		k := &traffic.Kinds[i]
		began := time.Now()
		got, err := s.transfer(ctx, k, n.ends(0), s.options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.Name, err)
		}
		b.progress.Say("  %s, %s: %d of %d datagrams, %d repeats, %v", s.name, k.Name, got.Arrived, got.Sent,
			got.Repeated, time.Since(began).Round(time.Millisecond))
		longest = max(longest, got.Arrived/k.Sockets)
		datagrams.Sent += got.Sent
		datagrams.Arrived += got.Arrived
		datagrams.Repeated += got.Repeated
	}
	lines, failed := s.streams(ctx, b, n)
	c, err := settled(ctx, pair)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return append(s.judge(datagrams, longest, &c), lines...), failed
}

// transfer sends the setting's share of a kind. The time limit allows 5,000 datagrams per second.
func (s *setting) transfer(ctx context.Context, k *traffic.Kind, e *traffic.Ends, o traffic.Options) (traffic.Result,
	error) {
	count := k.Count / s.share
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second+time.Duration(count)*(time.Second/5000))
	defer cancel()
	return k.Transfer(ctx, e, o, count, quiet)
}

// streamLimit bounds the time of a stream.
const streamLimit = 3 * time.Minute

// streams sends over TCP and over QUIC. Both fail if other bytes arrive than were sent.
func (s *setting) streams(ctx context.Context, b *bench, n *routable) ([]claim.Line, error) {
	e := n.ends(0)
	tcp := s.name + ": TCP with BBR, segments sent"
	var lines []claim.Line
	got, err := traffic.Stream(e.From, e.To, e.Source, e.Destination, s.stream, streamLimit)
	switch {
	case errors.Is(err, traffic.ErrNoBBR):
		lines = append(lines, claim.Skip(tcp, err.Error()))
	case err != nil:
		return lines, fmt.Errorf("TCP: %w", err)
	default:
		lines = append(lines, claim.Information(tcp, float64(got.Segments), ""),
			claim.Information(s.name+": of these sent again", float64(got.Retransmitted), ""))
		b.progress.Say("  %s, TCP: %d bytes, %v", s.name, s.stream, got.Elapsed.Round(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, streamLimit)
	defer cancel()
	began := time.Now()
	if err := sendQUIC(ctx, e, s.stream); err != nil {
		return lines, fmt.Errorf("QUIC: %w", err)
	}
	b.progress.Say("  %s, QUIC: %d bytes, %v", s.name, s.stream, time.Since(began).Round(time.Millisecond))
	return append(lines, claim.Information(s.name+": bytes over QUIC", float64(s.stream), "")), nil
}

// settling is the time limit for the last copies to reach the receiver.
const settling = 2 * time.Second

// settled returns the counters when all copies have arrived, or after settling.
func settled(ctx context.Context, p *edgepair.Pair) (counts, error) {
	for deadline := time.Now().Add(settling); ; {
		c, err := countsOf(ctx, p)
		if err != nil || total(c.received) == total(c.sent) || time.Now().After(deadline) {
			return c, err
		}
		if err := lab.Pause(ctx, 20*time.Millisecond); err != nil {
			return c, err
		}
	}
}

// judge compares the datagrams with the counters. longest is the number of datagrams that arrived in the longest flow.
func (s *setting) judge(datagrams traffic.Result, longest int, c *counts) []claim.Line {
	name := func(text string) string { return s.name + ": " + text }
	lines := []claim.Line{}
	if s.share == 1 {
		// The claim.
		lines = append(lines, claim.AtLeast(name("packets over three paths"), float64(c.selected), "", 10_000_000),
			claim.AtLeast(name("wraps of 16 bits by one number"), float64(longest)/(1<<16), "", 150))
	} else {
		lines = append(lines, claim.Information(name("packets over three paths"), float64(c.selected), ""))
	}
	return append(lines,
		claim.Exactly(name("packets of which no copy passed"), int64(c.selected)-int64(c.first), "", 0),
		claim.Exactly(name("datagrams that did not arrive"), int64(datagrams.Sent-datagrams.Arrived), "", 0),
		claim.Exactly(name("datagrams that arrived twice"), int64(datagrams.Repeated), "", 0),
		claim.Exactly(name("copies outside the window"), int64(c.outside), "", 0),
		claim.Exactly(name("copies dropped as malformed or refused"), int64(c.dropped), "", 0),
		claim.Information(name("packets without copies, while an edge received nothing"), float64(c.plain), ""),
		claim.Information(name("copies lost on the way"), float64(total(c.sent))-float64(total(c.received)), ""))
}
