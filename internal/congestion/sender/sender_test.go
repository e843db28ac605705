package sender

import (
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
)

var start = time.Unix(1_000_000, 0)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// told is an estimator that records its input and returns values set by the test.
type told struct {
	t       *testing.T
	last    time.Time
	sent    []int
	results []feedback.PacketResult
	steps   int
	settled int
	want    congestion.Bitrate
	limits  congestion.Limits
	next    time.Time
	stats   congestion.Stats
	probes  []congestion.ProbeCluster
	moved   congestion.Bitrate
}

func (e *told) passes(now time.Time) {
	e.t.Helper()
	if now.Before(e.last) {
		e.t.Errorf("time goes back by %v", e.last.Sub(now))
	}
	e.last = now
}

func (e *told) Sent(now time.Time, size int) {
	e.passes(now)
	e.sent = append(e.sent, size)
}

func (e *told) Report(now time.Time, results []feedback.PacketResult) {
	e.passes(now)
	e.results = append(e.results, results...)
}

func (e *told) Step(now time.Time) {
	e.passes(now)
	e.steps++
}

func (e *told) Probe(now time.Time) (c congestion.ProbeCluster, ok bool) {
	e.passes(now)
	if len(e.probes) == 0 {
		return c, false
	}
	c, e.probes = e.probes[0], e.probes[1:]
	return c, true
}

func (e *told) Settle(now time.Time) {
	e.passes(now)
	e.settled++
}

func (e *told) Move(now time.Time, rate congestion.Bitrate) {
	e.passes(now)
	e.moved = rate
}

func (e *told) Want(now time.Time, rate congestion.Bitrate) {
	e.passes(now)
	e.want = rate
}

func (e *told) SetLimits(now time.Time, limits congestion.Limits) {
	e.passes(now)
	e.limits = limits
}

func (e *told) Next() time.Time              { return e.next }
func (e *told) Estimate() congestion.Bitrate { return e.stats.Estimate }
func (e *told) Stats() congestion.Stats      { return e.stats }

// started is a sender with an estimator of type told.
func started(t *testing.T, options Options) (*Sender[int, int], *told) {
	t.Helper()
	var err error
	if options.Plan, err = pacing.Default.Plan(); err != nil {
		t.Fatal(err)
	}
	s := New[int, int](options, start)
	e := &told{t: t, last: start, stats: congestion.Stats{Estimate: 8e6, DelayBased: 8e6}}
	s.Start(NewNumbered(1), e, start)
	return s, e
}

// received returns the results of packets that left and arrived.
func received(sent time.Time, numbers ...int64) (results []feedback.PacketResult) {
	for _, number := range numbers {
		results = append(results, feedback.PacketResult{Sequence: number, Size: 1200, Sent: sent, Received: true})
	}
	return results
}

// TestRunsAreToldAsOne: packets that leave at one time are passed to the estimator together, up to its limit.
func TestRunsAreToldAsOne(t *testing.T) {
	s, e := started(t, Options{})
	for range 100 {
		s.Sent(1, 1, 1000, feedback.Media, at(1))
	}
	s.Sent(1, 1, 1000, feedback.Media, at(2))
	s.Consult(at(2))
	total := 0
	for _, size := range e.sent {
		if total += size; size > 65535 {
			t.Errorf("%d bytes are reported as one packet", size)
		}
	}
	if len(e.sent) != 3 || total != 101_000 {
		t.Errorf("reported %v, expected 100 packets in 2 parts and one", e.sent)
	}
}

// TestAudioBeginsNothing: the estimator sees packets from the first video packet on.
func TestAudioBeginsNothing(t *testing.T) {
	s, e := started(t, Options{})
	first := s.Sent(1, 1, 100, feedback.Audio, at(1))
	s.Consult(at(1))
	if len(e.sent) > 0 {
		t.Errorf("reported %v", e.sent)
	}
	second := s.Sent(2, 1, 1000, feedback.Media, at(2))
	s.Sent(1, 2, 100, feedback.Audio, at(2))
	s.Consult(at(2))
	if len(e.sent) != 1 || e.sent[0] != 1100 || second != first+1 {
		t.Errorf("reported %v, of packets %d and %d", e.sent, first, second)
	}
}

