package paths

import (
	"math/bits"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// reportInterval is the least time between reports while nothing worsens. The control channel then uses less than
	// 50 × 500 bytes × 8 = 200 kbit/s per path.
	reportInterval = 20 * time.Millisecond
	// urgentInterval is the least time between reports while first copies worsen, for at most urgentTime: a path that
	// stays bad is no news.
	urgentInterval = 5 * time.Millisecond
	urgentTime     = 100 * time.Millisecond
	// urgentNumbers missed or slow numbers since the last report make the next report urgent.
	urgentNumbers = 3

	// lossWait is the time after the deadline after which a copy that has not arrived is lost.
	lossWait = 200 * time.Millisecond
	// sampleDelay is the greatest time between a change of the divisor and the last sample taken with the former one.
	sampleDelay = 100 * time.Millisecond
	// readGrace is the greatest delay between the arrival of a copy and its Add while other copies arrive.
	readGrace = 20 * time.Millisecond

	// maxGap bounds the lost numbers of one gap. 2,048 sampled numbers are 0.5 s at the greatest rate of 4,000
	// samples/s.
	maxGap = 2048
	// burstGap is the greatest time between bursts of packets, one frame at 20 fps: a missing number may have left so
	// much later than between its neighbours.
	burstGap = 50 * time.Millisecond
	// A delay that is nearDelay less than the least delay or farDelay more is implausible: the send time is forged or
	// of another clock.
	nearDelay = 500 * time.Millisecond
	farDelay  = 10 * time.Second
	// farSamples implausible samples in a row begin the observation again.
	farSamples = 64
)

// Sample is one copy of a sampled number.
type Sample struct {
	Flow    uint8
	Epoch   uint16
	Number  uint32
	Path    uint8         // path of the copy
	Set     Set           // paths on which the number left, probes included
	Sent    uint32        // send time in µs of the sender's clock modulo 2^32
	Arrived time.Duration // on the receiver's clock
}

// Observer collects what the receiver of a pair sees of one rule's packets. The zero value is not usable.
type Observer struct {
	rule     uint8
	deadline time.Duration
	divisor  uint32
	former   uint32        // divisor before
	changed  time.Duration // when the divisor changed
	epoch    uint16
	started  bool // an epoch has begun

	clock     time.Duration // time up to which all arrivals are known
	since     time.Duration // time from which on all arrivals are known
	reference uint32        // the delay that counts as 0, in µs; defined once anchored
	anchored  bool
	far       int // implausible delays in a row

	least   [wire.MaxPaths]leastDelay
	flows   [1 << 8]flow
	pending pending
	history history

	seen     bool
	newest   uint32
	serial   uint32
	reported time.Duration
	calm     time.Duration // last report that was not urgent
	news     bool          // since the last report
	worse    int           // numbers found missed or slow since the last report
}

// flow is the newest sampled number of a flow.
type flow struct {
	known  bool
	number uint32
	set    Set
	before Set // set of the number that arrived before
	sent   time.Duration
}

// NewObserver returns the observer of a rule. The deadline must be positive.
func NewObserver(rule uint8, deadline time.Duration) *Observer {
	return &Observer{rule: rule, deadline: deadline, divisor: 1, former: 1, pending: newPending()}
}

// SetDeadline changes the deadline of the rule.
func (o *Observer) SetDeadline(deadline time.Duration) { o.deadline = deadline }

// SetDivisor states the divisor of the sampling in force from now on, a power of two up to 128. Gaps across the change
// are no losses.
func (o *Observer) SetDivisor(divisor uint32) {
	if divisor == o.divisor {
		return
	}
	o.former, o.changed = o.divisor, o.clock
	o.divisor = divisor
	o.Lost()
}

// Lost states that samples were lost between the receiver's program and the observer. Numbers that are missing until
// now are not judged.
func (o *Observer) Lost() {
	o.since = o.clock + 1 // copies that arrived at clock are forgotten
	clear(o.flows[:])
	o.pending.drop()
}

// Add takes a sampled copy.
func (o *Observer) Add(s Sample) {
	if s.Path >= wire.MaxPaths || !s.Set.Has(int(s.Path)) || !o.enter(s.Epoch) {
		return
	}
	delay, ok := o.delay(s.Sent, s.Arrived)
	if !ok {
		return
	}
	path := int(s.Path)
	o.least[path].add(s.Arrived, delay)
	if !o.seen || int32(s.Sent-o.newest) > 0 {
		o.seen, o.newest = true, s.Sent
	}
	o.news = true
	o.advance(s.Arrived)

	e := o.pending.find(s.Flow, s.Number)
	if e == nil {
		e = o.begin(s, s.Arrived-delay)
	}
	if e == nil {
		return
	}
	if !e.known {
		e.known, e.set, e.sent = true, s.Set, s.Arrived-delay
	}
	e.arrived |= of(path)
	if delay <= o.base()+o.deadline {
		e.inTime |= of(path)
	}
	if delay <= o.least[path].value+o.deadline/2 {
		e.usual |= of(path)
	}
	o.history.delay(s.Arrived, path, delay)
}

// Beat takes a hello, which counts as a probe of its path. sent is the sender's clock in µs modulo 2^32.
func (o *Observer) Beat(path uint8, sent uint32, arrived time.Duration) {
	if path >= wire.MaxPaths {
		return
	}
	delay, ok := o.delay(sent, arrived)
	if !ok {
		return
	}
	o.least[path].add(arrived, delay)
	o.news = true
	o.advance(arrived)
	o.history.beat(arrived, int(path), delay <= o.base()+o.deadline)
	o.history.delay(arrived, int(path), delay)
}

