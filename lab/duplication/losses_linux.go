package duplication

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

const (
	// pathLoss is the loss of each path. pathLoss³ = 0.8 % of the packets are lost on all three.
	pathLoss = 0.2
	// lossyCount is the number of datagrams. The standard error of the loss is √(0.008·0.992/400,000) = 0.014 %, a
	// seventh of the target's tolerance.
	lossyCount = 400_000
	// lossyRate is the number of datagrams per second, whose copies are half of the packets that an emulated network
	// forwards on a machine with two cores.
	lossyRate = 13_000
)

// residual measures the loss that is left when each of three paths loses a fifth of its packets.
func residual(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	count := lossyCount
	if b.short {
		count = 4000
	}
	config := netem.DefaultConfig()
	config.Loss = pathLoss
	seed := uint64(time.Now().UnixNano())
	b.progress.Say("losses with the seed %d", seed)
	n, err := newEmulated(ctx, topology.Direction{Config: config}, seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	pair, err := b.startEdges(ctx, n, onAll)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	datagrams := traffic.Kind{Segments: 1, Sockets: 1}
	var got traffic.Result
	var before counts
	if err := whileCopying(ctx, pair, func() (err error) {
		if before, err = countsOf(ctx, pair); err != nil {
			return err
		}
		o := traffic.Options{Size: 200, Rate: lossyRate, Grace: time.Second}
		got, err = datagrams.Transfer(ctx, n.ends(0), o, count, quiet)
		return err
	}); err != nil {
		return nil, err
	}
	after, err := countsOf(ctx, pair)
	if err != nil {
		return nil, err
	}
	lost := 1 - float64(got.Arrived)/float64(got.Sent)
	lines = []claim.Line{
		claim.Between(fmt.Sprintf("lost of %d datagrams; 0.8 %% is the product of the paths' losses", got.Sent),
			100*lost, "%", 0.7, 0.9),
		claim.Information("standard error of the share that was lost",
			100*math.Sqrt(lost*(1-lost)/float64(got.Sent)), "%"),
		claim.Exactly("datagrams that arrived twice", int64(got.Repeated), "", 0),
	}
	for i := range paths {
		sent, received := after.sent[i]-before.sent[i], after.received[i]-before.received[i]
		lines = append(lines, claim.Information(fmt.Sprintf("lost of the copies on path %d", i+1),
			100*(1-float64(received)/float64(sent)), "%"))
	}
	return lines, nil
}

// counts are the counters of a pair, for packets from the first host to the second.
type counts struct {
	// selected is the packets that the first edge copied, and plain those that either edge sent without a header.
	selected, plain uint64
	// sent and received are the copies on each path.
	sent, received [paths]uint64
	// first and repeated are the copies of all paths, outside those that the window could not judge, and dropped those
	// that were dropped for another reason than a repeat.
	first, repeated, outside, dropped uint64
}

// countsOf reads the counters.
func countsOf(ctx context.Context, p *edgepair.Pair) (c counts, err error) {
	near, err := p.Status(ctx, hosts[0])
	if err != nil {
		return c, err
	}
	far, err := p.Status(ctx, hosts[1])
	if err != nil {
		return c, err
	}
	c.selected = near.Sent.Packets
	c.plain = near.Sent.Plain + near.Sent.Refused + far.Sent.Plain + far.Sent.Refused
	for i := range paths {
		r := &far.Paths[i].Received
		c.sent[i], c.received[i] = near.Paths[i].Sent.Packets, r.Packets
		c.first += r.First
		c.repeated += r.Repeated
		c.outside += r.Outside
		c.dropped += r.Malformed + r.Refused + r.Congested
	}
	return c, nil
}

// copyingAttempts bounds the runs of a measurement.
const copyingAttempts = 3

// errTooBusy is the error of a measurement whose attempts have all failed.
var errTooBusy = fmt.Errorf("%w: packets left without copies in each of %d attempts, expected one without such "+
	"packets: this machine is too busy", lab.ErrUnable, copyingAttempts)

// whileCopying calls measure, again if packets left without copies meanwhile: on a busy machine, an edge may receive
// nothing from the other one for a second, and then sends plain packets.
func whileCopying(ctx context.Context, p *edgepair.Pair, measure func() error) error {
	for range copyingAttempts {
		for _, host := range hosts {
			if err := p.Await(ctx, host, "receives from the other edge",
				func(s *daemon.Status) bool { return s.PeerAlive }); err != nil {
				return err
			}
		}
		before, err := countsOf(ctx, p)
		if err != nil {
			return err
		}
		if err := measure(); err != nil {
			return err
		}
		after, err := countsOf(ctx, p)
		if err != nil || after.plain == before.plain {
			return err
		}
	}
	return errTooBusy
}

// total is the sum over all paths.
func total(perPath [paths]uint64) (sum uint64) {
	for _, n := range perPath {
		sum += n
	}
	return sum
}