// TestTimeNeverGoesBack processes a report that arrived after the sender read the clock, and packets that leave then.
func TestTimeNeverGoesBack(t *testing.T) {
	s, e := started(t, Options{})
	number := s.Sent(1, 1, 1000, feedback.Media, at(10))
	s.Learn(received(at(10), number), at(30), at(29))
	s.Sent(1, 2, 1000, feedback.Media, at(29))
	s.Want(5e6, at(29))
	s.SetLimits(congestion.Limits{Max: 7e6}, at(29))
	s.Step(at(29))
	if e.last != at(30) || e.want != 5e6 || e.limits.Max != 7e6 || e.steps != 1 || len(e.sent) != 2 {
		t.Errorf("reported at %v %v, %v, %v, and stepped %d times",
			e.last.Sub(start), e.sent, e.want, e.limits, e.steps)
	}
	if trip := s.LongestTrip(); trip != 20*time.Millisecond {
		t.Errorf("the longest trip is %v, expected 20 ms", trip)
	}
}

// TestProbes marks the packets of a probe in reports, and requests the next probe when the first is complete.
func TestProbes(t *testing.T) {
	s, e := started(t, Options{})
	before := s.Sent(1, 1, 1200, feedback.Media, at(0))
	e.probes = []congestion.ProbeCluster{
		{ID: 5, Rate: 10e6, Duration: 15 * time.Millisecond, MinBytes: 2400, MinPackets: 2},
		{ID: 6, Rate: 20e6, Duration: 15 * time.Millisecond, MinBytes: 2400, MinPackets: 2},
	}
	if change := s.Step(at(1)); !change.Probe || !change.Next || !s.Probing() {
		t.Fatalf("a probe changes %+v", change)
	}
	if change := s.Consult(at(1)); change.Probe {
		t.Error("a second probe begins in the first")
	}
	one := s.Sent(1, 2, 1200, feedback.Media, at(2))
	if s.Spend(1200) || s.StepDue() == 0 {
		t.Error("the probe is complete after a packet")
	}
	two := s.Sent(1, 3, 1200, feedback.Probe, at(3))
	if !s.Spend(1200) || s.StepDue() != 0 {
		t.Errorf("the probe is not complete after two packets, a step is due at %v", s.StepDue())
	}
	after := s.Sent(1, 4, 1200, feedback.Media, at(4))
	s.Learn(received(at(3), before, one, two, after), at(20), at(20))
	for i, want := range []int{0, 5, 5, 0} {
		if got := e.results[i].Probe; got != want {
			t.Errorf("packet %d is of probe %d, expected %d", i, got, want)
		}
	}
	if change := s.Step(at(20)); !change.Probe {
		t.Error("the next probe does not begin")
	}
	padded := 0
	s.Tick(20 * time.Millisecond)
	s.Pad(func() bool {
		padded++
		s.Sent(1, 5, 1200, feedback.Probe, at(20))
		s.Spend(1200)
		return true
	})
	if padded != 2 || s.Probing() {
		t.Errorf("%d packets of padding complete the probe, expected 2", padded)
	}
}

// TestIdleSendersDoNotProbe: packets sent long ago do not show that the path carries their rate.
func TestIdleSendersDoNotProbe(t *testing.T) {
	s, e := started(t, Options{Idle: 500 * time.Millisecond})
	probe := congestion.ProbeCluster{ID: 1, Rate: 10e6, Duration: 15 * time.Millisecond, MinBytes: 2400, MinPackets: 2}
	e.probes = []congestion.ProbeCluster{probe}
	if s.Step(at(0)).Probe {
		t.Error("a probe begins before anything was sent")
	}
	s.Sent(1, 1, 1200, feedback.Media, at(10))
	if s.Step(at(511)).Probe {
		t.Error("a probe begins after a silence")
	}
	s.Sent(1, 2, 1200, feedback.Media, at(600))
	if !s.Step(at(601)).Probe {
		t.Error("no probe begins")
	}
}

