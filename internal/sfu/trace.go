package sfu

import (
	"time"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/tracing"
	"github.com/volsfu/volsfu/pkg/signal"
)

// clock returns a time of this host's clock as clients see it, in microseconds since 1970.
func (c *Config) clock(t time.Time) int64 { return t.Add(c.ClockOffset).UnixMicro() }

// traceRequested handles a receiver's request for times of frames.
func (r *Room) traceRequested(p *participant, wanted bool) {
	p.trace(wanted && p.receive)
	r.participants.askForTimes()
}

// trace starts or stops the tracing of the frames sent to the participant.
func (p *participant) trace(wanted bool) {
	p.tracing.Wanted = wanted
	p.connection.Receiver.TraceFrames(wanted)
}

// askForTimes tells publishers whether another participant wants the times of their frames, if that has changed.
func (m members) askForTimes() {
	wanted := 0
	for _, p := range m {
		if p.tracing.Wanted {
			wanted++
		}
	}
	for _, p := range m {
		others := wanted
		if p.tracing.Wanted {
			others--
		}
		if asked := others > 0; p.profile.Traces && len(p.Publications) > 0 && p.tracing.Asked != asked {
			p.tracing.Asked = asked
			p.room.span.stateChanged(p)
			p.send(&signal.Trace{FrameTimes: asked})
		}
	}
}

// sendTrace repeats the request for times to a resumed participant.
func (p *participant) sendTrace() {
	if p.tracing.Asked {
		p.send(&signal.Trace{FrameTimes: true})
	}
}

// forwardTimes forwards the times of a publisher's frames to participants that asked for times, within the rate limit.
// Tracks that the publisher does not publish are ignored.
func (q messageRequest) forwardTimes(r *Room, m *signal.FrameTimes) {
	p := q.participant
	passed := p.tracing.Limit(r.now, &p.Presence, m)
	for _, other := range r.participants.others(p) {
		if !other.tracing.Wanted || other.outbox == nil {
			continue
		}
		passed.Prepare()
		other.send(passed)
		p.tracing.Sent()
	}
}

// frameTimes has the times of frames that were sent to a connection's receiver.
type frameTimes struct {
	*connection
	frames []egress.FrameTimes
}

// apply implements request.
func (q frameTimes) apply(r *Room) {
	p := q.owner
	if !q.present() || !p.tracing.Wanted {
		return
	}
	clock := tracing.Clock{
		Source: signal.ClockSource(r.node.config.ClockSource), Ahead: r.node.config.ClockOffset,
	}
	for frames := q.frames; len(frames) > 0; {
		n := min(len(frames), signal.MaxFrameTimes)
		p.send(clock.Message(p.subscriber.Slots, frames[:n]))
		frames = frames[n:]
	}
}