// enter begins a new epoch. It reports whether samples of the epoch count: those of the epoch before do not.
func (o *Observer) enter(epoch uint16) bool {
	if o.started && epoch == o.epoch {
		return true
	}
	if o.started && epoch == o.epoch-1 {
		return false
	}
	if o.started {
		o.restart()
	}
	o.started, o.epoch = true, epoch
	return true
}

// restart forgets everything of the sender's clock and numbers.
func (o *Observer) restart() {
	o.Lost()
	o.anchored, o.far, o.seen = false, 0, false
	o.least = [wire.MaxPaths]leastDelay{}
	o.history = history{}
}

// delay returns (arrived − sent) relative to the first such difference. It reports whether the delay is plausible.
func (o *Observer) delay(sent uint32, arrived time.Duration) (time.Duration, bool) {
	raw := uint32(arrived/time.Microsecond) - sent
	if !o.anchored {
		o.anchored, o.reference, o.since = true, raw, arrived
	}
	delay := time.Duration(int32(raw-o.reference)) * time.Microsecond
	base, known := o.leastOfAll()
	if known && (delay < base-nearDelay || delay > base+farDelay) {
		if o.far++; o.far >= farSamples {
			o.restart()
		}
		return 0, false
	}
	o.far = 0
	return delay, true
}

// base returns the least delay of all paths.
func (o *Observer) base() time.Duration {
	base, _ := o.leastOfAll()
	return base
}

func (o *Observer) leastOfAll() (base time.Duration, known bool) {
	for i := range o.least {
		if o.least[i].known && (!known || o.least[i].value < base) {
			base, known = o.least[i].value, true
		}
	}
	return base, known
}

// begin enters a number that is not pending, and the numbers of its flow that are missing before it. It returns nil if
// the number is up to maxGap numbers older than its flow's newest one, so that it has been judged, or if another copy
// may have arrived before the observation began.
func (o *Observer) begin(s Sample, sent time.Duration) *number {
	f := o.flows[s.Flow]
	ahead := s.Number - f.number
	divisor := o.divisor
	if f.sent < o.changed+sampleDelay {
		divisor = max(divisor, o.former)
	}
	if behind := -ahead; f.known && behind <= maxGap*divisor || sent+o.base() < o.since {
		return nil
	}
	// The sets and send times of missing numbers are not known. They left on the paths that all neighbours use, three
	// so that a probe does not count, and at the latest with the later neighbour. After a jump of the numbers nothing
	// is known to be missing.
	if missing := ahead/divisor - 1; f.known && ahead%divisor == 0 && missing <= maxGap {
		set := f.before & f.set & s.Set
		if set == 0 {
			set = f.set
		}
		step := (sent - f.sent) / time.Duration(missing+1)
		for i := uint32(1); i <= missing; i++ {
			o.pending.add(number{flow: s.Flow, number: f.number + i*divisor, set: set,
				sent: min(f.sent+time.Duration(i)*step+burstGap, sent)})
		}
	}
	o.flows[s.Flow] = flow{known: true, number: s.Number, set: s.Set, before: f.set, sent: sent}
	return o.pending.add(number{flow: s.Flow, number: s.Number})
}

// advance judges the numbers whose time has passed at clock.
func (o *Observer) advance(clock time.Duration) {
	clock = max(clock, o.clock)
	o.clock = clock
	for i := range o.least {
		o.least[i].roll(clock)
	}
	base := o.base()
	o.pending.judge(stageSlow, func(n *number) bool {
		if clock < n.sent+min(o.usual(n.set, base)+o.deadline/2, base+o.deadline) {
			return false
		}
		slow := n.usual == 0
		o.history.slow(clock, slow)
		o.count(slow)
		return true
	})
	o.pending.judge(stageDeadline, func(n *number) bool {
		if clock < n.sent+base+o.deadline {
			return false
		}
		o.history.judged(clock, n)
		o.count(n.inTime == 0)
		return true
	})
	o.pending.judge(stageLost, func(n *number) bool {
		if clock < n.sent+base+o.deadline+lossWait {
			return false
		}
		o.history.lost(clock, n.set&^n.arrived)
		return true
	})
}

func (o *Observer) count(worse bool) {
	o.news = true
	if worse {
		o.worse++
	}
}

// usual returns the greatest least delay of those paths of a set that can meet the deadline.
func (o *Observer) usual(set Set, base time.Duration) time.Duration {
	usual := base
	for i := range o.least {
		if l := &o.least[i]; set.Has(i) && l.known && l.value <= base+o.deadline {
			usual = max(usual, l.value)
		}
	}
	return usual
}

// Due reports whether a report should be sent now. Ask after each batch of samples and at least every 10 ms.
func (o *Observer) Due(now time.Duration) bool {
	if o.anchored {
		o.advance(max(o.clock, now-readGrace))
	}
	since := now - o.reported
	return o.news && (since >= reportInterval || o.urgent() && since >= urgentInterval && now-o.calm < urgentTime)
}

// urgent reports whether first copies have worsened since the last report.
func (o *Observer) urgent() bool { return o.worse >= urgentNumbers }

// Report returns the report of the windows that end now.
func (o *Observer) Report(now time.Duration) wire.Report {
	if !o.urgent() {
		o.calm = now
	}
	o.serial++
	o.reported, o.news, o.worse = now, false, 0
	r := wire.Report{Rule: o.rule, Epoch: o.epoch, Serial: o.serial, Sampling: uint8(bits.TrailingZeros32(o.divisor)),
		Seen: o.seen, Newest: o.newest}
	o.history.summarise(o.clock, o.base(), &r)
	return r
}
