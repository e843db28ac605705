package uplink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// loopRig is a publication behind an emulated link in virtual time. The server reports arrivals. Tests run it in a
// bubble.
type loopRig struct {
	t           *testing.T
	u           *Uplink
	congestion  congestion.Config
	publication *Publication
	leaving     []Outgoing
	link        *netem.Link
	// delay is the delay of the way back.
	delay    time.Duration
	recorder *feedback.ArrivalRecorder
	// byStream is set if the server reports by stream.
	byStream bool
	// deaf is set if the server does not report.
	deaf bool
	back []delayed
	// number is the number of the newest frame.
	number uint32
	random *rand.Rand

	// offered counts the bytes sent. missing are the missing packets of incomplete frames, frames the complete frames,
	// waits the times that packets spent in the queue.
	offered int64
	missing map[frameKey]int
	since   uint32
	frames  []wholeFrame
	waits   []time.Duration
}

type delayed struct {
	at     time.Time
	report []byte
}

type frameKey struct {
	track  uint32
	number uint32
}

type wholeFrame struct {
	frameKey
	at      time.Time
	latency time.Duration
}

// plug is an outlet into the link.
type plug struct {
	*wire
	rig *loopRig
}

func (p *plug) Queue(h *rtp.Header, body []byte) error {
	data, err := (&rtp.Packet{Header: *h, Payload: body}).Marshal()
	if err != nil {
		p.rig.t.Fatal(err)
	}
	p.rig.offered += int64(len(data) + wireOverhead - 8)
	p.rig.link.Send(&netem.Packet{Payload: data, Size: len(data) + wireOverhead - 8}, time.Now())
	return nil
}

// newLoopRig makes a link of rate Mbit/s with a queue of 100 ms and 10 ms in each direction.
func newLoopRig(t *testing.T, rate float64, config congestion.Config, description volumetric.Publication) *loopRig {
	t.Helper()
	r := &loopRig{
		t: t, u: newRig(t), congestion: config, delay: 10 * time.Millisecond, random: rand.New(rand.NewPCG(1, 2)),
		recorder: feedback.NewArrivalRecorder(feedback.DefaultConfig().Transport, 1), missing: make(map[frameKey]int),
	}
	var err error
	if r.link, err = netem.NewLink(linkOf(rate), 1, nil); err != nil {
		t.Fatal(err)
	}
	r.publication = NewPublication(description, defaultSpread, 0)
	r.u.Number(1, false, config, time.Now())
	for track := range r.publication.lines {
		ssrc := uint32(100 + 10*track)
		q := len(description.Qualities)
		outlet := &plug{&wire{mimeType: description.Codec.MIMEType, ssrc: ssrc, retransmission: ssrc + 1}, r}
		r.u.Attach(fmt.Sprint(track), outlet, r.publication, track/q, volumetric.Quality(track%q))
	}
	return r
}

// reportByStream makes the server report by SSRC and sequence number, and not by transport-wide number.
func (r *loopRig) reportByStream() {
	r.byStream = true
	r.recorder.ReportByStream(true)
	r.u.Number(1, true, r.congestion, time.Now())
}

func linkOf(rate float64) netem.Config {
	c := netem.DefaultConfig()
	c.RateBPS, c.Delay, c.QueueDelay = int(rate*1e6), 10*time.Millisecond, 100*time.Millisecond
	return c
}

// setRate changes the link's rate, in Mbit/s.
func (r *loopRig) setRate(rate float64) {
	if err := r.link.Reconfigure(linkOf(rate), time.Now()); err != nil {
		r.t.Fatal(err)
	}
}

// run publishes 30 frames per second for a time, while tracks are wanted. sizes are the frame sizes by quality, with a
// variation of a fifth.
func (r *loopRig) run(length time.Duration, sizes ...int) {
	r.t.Helper()
	end := time.Now().Add(length)
	next := time.Now()
	for now := time.Now(); now.Before(end); now = time.Now() {
		if !now.Before(next) {
			next = next.Add(time.Second / 30)
			r.write(now, sizes)
		}
		r.step(now)
		time.Sleep(time.Millisecond)
	}
}