// TestSpacingIsShared: packets of two senders that share a Spacing leave one by one as long as the sum of their
// estimates is within the bound.
func TestSpacingIsShared(t *testing.T) {
	spacing := new(Spacing)
	spaced := func(s *Sender[int, int], e *told, estimate congestion.Bitrate) bool {
		e.stats = congestion.Stats{Estimate: estimate, DelayBased: estimate, Smooth: true, Spaced: true}
		s.Consult(e.last)
		return s.path.Spaced
	}
	var senders []*Sender[int, int]
	var estimators []*told
	for range 2 {
		s, e := started(t, Options{Grace: time.Second, Spacing: spacing})
		senders, estimators = append(senders, s), append(estimators, e)
	}
	for i, step := range []struct {
		sender   int
		estimate congestion.Bitrate
		spaced   bool
	}{{0, 60e6, true}, {1, 50e6, false}, {1, 40e6, true}, {0, 61e6, false}, {0, 60e6, true}, {1, 30e6, true},
		{0, 70e6, true}} {
		if got := spaced(senders[step.sender], estimators[step.sender], step.estimate); got != step.spaced {
			t.Errorf("step %d: sender %d is spaced: %t, expected %t", i, step.sender, got, step.spaced)
		}
	}
	senders[0].Stop(estimators[0].last)
	if !spaced(senders[1], estimators[1], 100e6) {
		t.Error("a sender that has stopped still takes a part of the bound")
	}
	if spaced(senders[1], estimators[1], 101e6) || spacing.taken != 0 {
		t.Errorf("a sender is spaced beyond the bound, %d bit/s are taken", spacing.taken)
	}
}

// TestPathFollowsReports: without a grace nothing limits the sender before the first report; with a grace the start
// rate does so until its end.
func TestPathFollowsReports(t *testing.T) {
	known := pacing.Path{Estimate: 8e6, Carried: 8e6}
	s, _ := started(t, Options{})
	number := s.Sent(1, 1, 1200, feedback.Media, at(0))
	if s.Step(at(0)); s.path != (pacing.Path{}) {
		t.Errorf("the path is %+v before a report", s.path)
	}
	s.Learn(received(at(0), number), at(20), at(20))
	if change := s.Consult(at(20)); s.path != known || !change.Next || !s.Reported() || s.Stats().Estimate != 8e6 {
		t.Errorf("the path is %+v after a report, changed: %+v", s.path, change)
	}
	if change := s.Consult(at(30)); change != (Change{}) {
		t.Errorf("nothing has changed but %+v", change)
	}
	s.Stop(at(40))
	if s.path != (pacing.Path{}) || s.Reported() || s.StepDue() != Never || s.Stats().Estimate != 0 {
		t.Errorf("after the end the path is %+v", s.path)
	}
	if results := s.Report(nil, at(41), at(41), nil); len(results) > 0 {
		t.Errorf("after the end a report contains %v", results)
	}

	s, _ = started(t, Options{Grace: time.Second})
	if s.path != known {
		t.Errorf("the path is %+v at the start, expected that of the start rate", s.path)
	}
	s.Sent(1, 1, 1200, feedback.Media, at(500))
	if s.Step(at(500)); s.path != known || s.StepDue() != 1500*time.Millisecond {
		t.Errorf("the path is %+v, and a step is due at %v, expected 1.5 s", s.path, s.StepDue())
	}
	if s.Step(at(1500)); s.path != (pacing.Path{}) {
		t.Errorf("the path is %+v after the grace", s.path)
	}
}

// TestStepsAreDueByTime: steps of the estimator are due at its time, but not more often than stepInterval.
func TestStepsAreDueByTime(t *testing.T) {
	s, e := started(t, Options{})
	if s.StepDue() != 0 {
		t.Errorf("the first step is due at %v", s.StepDue())
	}
	for ms, want := range map[int]time.Duration{10: 15 * time.Millisecond, 100: 100 * time.Millisecond} {
		e.next = at(ms)
		if s.Consult(at(10)); s.StepDue() != want {
			t.Errorf("of a step at %d ms, the next is due at %v, expected %v", ms, s.StepDue(), want)
		}
	}
	e.next = time.Time{}
	if s.Consult(at(10)); s.StepDue() != Never {
		t.Errorf("a step is due at %v, expected never", s.StepDue())
	}
}

