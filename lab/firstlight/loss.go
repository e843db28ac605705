package firstlight

import (
	"context"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/forward/counters"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/testbed"
)

// Loss sends frames from a publisher to a receiver whose access links both lose packets at random, in both directions,
// and counts the frames that are complete by the deadline.
type Loss struct {
	Progress lab.Progress
	// Duration is the time over which frames are counted at each loss rate. Settle is the time for which frames are
	// sent before; it is longer than the measurement of round-trip times.
	Duration, Settle time.Duration

	FrameBytes int
	FrameRate  float64
	Deadline   time.Duration
	// RTT is the round-trip time of each access link.
	RTT   time.Duration
	Cases []LossCase
	Seed  uint64
}

// LossCase is one loss rate and the share of frames that must be decodable.
type LossCase struct{ Loss, Decodable float64 }

// NewLoss returns the check of the claim. Two minutes are 3,600 frames, of which three may be lost at 99.9 %, so a
// single frame does not decide the result.
func NewLoss(progress lab.Progress) *Loss {
	return &Loss{
		Progress: progress, Duration: 2 * time.Minute, Settle: 3 * time.Second, FrameBytes: 150_000, FrameRate: 30,
		Deadline: 150 * time.Millisecond, RTT: 20 * time.Millisecond,
		Cases: []LossCase{{0.01, 0.999}, {0.05, 0.995}}, Seed: 1,
	}
}

// Name implements lab.Check.
func (l *Loss) Name() string {
	return fmt.Sprintf("loss on both links, both directions: %g kB frames at %g fps, RTT %v per link, deadline %v",
		float64(l.FrameBytes)/1000, l.FrameRate, l.RTT, l.Deadline)
}

// Run implements lab.Check.
func (l *Loss) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	for _, c := range l.Cases {
		l.Progress.Say("loss %g %% for %v", 100*c.Loss, l.Duration)
		outcome, err := l.measure(ctx, c)
		if err != nil {
			return lines, fmt.Errorf("loss %g %%: %w", 100*c.Loss, err)
		}
		lines = append(lines, outcome.lines(c)...)
	}
	return lines, nil
}

// lossOutcome holds the counts at one loss rate.
type lossOutcome struct {
	// published is the number of frames sent; arrived holds the complete frames. The client delivers each frame once.
	published int64
	arrived   []testbed.Arrival
	// client and server have the counters of the client and the server.
	client client.TileStats
	server counters.Stats
}

// measure counts frames at one loss rate.
func (l *Loss) measure(ctx context.Context, c LossCase) (*lossOutcome, error) {
	access := netem.DefaultConfig()
	access.Delay, access.Loss = l.RTT/2, c.Loss
	conference, err := testbed.NewEmulation(settings(), l.Seed)
	if err != nil {
		return nil, err
	}
	defer conference.Close()
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: l.FrameBytes, Rate: l.FrameRate}
	publisher, _, err := conference.JoinOver(ctx, access, testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{load}, MinUplink: testbed.Everything, Seed: l.Seed})
	if err != nil {
		return nil, err
	}
	receiver, _, err := conference.JoinOver(ctx, access, testbed.Part{Room: "room", Identity: "bob", Receive: true,
		Deadline: l.Deadline, Record: true})
	if err != nil {
		return nil, err
	}
	tile := tileOf("alice", "body", 0)
	if err := awaitFlow(ctx, receiver, []tileRef{tile}, 1); err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, l.Settle); err != nil {
		return nil, err
	}
	first, before, serverBefore := publisher.Published(load.Name), statsOf(receiver, tile), conference.Server.Stats()
	if err := lab.Pause(ctx, l.Duration); err != nil {
		return nil, err
	}
	publisher.StopPublishing()
	end := publisher.Published(load.Name)
	// After this time every frame is complete or given up.
	if err := lab.Pause(ctx, 2*l.Deadline+time.Second); err != nil {
		return nil, err
	}
	outcome := &lossOutcome{
		published: end - first,
		client:    difference(statsOf(receiver, tile), before),
		server:    serverDifference(conference.Server.Stats(), serverBefore),
	}
	for _, a := range receiver.Arrivals() {
		if a.Number >= first {
			outcome.arrived = append(outcome.arrived, a)
		}
	}
	return outcome, receiver.Failure()
}

// lines returns the figures of one loss rate.
func (o *lossOutcome) lines(c LossCase) []claim.Line {
	lines := append(o.frameLines(c), o.repairLines()...)
	for i := range lines {
		lines[i].Name = fmt.Sprintf("%g %% loss: %s", 100*c.Loss, lines[i].Name)
	}
	return lines
}

// frameLines returns the figures of frames.
func (o *lossOutcome) frameLines(c LossCase) []claim.Line {
	latency := latencies(o.arrived)
	ms := lab.Milliseconds
	return []claim.Line{
		claim.AtLeast("frames decodable", 100*float64(len(o.arrived))/float64(max(o.published, 1)), "%",
			100*c.Decodable),
		claim.Information("frames published", float64(o.published), ""),
		claim.Information("frames received complete", float64(len(o.arrived)), ""),
		claim.Information("frames undecodable by the client's count", float64(o.client.Undecodable), ""),
		claim.Information("frames missing by the client's count", float64(o.client.Missing), ""),
		claim.Information("frames dropped by the server", float64(o.client.DroppedByServer), ""),
		claim.Information("latency p50", ms(latency.Percentile(0.5)), "ms"),
		claim.Information("latency p99", ms(latency.Percentile(0.99)), "ms"),
		claim.Information("latency max", ms(latency.Max()), "ms"),
	}
}

// repairLines returns the figures of packets. The receiver misses the packets lost on its own link and, until they are
// repaired, the packets lost on the publisher's link.
func (o *lossOutcome) repairLines() []claim.Line {
	perMiss := func(requests, missed uint64) float64 { return float64(requests) / float64(max(missed, 1)) }
	nacked := &o.server.NACKed
	missed := o.server.Recovered + o.server.Delayed + o.server.Lost
	return []claim.Line{
		claim.Information("server: packets missed", float64(missed), ""),
		claim.Information("server: requests per packet missed", perMiss(o.server.Requested, missed), ""),
		claim.Information("server: packets given up", float64(o.server.Lost), ""),
		claim.Information("receiver: packets missed", float64(o.client.Lost), ""),
		claim.Information("receiver: requests per packet missed", perMiss(o.client.Requests, o.client.Lost), ""),
		claim.Information("receiver: packets given up", float64(o.client.Lost-o.client.Recovered-o.client.Spared), ""),
		claim.Information("receiver's requests answered", float64(nacked.Answered), ""),
		claim.Information("receiver's requests for packets missing at the server", float64(nacked.Owed), ""),
		claim.Information("receiver's requests for packets already retransmitted", float64(nacked.Suppressed), ""),
		claim.Information("receiver's requests that could not be answered",
			float64(nacked.Unknown+nacked.Expired+nacked.Limited+nacked.Refused), ""),
		claim.Information("retransmissions to the receiver", 100*perMiss(o.server.Sent.Retransmission.Packets,
			o.server.Sent.Media.Packets), "% of packets"),
	}
}