func (r *loopRig) write(now time.Time, sizes []int) {
	r.number++
	for tile := range r.publication.description.Tiles {
		for q, size := range sizes {
			quality := volumetric.Quality(q)
			if !r.u.Wanted(r.publication, r.publication.Track(tile, quality), now) {
				continue
			}
			size += r.random.IntN(2*size/5+1) - size/5
			write(r.t, r.u, r.publication, tile, quality, r.number, size)
		}
	}
}

// step advances everything by a millisecond.
func (r *loopRig) step(now time.Time) {
	if r.u.Estimates() {
		step(r.u, now)
	}
	r.leaving = r.u.Depart(now, r.leaving[:0])
	r.u.CountDropped()
	for i := range r.leaving {
		r.leaving[i].Write()
	}
	for _, p := range r.link.Deliver(now) {
		r.arrive(p)
	}
	for !r.deaf {
		report := r.recorder.AppendReports(nil, now)
		if len(report) == 0 {
			break
		}
		r.back = append(r.back, delayed{now.Add(r.delay), report})
	}
	for len(r.back) > 0 && !now.Before(r.back[0].at) {
		r.u.Report(r.back[0].report, now)
		r.back = r.back[1:]
	}
}

func (r *loopRig) arrive(p *netem.Packet) {
	r.waits = append(r.waits, p.Waited)
	var packet rtp.Packet
	if err := packet.Unmarshal(p.Payload); err != nil {
		r.t.Fatal(err)
	}
	if _, numbered := feedback.TransportSequence(p.Payload, 1); numbered == r.byStream && !r.deaf {
		r.t.Fatalf("a packet has a transport-wide number: %t", numbered)
	}
	r.recorder.Received(packet.SSRC, p.Payload, 1, p.ECN, p.Arrival)
	if packet.PayloadType != 96 {
		return
	}
	var d payload.Descriptor
	if _, err := d.Unmarshal(packet.Payload); err != nil {
		r.t.Fatal(err)
	}
	key := frameKey{packet.SSRC, d.Frame}
	left, known := r.missing[key]
	if !known {
		left = d.Packets()
	}
	left--
	r.missing[key] = left
	if left == 0 {
		ticks := r.publication.Timestamp(p.Arrival) - packet.Timestamp
		r.frames = append(r.frames, wholeFrame{key, p.Arrival, time.Duration(ticks) * time.Second / 90000})
	}
}

// settle resets the measurements.
func (r *loopRig) settle() {
	r.frames, r.waits, r.offered = nil, nil, 0
	r.since = r.number
}

// torn returns the number of incomplete frames, except frames in transit.
func (r *loopRig) torn() int {
	count := 0
	for key, left := range r.missing {
		if left > 0 && key.number > r.since && key.number+6 < r.number {
			count++
		}
	}
	return count
}

// latency returns a quantile of the time from capture to the last packet.
func (r *loopRig) latency(q float64) time.Duration {
	var list []time.Duration
	for _, f := range r.frames {
		list = append(list, f.latency)
	}
	return quantile(list, q)
}

func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[int(q*float64(len(list)-1))]
}

func (r *loopRig) gaveUp() int {
	return len(r.u.GaveUp())
}

// sizesOf are frames of 1, 2 and 4 Mbit/s at 30 per second: 28 Mbit/s for 4 tiles.
var sizesOf = []int{4000, 8000, 16000}

