package congestion

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/test/race"
)

const (
	// modelTick is the time step of the model.
	modelTick = 500 * time.Microsecond
	// segmentBytes is the maximum payload of an SCTP packet, segmentOverhead its overhead: IP, UDP, DTLS and SCTP.
	segmentBytes    = 1172
	segmentOverhead = 20 + 8 + 29 + 12 + 16
	// leastWindow is the minimum window of the transport, as in data channels.
	leastWindow = 128 << 10
	// packetBytes is the payload of a media packet.
	packetBytes = 1160
	modelTiles  = 4
	// delayedAck is the delay of an acknowledgement that waits for a second packet.
	delayedAck = 200 * time.Millisecond
	// A packet is lost when this number of later packets has been acknowledged.
	reordered = 3
)

// segment is a packet of the transport.
type segment struct {
	bytes    int
	frame    *modelFrame // nil for padding
	order    uint64      // of its last transmission
	received bool
	acked    bool
}

// modelPart is a packet as reported to the estimator.
type modelPart struct {
	result feedback.PacketResult
	came   time.Duration
	held   time.Duration
	end    int // in bytes handed to the transport
}

// modelFrame is a tile frame in transit.
type modelFrame struct {
	tile, bytes int
	parts       []modelPart
	missing     int // segments
	whole       time.Duration
}

// plannedPacket is a media packet with its departure time from the pacer.
type plannedPacket struct {
	at    time.Duration
	frame *modelFrame
	size  int
	last  bool
}

type acknowledgement struct {
	at       time.Duration
	segments []*segment
}

// reliableFlow is a sender of frames over an SCTP-like transport and a link, its receiver, and an estimator. Frames are
// assembled and handed over whole, or dropped, as a chunk sender does. The transport retransmits lost segments.
// Acknowledgements are sent for every second packet, or late, and are delayed on their way.
type reliableFlow struct {
	t         *testing.T
	estimator *reliable
	link      *netem.Link
	config    netem.Config
	random    *rand.Rand
	// jitter delays each acknowledgement; every second or third second a stall delays all for that time; busy delays
	// all.
	jitter, stall, busy time.Duration
	stalls              time.Duration // end of the last stall
	share               float64       // share of the estimate that is sent
	most                float64       // maximum media rate in bit/s, 0 for no limit
	stopped             bool          // the receiver acknowledges nothing

	captured, frame time.Duration
	planned         []plannedPacket
	waiting         [modelTiles]*modelFrame
	first           int
	cluster         ProbeCluster
	probing         bool
	probeEnds       time.Duration
	credit          float64
	probeBytes      int
	probePackets    int

	parts              []modelPart // handed over and not acknowledged
	left               []feedback.PacketResult
	handed, acked      int
	sequence           int64
	reported, progress time.Duration // time of the last report and of the last acknowledgement

	pending, flight []*segment
	flying          int     // bytes in flight
	window, slow    float64 // window of the transport in bytes, and slow-start threshold
	recovery        uint64  // losses of segments sent before belong to the last reduction
	order, newest   uint64
	inNetwork       map[uint64]*segment

	fresh    []*segment // received and not acknowledged
	ackDue   time.Duration
	lastAck  time.Duration
	acks     []acknowledgement
	expected []*segment // in the order of first transmission, from the first missing one

	media     int // bytes of complete frames
	frames    int // captured frames
	latencies []sample
	waited    []sample
	estimates []estimate
}

