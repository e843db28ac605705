package sendertest

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

const (
	// packetBytes is the size of the packets of a Loop on the wire, in bytes.
	packetBytes = 1200
	// stream is the SSRC of the packets, reporter that of the reports.
	stream, reporter = 1, 2
	clockRate        = 90_000
)

// Loop sends frames of full packets in virtual time, over a path with a delay and no queue. The receiver reports
// arrivals by RFC 8888, and each report arrives at once.
type Loop struct {
	// Options and Estimator are those of the sender. Options.Look must be set.
	Options   sender.Options
	Estimator congestion.Estimator
	Delay     time.Duration
	// Interval is the time between two frames, Packets the number of packets of a frame.
	Interval time.Duration
	Packets  int
}

// Frame has the times of a frame since the start: when all its packets were offered to the sender, and when its last
// packet left.
type Frame struct{ Offered, Left time.Duration }

// Run sends for a time, from a start, and returns the frames that have left.
func (l *Loop) Run(start time.Time, length time.Duration) []Frame {
	r := &running{Loop: l, start: start, sender: sender.New[int, struct{}](l.Options, start),
		schedule: pacing.NewSchedule(l.Options.Plan, clockRate),
		recorder: feedback.NewCongestionRecorder(feedback.DefaultConfig().Transport, reporter)}
	r.sender.Start(sender.NewByStream(), l.Estimator, start)
	r.sender.Want(congestion.Bitrate(float64(8*packetBytes*l.Packets)/l.Interval.Seconds()), start)
	for now := time.Duration(0); now < length; now = max(now, r.next()) {
		r.step(now)
	}
	return r.frames
}

// running is the state of a Loop. Packets of the pacer are the numbers of their frames.
type running struct {
	*Loop
	start    time.Time
	sender   *sender.Sender[int, struct{}]
	schedule pacing.Schedule
	flow     pacing.Flow[int]
	recorder *feedback.CongestionRecorder
	results  []feedback.PacketResult
	sent     uint16      // packets, modulo 2^16
	transit  []inTransit // in the order of arrival
	offered  int         // frames
	left     int         // packets of the frame that has begun
	frames   []Frame
}

// inTransit is a packet on the path.
type inTransit struct {
	number    uint16
	codepoint ecn.Codepoint
	arrives   time.Time
}

// next returns the time of the next event.
func (r *running) next() time.Duration {
	next := min(time.Duration(r.offered)*r.Interval, r.sender.StepDue())
	if at, waits := r.sender.Next(); waits {
		next = min(next, at)
	}
	if len(r.transit) > 0 {
		next = min(next, r.transit[0].arrives.Sub(r.start))
	}
	if at := r.recorder.Next(); !at.IsZero() {
		next = min(next, at.Sub(r.start))
	}
	return next
}

// step performs everything that is due.
func (r *running) step(now time.Duration) {
	at := r.start.Add(now)
	for ; len(r.transit) > 0 && !r.transit[0].arrives.After(at); r.transit = r.transit[1:] {
		p := &r.transit[0]
		r.recorder.Received(stream, p.number, packetBytes, p.codepoint, p.arrives)
	}
	for report := r.recorder.AppendReports(nil, at); len(report) > 0; report = r.recorder.AppendReports(nil, at) {
		r.results = r.sender.Report(report, at, at, r.results[:0])
		r.sender.Consult(at)
	}
	if time.Duration(r.offered)*r.Interval <= now {
		r.offer(now)
	}
	if due, waits := r.sender.Next(); waits && due <= now {
		r.sender.Tick(now)
		for frame, ok := r.sender.Pop(now); ok; frame, ok = r.sender.Pop(now) {
			r.leave(frame, now)
		}
		r.sender.Pad(func() bool {
			r.send(feedback.Probe, at)
			return true
		})
	}
	if r.sender.StepDue() <= now {
		r.sender.Step(at)
	}
}

// offer offers the packets of the next frame.
func (r *running) offer(now time.Duration) {
	frame := r.offered
	r.offered++
	for i := range r.Packets {
		due := r.schedule.Due(pacing.Packet{Framed: true, Frame: int64(frame), Index: i, Packets: r.Packets,
			Timestamp: uint32(now * clockRate / time.Second)}, now)
		o := pacing.Offer{Arrived: now, Due: due, Begins: i == 0, Frame: r.Packets * packetBytes}
		if r.sender.Admit(&r.flow, o, now) {
			r.leave(frame, now)
		} else {
			r.sender.Hold(&r.flow, frame, o)
		}
	}
}

// leave sends a packet of a frame.
func (r *running) leave(frame int, now time.Duration) {
	if r.left == 0 {
		r.sender.Begin(&r.flow)
	}
	r.send(feedback.Media, r.start.Add(now))
	if r.left++; r.left == r.Packets {
		r.left = 0
		r.frames = append(r.frames, Frame{time.Duration(frame) * r.Interval, now})
	}
}

func (r *running) send(kind feedback.PacketKind, at time.Time) {
	codepoint := r.sender.Stats().ECN
	r.sender.Sent(stream, r.sent, packetBytes, kind, at)
	r.sender.Spend(packetBytes)
	r.transit = append(r.transit, inTransit{r.sent, codepoint, at.Add(r.Delay)})
	r.sent++
}
