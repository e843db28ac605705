package trunk

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pion/sctp"

	"github.com/volsfu/volsfu/pkg/frametimes/clock"
)

const (
	// probeInterval is the interval of probes in each direction.
	probeInterval = 100 * time.Millisecond
	// maxUnsentProbes is the number of bytes of probes that may wait in SCTP beside hops, maxUnsentHops the number
	// above which hops wait: half a second of the hops of one publisher.
	maxUnsentProbes = 4096
	maxUnsentHops   = 32 << 10
)

// probing measures the round-trip time and the offset between the clocks of two nodes. Clocks are wall clocks.
type probing struct {
	// stream is nil until it is open.
	stream *sctp.Stream
	clock  clock.Estimator
	sent   time.Time
	// measured receives each round-trip time, passed the hops of the other node with the time of their arrival.
	measured func(time.Duration)
	passed   func(*hops, time.Time)
}

// step sends a probe when one is due.
func (p *probing) step(now time.Time) {
	if p.stream != nil && now.Sub(p.sent) >= probeInterval {
		p.sent = now
		// now is the time of the step, which may have taken milliseconds until here.
		p.send(probe{T0: time.Now().UnixNano()})
	}
}

// receive replies to a probe, or reads the reply to one, or hops.
func (p *probing) receive(data []byte, at time.Time) error {
	var m probe
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if m.Hops != nil {
		if err := m.Hops.check(); err != nil {
			return err
		}
		p.passed(m.Hops, at)
		return nil
	}
	if m.T1 == 0 {
		p.send(probe{T0: m.T0, T1: at.UnixNano(), T2: time.Now().UnixNano()})
		return nil
	}
	at = at.Round(0)
	times := [3]time.Time{time.Unix(0, m.T0), time.Unix(0, m.T1), time.Unix(0, m.T2)}
	if p.clock.RoundTrip(times[0], times[1], times[2], at) != nil {
		// A clock was set.
		return nil
	}
	p.measured(at.Sub(times[0]) - times[2].Sub(times[1]))
	return nil
}

// hasRoom reports whether hops can be sent.
func (p *probing) hasRoom() bool {
	return p.stream != nil && p.stream.BufferedAmount() <= maxUnsentHops
}

func (p *probing) send(m probe) {
	if p.stream == nil || p.stream.BufferedAmount() > maxUnsentHops+maxUnsentProbes {
		return
	}
	if data, err := json.Marshal(m); err == nil {
		_, _ = p.stream.WriteSCTP(data, sctp.PayloadTypeWebRTCBinary)
	}
}
