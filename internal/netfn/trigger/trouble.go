package trigger

import (
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// leastNumbers in the short window of 100 ms are trouble if they are also lossShare of all numbers, or slowShare. A
	// path that loses 0.05 % of 1,000 packets/s has 0.05 losses in 100 ms and 3 of them with a probability of 0.002 %.
	leastNumbers = 3
	lossShare    = 0.01
	slowShare    = 0.1

	// calmShare is the share of slow numbers below which for calmTime delays are normal again. Delays that stay are no
	// trouble any more: the paths that vary have been judged.
	calmShare = 0.02
	calmTime  = time.Second

	// againAfter is the least time between two events.
	againAfter = 100 * time.Millisecond

	// Packets are silent if their report is overdue by silentMargin or 4 mean deviations, whichever is longer, as a
	// retransmission timeout is (RFC 6298). The margin is twice the interval between calls of Sent.
	silentMargin = 10 * time.Millisecond
	meanGain     = 8
	deviations   = 4
	// silentNumbers sampled numbers, on average, are among the overdue packets that silence needs: the last packets of
	// a frame may have no sampled number.
	silentNumbers = 4
	// oldReport is an implausible age of the newest packet in a report.
	oldReport = 10 * time.Second

	// maxSends bounds the remembered intervals in which packets were sent: 64 × 5 ms = 0.3 s, and the oldest one.
	maxSends = 64
)

// Trouble starts copies when first copies are lost or become slow, or when nothing arrives. Use NewTrouble.
type Trouble struct {
	packets uint64
	counted time.Duration // last call of Sent
	sends   []interval    // intervals with packets that are not reported, oldest first
	sampled uint64        // packets per sampled number

	wait, deviation time.Duration // from sending packets until their report, mean and mean deviation
	measured        bool

	reported bool // serial and applied are those of a report
	serial   uint32
	applied  time.Duration

	disarmed bool          // delays have been reported as trouble and are not normal again
	slow     time.Duration // last report with slow numbers
	last     time.Duration // last event
	fired    bool          // last is valid
	cause    Cause         // found since the last step
}

// interval is the time between two calls of Sent, in which packets were sent.
type interval struct {
	begin   time.Duration
	packets uint64 // sent before
}

// NewTrouble returns the trigger of a rule.
func NewTrouble() *Trouble { return &Trouble{sends: make([]interval, 0, maxSends)} }

// Sent states how many packets of the rule have been sent. Call it every 5 ms, and at least every 20 ms: silence is
// noticed so much later.
func (t *Trouble) Sent(packets uint64, now time.Duration) {
	begin := t.counted
	t.counted = now
	if packets == t.packets {
		return
	}
	if len(t.sends) == maxSends {
		t.sends = append(t.sends[:1], t.sends[2:]...) // the oldest interval decides
	}
	t.sends = append(t.sends, interval{begin, t.packets})
	t.packets = packets
}

// Apply takes a report of the rule. A report that is not newer than the last one has no effect, unless the last one is
// 1 s old: then the receiver has restarted.
func (t *Trouble) Apply(r *wire.Report, now time.Duration) {
	if t.reported && !r.Newer(t.serial) && now-t.applied < wire.ReportLifetime {
		return
	}
	t.reported, t.serial, t.applied = true, r.Serial, now
	if r.Seen {
		t.confirm(r.Newest, now)
	}
	t.sampled = 1 << r.Sampling
	numbers := float64(max(r.Numbers, 1))
	if r.Missed >= leastNumbers && float64(r.Missed) >= lossShare*numbers {
		t.cause = Losses
	}
	if float64(r.Slow) > calmShare*numbers {
		t.slow = now
	} else if now-t.slow >= calmTime {
		t.disarmed = false
	}
	if !t.disarmed && r.Slow >= leastNumbers && float64(r.Slow) >= slowShare*numbers {
		t.disarmed = true
		if t.cause == Nothing {
			t.cause = Delays
		}
	}
}

// confirm forgets the intervals that began before newest, a time in µs modulo 2^32, and measures how long the oldest of
// them waited for its report.
func (t *Trouble) confirm(newest uint32, now time.Duration) {
	age := time.Duration(int32(uint32(now/time.Microsecond)-newest)) * time.Microsecond
	if age < 0 || age > oldReport {
		return
	}
	confirmed := 0
	for confirmed < len(t.sends) && t.sends[confirmed].begin <= now-age {
		confirmed++
	}
	if confirmed == 0 {
		return
	}
	wait := now - t.sends[0].begin
	t.sends = append(t.sends[:0], t.sends[confirmed:]...)
	if !t.measured {
		t.measured, t.wait, t.deviation = true, wait, wait/2
		return
	}
	t.deviation += ((wait - t.wait).Abs() - t.deviation) / meanGain
	t.wait += (wait - t.wait) / meanGain
}

// Step returns the cause of trouble, or Nothing.
func (t *Trouble) Step(now time.Duration) Cause {
	cause := t.cause
	if cause == Nothing && t.silent(now) {
		cause = Silence
	}
	t.cause = Nothing
	if cause == Nothing || t.fired && now-t.last < againAfter {
		return Nothing
	}
	t.last, t.fired = now, true
	return cause
}

// silent reports whether the report about enough packets is overdue.
func (t *Trouble) silent(now time.Duration) bool {
	due := now - t.wait - max(deviations*t.deviation, silentMargin)
	overdue := uint64(0)
	for i, sent := range t.sends {
		if sent.begin >= due {
			break
		}
		until := t.packets
		if i+1 < len(t.sends) {
			until = t.sends[i+1].packets
		}
		overdue = until - t.sends[0].packets
	}
	return t.measured && overdue >= silentNumbers*t.sampled
}