// expect checks the measurements over the time since settle: the tracks given up, the rate, and that no frame was
// incomplete or late.
func (r *loopRig) expect(what string, length time.Duration, least, most int, slowest, fastest float64) {
	r.t.Helper()
	gaveUp, rate, queue := r.gaveUp(), 8*float64(r.offered)/1e6/length.Seconds(), quantile(r.waits, 0.95)
	r.t.Logf("%s: estimate %v, %d tracks given up, %.1f Mbit/s, %d frames, latency p95 %v, queue p95 %v",
		what, r.u.Estimate(), gaveUp, rate, len(r.frames), r.latency(0.95), queue)
	if gaveUp < least || gaveUp > most || rate < slowest || rate > fastest {
		r.t.Errorf("%s: %d tracks given up, %.1f Mbit/s, want %d to %d, %g to %g", what, gaveUp, rate, least, most,
			slowest, fastest)
	}
	if torn := r.torn(); torn > 0 || queue > 50*time.Millisecond || r.latency(0.95) > 100*time.Millisecond {
		r.t.Errorf("%s: %d frames came in part, the queue was %v, frames took %v; want 0, at most 50ms, at most 100ms",
			what, torn, queue, r.latency(0.95))
	}
}

// TestUplinkFollowsTheLink publishes 28 Mbit/s over links that carry less and then more, with either form of reports.
func TestUplinkFollowsTheLink(t *testing.T) {
	t.Run("by number", func(t *testing.T) { followsTheLink(t, false) })
	t.Run("by stream", func(t *testing.T) { followsTheLink(t, true) })
}

func followsTheLink(t *testing.T, byStream bool) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoopRig(t, 14, limits(0, 0), described("body", volumetric.MIMEVolumetric, 4, 3))
		if byStream {
			r.reportByStream()
		}
		phase := func(what string, rate float64, wait time.Duration, least, most int, slowest, fastest float64) {
			t.Helper()
			r.setRate(rate)
			r.run(wait, sizesOf...)
			r.settle()
			const length = 4 * time.Second
			r.run(length, sizesOf...)
			r.expect(what, length, least, most, slowest, fastest)
		}
		phase("half", 14, time.Second, 3, 6, 9, 14)
		before := r.u.Counts().Dropped
		phase("more", 50, 8*time.Second, 0, 0, 28, 31)
		if r.u.Counts().Dropped != before {
			t.Errorf("%d frames were left out where there was room for all", r.u.Counts().Dropped-before)
		}
		phase("less", 8, 2*time.Second, 6, 7, 5, 8)
		before = r.u.Counts().Dropped
		phase("next to nothing", 2, 2*time.Second, 8, 8, 1.2, 2)
		if r.u.Counts().Dropped == before {
			t.Error("no frame was left out where the lowest qualities do not fit")
		}
		byTrack := make(map[uint32]int)
		for _, f := range r.frames {
			byTrack[f.track]++
		}
		for tile := range uint32(4) {
			if n := byTrack[100+30*tile]; n < len(r.frames)/8 {
				t.Errorf("tile %d was sent %d times of %d, want half of its share at least", tile, n, len(r.frames))
			}
		}
		phase("all again", 50, 12*time.Second, 0, 0, 28, 31)
	})
}

func TestUplinkLimitHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLoopRig(t, 100, limits(5e6, 10e6), described("body", volumetric.MIMEVolumetric, 4, 3))
		r.run(2*time.Second, sizesOf...)
		r.settle()
		r.run(3*time.Second, sizesOf...)
		r.expect("limited", 3*time.Second, 5, 7, 7, 10)
	})
}

// TestUplinkWithoutReports sends to a server that never reports arrivals.
func TestUplinkWithoutReports(t *testing.T) {
	for _, numbered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := newLoopRig(t, 100, limits(0, 0), described("body", volumetric.MIMEVolumetric, 4, 3))
			r.deaf = true
			wait := sender.UsualGrace + PlanInterval
			if !numbered {
				r.u.Number(0, false, r.congestion, time.Now())
				wait = 0
			}
			r.run(wait, sizesOf...)
			r.settle()
			r.run(2*time.Second, sizesOf...)
			r.expect("unreported", 2*time.Second, 0, 0, 27, 32)
			if r.u.Estimate() != 0 || len(r.frames) < 12*58 {
				t.Errorf("numbered %v: estimate %v, %d frames; want none, all of two seconds", numbered, r.u.Estimate(),
					len(r.frames))
			}
		})
	}
}