// TestLooking: a step that a packet makes due is found at the next look, and there is no step before it is due.
func TestLooking(t *testing.T) {
	s, e := started(t, Options{Look: 100 * time.Millisecond})
	e.next = time.Time{}
	if s.Step(at(0)); e.steps != 1 || s.StepDue() != 100*time.Millisecond {
		t.Fatalf("%d steps, the next is due at %v, expected 1 and 100 ms", e.steps, s.StepDue())
	}
	// The estimator has no step before the first packet.
	s.Step(at(100))
	s.Sent(1, 1, 1200, feedback.Media, at(120))
	e.next = at(250)
	if s.Step(at(200)); e.steps != 1 || s.StepDue() != 250*time.Millisecond {
		t.Errorf("%d steps, the next is due at %v, expected 1 and 250 ms", e.steps, s.StepDue())
	}
	if s.Step(at(250)); e.steps != 2 {
		t.Errorf("%d steps, expected 2", e.steps)
	}
}

// TestPacketsLeaveWithTheCodepoint records packets with the codepoint of the estimator's last statistics, and without
// ECT once there is no estimator.
func TestPacketsLeaveWithTheCodepoint(t *testing.T) {
	s, e := started(t, Options{})
	s.Start(NewByStream(), e, at(0))
	cfg := feedback.DefaultConfig().Transport
	recorder := feedback.NewCongestionRecorder(cfg, 1)
	sent := []ecn.Codepoint{ecn.NotECT, ecn.ECT1, ecn.ECT0}
	for n, codepoint := range sent {
		e.stats.ECN = codepoint
		s.Consult(at(10 * n))
		s.Sent(9, uint16(n), 1000, feedback.Media, at(10*n))
		recorder.Received(9, uint16(n), 1000, ecn.CE, at(10*n+5))
	}
	results := s.Report(recorder.AppendReports(nil, at(200)), at(200), at(200), nil)
	if len(results) != 3 {
		t.Fatalf("%d results, expected 3", len(results))
	}
	for n, want := range []ecn.Codepoint{ecn.NotECT, ecn.CE, ecn.CE} {
		if r := results[n]; r.ECN != want || r.SentECN != sent[n] {
			t.Errorf("packet %d: %+v, expected it to arrive with %d", n, r, want)
		}
	}
	if s.Stop(at(300)); s.Stats().ECN != ecn.NotECT {
		t.Errorf("without an estimator packets leave with %v", s.Stats().ECN)
	}
}

// TestHistories identifies packets by number, or by stream.
func TestHistories(t *testing.T) {
	for _, h := range []*History{NewNumbered(7), NewByStream()} {
		cfg := feedback.DefaultConfig().Transport
		numbers, streams := feedback.NewTransportRecorder(cfg), feedback.NewCongestionRecorder(cfg, 1)
		for n := range uint16(3) {
			number := h.sent(9, 100+n, 1000, feedback.Media, ecn.ECT1, at(int(n)))
			numbers.Received(uint16(number), 1000, at(int(n)+10))
			streams.Received(9, 100+n, 1000, ecn.NotECT, at(int(n)+10))
		}
		report := numbers.AppendReports(nil, 1, 2, at(100))
		if h.ByStream() {
			report = streams.AppendReports(nil, at(100))
		}
		results := h.report(report, at(110), nil)
		if stats := h.Stats(); len(results) != 3 || stats.Sent != 3 || stats.Received != 3 {
			t.Errorf("by stream %t: %d results, %+v", h.ByStream(), len(results), stats)
		}
	}
}