// newReliableFlow returns a flow over a link of the given bit/s with a queue of 200 ms.
func newReliableFlow(t *testing.T, rate float64, trip time.Duration, loss float64, seed uint64) *reliableFlow {
	t.Helper()
	race.SkipSequential(t)
	cfg := netem.Config{Delay: trip / 2, RateBPS: int(rate), QueueBytes: int(rate / 8 * 0.2), Loss: loss}
	link, err := netem.NewLink(cfg, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &reliableFlow{
		t: t, estimator: newReliable(DefaultConfig(), start), link: link, config: cfg,
		random: rand.New(rand.NewPCG(seed, 2)), share: 1,
		window: leastWindow, slow: math.Inf(1), jitter: 20 * time.Millisecond, stall: 100 * time.Millisecond,
		inNetwork: make(map[uint64]*segment),
	}
}

// narrow changes the rate of the link and keeps its queue.
func (f *reliableFlow) narrow(now time.Duration, rate float64) {
	f.config.RateBPS = int(rate)
	if err := f.link.Reconfigure(f.config, start.Add(now)); err != nil {
		f.t.Fatal(err)
	}
}

// run advances the time to until. at is called every 10 ms.
func (f *reliableFlow) run(until time.Duration, at func(now time.Duration)) {
	for now := time.Duration(0); now < until; now += modelTick {
		if now%(10*time.Millisecond) == 0 {
			if at != nil {
				at(now)
			}
			f.estimates = append(f.estimates, estimate{now, float64(f.estimator.Estimate())})
		}
		f.arrive(now)
		f.acknowledge(now)
		f.capture(now)
		f.pace(now)
		if due := f.estimator.Next(); !due.IsZero() && !due.After(start.Add(now)) {
			f.estimator.Step(start.Add(now))
		}
		f.probe(now)
		f.transmit(now)
	}
}

// capture makes the frames of all tiles, whose packets leave within 0.4 of the interval.
func (f *reliableFlow) capture(now time.Duration) {
	if now < f.frame {
		return
	}
	f.captured += frameInterval
	f.frame = f.captured + time.Duration(f.random.Int64N(int64(captureJitter)))
	rate := f.share * float64(f.estimator.Estimate())
	if f.most > 0 {
		rate = min(rate, f.most)
	}
	for tile := range modelTiles {
		f.frames++
		wire := rate / 8 * frameInterval.Seconds() / modelTiles * (0.8 + 0.4*f.random.Float64())
		packets := max(1, int(math.Ceil(wire/(packetBytes+PacketOverhead))))
		frame := &modelFrame{tile: tile, bytes: max(int(wire)-packets*PacketOverhead, 1)}
		rest := frame.bytes
		for i := range packets {
			size := min(rest, packetBytes)
			rest -= size
			at := now + time.Duration(float64(i+1)/float64(packets)*frameSpread*float64(frameInterval))
			f.planned = append(f.planned, plannedPacket{at, frame, size, i == packets-1})
		}
	}
	slices.SortStableFunc(f.planned, func(a, b plannedPacket) int { return int(a.at - b.at) })
}

// pace sends the media packets that are due, unless a probe is active.
func (f *reliableFlow) pace(now time.Duration) {
	for !f.probing && len(f.planned) > 0 && f.planned[0].at <= now {
		f.leave(now, 0)
	}
}

// leave sends the next media packet and returns its size on the wire.
func (f *reliableFlow) leave(now time.Duration, probe int) int {
	p := f.planned[0]
	f.planned = f.planned[1:]
	part := f.sent(now, p.size, probe)
	p.frame.parts = append(p.frame.parts, part)
	if p.last {
		p.frame.whole = now
		if before := f.waiting[p.frame.tile]; before != nil {
			f.leaveOut(before.parts...)
		}
		f.waiting[p.frame.tile] = p.frame
		f.serve(now, p.frame.tile)
	}
	return part.result.Size
}

// sent reports a packet to the estimator.
func (f *reliableFlow) sent(now time.Duration, size, probe int) modelPart {
	f.sequence++
	f.estimator.Sent(start.Add(now), size+PacketOverhead)
	return modelPart{result: feedback.PacketResult{Sequence: f.sequence, Size: size + PacketOverhead,
		Sent: start.Add(now), Probe: probe}, came: now}
}

func (f *reliableFlow) leaveOut(parts ...modelPart) {
	for _, p := range parts {
		f.left = append(f.left, p.result)
	}
}

func (f *reliableFlow) room() bool { return f.handed-f.acked <= f.estimator.Stats().Backlog }

// serve hands over the waiting frame if there is room.
func (f *reliableFlow) serve(now time.Duration, tile int) {
	frame := f.waiting[tile]
	if frame == nil || !f.room() {
		return
	}
	f.waiting[tile] = nil
	for _, p := range frame.parts {
		p.held = now - p.came
		f.handOver(p)
	}
	for rest := frame.bytes; rest > 0; rest -= segmentBytes {
		frame.missing++
		f.pending = append(f.pending, &segment{bytes: min(rest, segmentBytes), frame: frame})
	}
}

func (f *reliableFlow) handOver(p modelPart) {
	f.handed += p.result.Size - PacketOverhead
	p.end = f.handed
	f.parts = append(f.parts, p)
}

// probe sends the packets of a probe: media before its due time, then padding.
func (f *reliableFlow) probe(now time.Duration) {
	if !f.probing {
		if f.cluster, f.probing = f.estimator.Probe(start.Add(now)); !f.probing {
			return
		}
		f.credit, f.probeBytes, f.probePackets, f.probeEnds = 0, 0, 0, now+2*f.cluster.Duration+5*time.Millisecond
	}
	f.credit += float64(f.cluster.Rate) / 8 * modelTick.Seconds()
	for f.credit > 0 {
		size := 0
		if len(f.planned) > 0 {
			size = f.leave(now, f.cluster.ID)
		} else {
			p := f.sent(now, packetBytes, f.cluster.ID)
			size = p.result.Size
			if f.room() {
				f.handOver(p)
				f.pending = append(f.pending, &segment{bytes: packetBytes})
			} else {
				f.leaveOut(p)
			}
		}
		f.credit -= float64(size)
		f.probeBytes += size
		f.probePackets++
		if f.probeBytes >= f.cluster.MinBytes && f.probePackets >= f.cluster.MinPackets {
			f.probing = false
			return
		}
	}
	f.probing = now < f.probeEnds
}