// TestWindow bounds the bytes in flight by packets that left and reports that arrived, for both forms of reports.
func TestWindow(t *testing.T) {
	for name, h := range map[string]*History{"numbered": NewNumbered(7), "by stream": NewByStream()} {
		cfg := feedback.DefaultConfig().Transport
		numbers, streams := feedback.NewTransportRecorder(cfg), feedback.NewCongestionRecorder(cfg, 1)
		s, e := started(t, Options{Grace: time.Second})
		e.stats.Window = 5000
		s.Start(h, e, at(0))
		s.Consult(at(0))
		var flow, other pacing.Flow[int]
		send := func(n uint16) {
			number := s.Sent(9, n, 1200, feedback.Media, at(100))
			s.Spend(1200)
			numbers.Received(uint16(number), 1200, at(110))
			streams.Received(9, n, 1200, ecn.NotECT, at(110))
		}
		// Of 5,000 bytes, 1,200 for audio remain besides a frame of three packets.
		now := 100 * time.Millisecond
		offer := pacing.Offer{Arrived: now, Due: now, Begins: true, Frame: 3600}
		if !s.Admit(&flow, offer, now) {
			t.Errorf("%s: a frame that fits does not begin", name)
		}
		s.Begin(&flow)
		send(0)
		for n := range uint16(2) {
			if !s.Admit(&flow, pacing.Offer{Arrived: now, Due: now}, now) {
				t.Errorf("%s: packet %d of the frame does not leave", name, n+1)
			}
			send(n + 1)
		}
		if s.Admit(&other, offer, now) {
			t.Errorf("%s: a second frame begins", name)
		}
		s.Hold(&other, 1, offer)
		report := numbers.AppendReports(nil, 1, 2, at(200))
		if h.ByStream() {
			report = streams.AppendReports(nil, at(200))
		}
		s.Report(report, at(120), at(120), nil)
		change := s.Consult(at(120))
		if next, waits := s.Next(); !change.Next || !waits || next > 120*time.Millisecond {
			t.Errorf("%s: after a report the next tick is at %v (%t), changed: %t", name, next, waits, change.Next)
		}
	}
}

// TestMarksEndProbes marks a packet during a probe: the probe ends, and the pacer has another next tick.
func TestMarksEndProbes(t *testing.T) {
	s, e := started(t, Options{})
	s.Sent(1, 1, 1200, feedback.Media, at(0))
	e.probes = []congestion.ProbeCluster{
		{ID: 5, Rate: 10e6, Duration: 15 * time.Millisecond, MinBytes: 12000, MinPackets: 10},
	}
	if change := s.Step(at(1)); !change.Probe || !s.Probing() {
		t.Fatalf("a probe changes %+v", change)
	}
	if s.Consult(at(2)); !s.Probing() {
		t.Fatal("the probe ends without a mark")
	}
	e.stats.ProbeMarked = true
	if change := s.Consult(at(3)); !change.Next || s.Probing() {
		t.Errorf("a mark changes %+v, probing %v", change, s.Probing())
	}
}

// TestSuspended: while reports are not passed on, no window holds frames. Afterwards the packets of this time are not
// in flight, until a report shows how many are.
func TestSuspended(t *testing.T) {
	s, e := started(t, Options{})
	e.stats.Window = 1
	s.Learn(received(at(0), s.Sent(1, 0, 1200, feedback.Media, at(0))), at(20), at(20))
	begins := func(flow *pacing.Flow[int], ms int) bool {
		now := time.Duration(ms) * time.Millisecond
		return s.Admit(flow, pacing.Offer{Arrived: now, Due: now, Begins: true, Frame: 1200}, now)
	}
	s.Sent(1, 1, 1200, feedback.Media, at(30))
	s.Spend(1200)
	if s.Consult(at(30)); s.path.Window != 1 || begins(new(pacing.Flow[int]), 30) {
		t.Fatal("a frame begins while packets are in flight")
	}
	s.Suspend(true, at(40))
	if s.Consult(at(40)); s.path.Window != 0 || e.settled == 0 {
		t.Errorf("while suspended the window is %d, and the wait for reports has ended %d times", s.path.Window,
			e.settled)
	}
	s.Sent(1, 2, 1200, feedback.Media, at(50))
	before := e.settled
	s.Suspend(false, at(60))
	if s.Consult(at(60)); s.path.Window != 1 || e.settled != before+1 || s.inFlight() != 0 {
		t.Errorf("afterwards the window is %d, %d bytes are in flight, and the wait has ended %d times", s.path.Window,
			s.inFlight(), e.settled-before)
	}
	if s.Suspend(false, at(60)); e.settled != before+1 {
		t.Error("without a suspension the wait ends again")
	}
	if s.Sent(1, 3, 1000, feedback.Media, at(70)); s.inFlight() != 1000 {
		t.Errorf("%d bytes are in flight, expected those of one packet", s.inFlight())
	}
	if s.Learn(received(at(30), 1), at(80), at(80)); s.inFlight() != s.history.inFlight() {
		t.Errorf("%d bytes are in flight after a report, expected %d", s.inFlight(), s.history.inFlight())
	}
}

// TestAllReported: when a report leaves no packet in flight, the estimator waits for no other report.
func TestAllReported(t *testing.T) {
	s, e := started(t, Options{})
	recorder := feedback.NewTransportRecorder(feedback.DefaultConfig().Transport)
	for n := range 2 {
		recorder.Received(uint16(s.Sent(1, uint16(n), 1200, feedback.Media, at(0))), 1200, at(10))
	}
	last := s.Sent(1, 2, 1200, feedback.Media, at(20))
	if s.Report(recorder.AppendReports(nil, 1, 2, at(30)), at(30), at(30), nil); e.settled != 0 {
		t.Error("the wait ends although a packet is in flight")
	}
	recorder.Received(uint16(last), 1200, at(40))
	if s.Report(recorder.AppendReports(nil, 1, 2, at(200)), at(200), at(200), nil); e.settled != 1 {
		t.Errorf("the wait ends %d times after a report about all packets, expected once", e.settled)
	}
}

// TestOverdueReports ends the reports of a receiver that reports every 5 ms, after a round trip of 2 ms: no packet is
// in flight when a frame begins, so the wait for a report begins with a packet. A sender that is stepped when a step is
// due holds frames as soon as one that is stepped every millisecond.
func TestOverdueReports(t *testing.T) {
	for interval := 20; interval <= 40; interval += 4 {
		wanted, got := heldAt(t, interval, true), heldAt(t, interval, false)
		if wanted == 0 || got < wanted || got > wanted+int(stepInterval/time.Millisecond) {
			t.Errorf("frames every %d ms are held at %d ms, expected at most 5 ms after %d ms", interval, got, wanted)
		}
	}
}

// heldAt sends a frame of 5 packets every given milliseconds, ends the reports after 2 s, and returns the time in ms at
// which frames are held, 0 if they are never held. The estimator is stepped every millisecond, or when a step is due.
func heldAt(t *testing.T, frameInterval int, always bool) int {
	t.Helper()
	const packets, ends = 5, 2000
	s, _ := started(t, Options{Look: LookInterval})
	s.Start(NewNumbered(1), congestion.New(congestion.GCC, congestion.DefaultConfig(), start), start)
	cfg := feedback.DefaultConfig().Transport
	cfg.IntervalMin, cfg.IntervalMax, cfg.IntervalFast = 5*time.Millisecond, 5*time.Millisecond, 5*time.Millisecond
	recorder := feedback.NewTransportRecorder(cfg)
	var last [2]int64 // the packets that left 1 and 2 ms ago, -1 for none
	for ms := range ends + 1000 {
		if arrived := last[1]; ms > 1 && arrived >= 0 {
			recorder.Received(uint16(arrived), 1200, at(ms))
		}
		last = [2]int64{-1, last[0]}
		if ms%frameInterval < packets {
			last[0] = s.Sent(1, 0, 1200, feedback.Media, at(ms))
		}
		if report := recorder.AppendReports(nil, 1, 2, at(ms)); report != nil && ms < ends {
			s.Report(report, at(ms), at(ms), nil)
			s.Consult(at(ms))
		}
		if always {
			s.next, s.due = 0, 0
		}
		if s.StepDue() <= time.Duration(ms)*time.Millisecond {
			s.Step(at(ms))
		}
		if s.path.Window > 0 {
			return ms
		}
	}
	return 0
}

// TestMove: after a move to another path the estimator knows its rate, and receives no results of packets that left
// before. A step is due.
func TestMove(t *testing.T) {
	s, e := started(t, Options{})
	first := s.Sent(1, 1, 1200, feedback.Media, at(10))
	s.Consult(at(10))
	s.Move(5e6, at(20))
	if e.moved != 5e6 || s.StepDue() != 0 {
		t.Errorf("the estimator moves to %v, and a step is due at %v, expected 5 Mbit/s and 0", e.moved, s.StepDue())
	}
	second := s.Sent(1, 2, 1200, feedback.Media, at(20))
	s.Learn(received(at(10), first), at(40), at(40))
	s.Learn(append(received(at(10), first), received(at(20), second)...), at(50), at(50))
	if len(e.results) != 1 || e.results[0].Sequence != second {
		t.Errorf("the results are %+v, expected that of packet %d", e.results, second)
	}
}
