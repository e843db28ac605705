package sfu

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// timesRate is the number of frames per second of one publisher whose times are forwarded, and timesBurst the
	// number at once. 30 tiles at 60 frames per second are 1,800, and three qualities of all of them exceed any uplink.
	// A receiver of these times gets 200 kB per second.
	timesRate  = 2000
	timesBurst = 4000
)

// clock returns a time of this host's clock as clients see it, in microseconds since 1970.
func (c *Config) clock(t time.Time) int64 { return t.Add(c.ClockOffset).UnixMicro() }

// tracing is a participant's state for times of frames.
type tracing struct {
	// wanted is set if the participant asked for times of the frames that it receives, asked if the server asked the
	// participant for times of its own frames.
	wanted, asked bool
	// limiter bounds the times that the participant sends. dropped counts the frames that were left out since the last
	// message to others.
	limiter *rate.Limiter
	dropped int
}

// traceRequested handles a receiver's request for times of frames.
func (r *Room) traceRequested(p *participant, wanted bool) {
	p.trace(wanted && p.receive)
	r.participants.askForTimes()
}

// trace starts or stops the tracing of the frames sent to the participant.
func (p *participant) trace(wanted bool) {
	p.tracing.wanted = wanted
	p.connection.Receiver.TraceFrames(wanted)
}

// askForTimes tells publishers whether another participant wants the times of their frames, if that has changed.
func (m members) askForTimes() {
	wanted := 0
	for _, p := range m {
		if p.tracing.wanted {
			wanted++
		}
	}
	for _, p := range m {
		others := wanted
		if p.tracing.wanted {
			others--
		}
		if asked := others > 0; p.profile.Traces && len(p.Publications) > 0 && p.tracing.asked != asked {
			p.tracing.asked = asked
			p.room.span.stateChanged(p)
			p.send(&signal.Trace{FrameTimes: asked})
		}
	}
}

// sendTrace repeats the request for times to a resumed participant.
func (p *participant) sendTrace() {
	if p.tracing.asked {
		p.send(&signal.Trace{FrameTimes: true})
	}
}

// forwardTimes forwards the times of a publisher's frames to participants that asked for times, within the rate limit.
// Tracks that the publisher does not publish are ignored.
func (q messageRequest) forwardTimes(r *Room, m *signal.FrameTimes) {
	p := q.participant
	t := &p.tracing
	if t.limiter == nil {
		t.limiter = rate.NewLimiter(timesRate, timesBurst)
	}
	t.dropped += m.Dropped
	passed := &signal.FrameTimes{Host: signal.FrameHostSender, Clock: m.Clock}
	for _, track := range m.Tracks {
		publication := p.Publication(track.Publication)
		if publication == nil {
			continue
		}
		if d := &publication.Description; track.Tile >= len(d.Tiles) || track.Quality > d.Highest() {
			continue
		}
		if !t.limiter.AllowN(r.now, len(track.Frames)) {
			t.dropped += len(track.Frames)
			continue
		}
		track.Participant = p.Identity
		passed.Tracks = append(passed.Tracks, track)
	}
	passed.Dropped = t.dropped
	for _, other := range r.participants.others(p) {
		if !other.tracing.wanted || other.outbox == nil {
			continue
		}
		passed.Prepare()
		other.send(passed)
		t.dropped = 0
	}
}

// frameTimes has the times of frames that were sent to a connection's receiver.
type frameTimes struct {
	*connection
	frames []egress.FrameTimes
}

// apply implements request.
func (q frameTimes) apply(*Room) {
	p := q.owner
	if !q.present() || !p.tracing.wanted {
		return
	}
	for frames := q.frames; len(frames) > 0; {
		n := min(len(frames), signal.MaxFrameTimes)
		p.send(p.timesMessage(frames[:n]))
		frames = frames[n:]
	}
}

// timesMessage returns a message with the times of frames. Frames of slots with another assignment since are left out.
func (p *participant) timesMessage(frames []egress.FrameTimes) *signal.FrameTimes {
	const width = signal.FrameTimesHead + signal.ServerStamps
	source := signal.ClockSource(p.room.node.config.ClockSource)
	m := &signal.FrameTimes{Host: signal.FrameHostServer, Clock: signal.HostClock{Source: source}}
	numbers := make([]int64, len(frames)*width)
	places := make(map[volumetric.TrackRef]int)
	for i := range frames {
		f := &frames[i]
		track, ok := carried(p.subscriber.Slots, f)
		if !ok {
			continue
		}
		row := numbers[i*width : (i+1)*width : (i+1)*width]
		fillTimes(row, f, p.room.node.config.ClockOffset)
		at, known := places[track]
		if !known {
			at = len(m.Tracks)
			places[track] = at
			m.Tracks = append(m.Tracks, signal.TrackTimes{
				Participant: track.Participant, Publication: track.Publication, Tile: track.Tile,
				Quality: track.Quality,
			})
		}
		m.Tracks[at].Frames = append(m.Tracks[at].Frames, row)
	}
	return m
}

// carried returns the track of a frame, false if its slot has another assignment since.
func carried(slots *subscriber.Slots, f *egress.FrameTimes) (volumetric.TrackRef, bool) {
	s := slots.ByOutput(f.Slot)
	if s == nil || s.Target == nil {
		return volumetric.TrackRef{}, false
	}
	quality, ok := s.Target.Publication.QualityOf(f.Track)
	return volumetric.TrackRef{TileRef: s.Target.Tile, Quality: quality}, ok
}

// fillTimes writes the numbers of a frame: the head, and the timestamps relative to the first timestamp. Clients see
// the clock ahead by the given duration.
func fillTimes(row []int64, f *egress.FrameTimes, ahead time.Duration) {
	stamps := [signal.ServerStamps]int64{
		f.FirstInHardware, f.FirstInKernel, f.FirstIn, f.LastIn,
		f.FirstOut, f.FirstOutKernel, f.FirstOutHardware, f.LastOut,
	}
	first := f.FirstIn
	for _, stamp := range stamps {
		if stamp != 0 {
			first = min(first, stamp)
		}
	}
	first -= first % 1000
	row[0], row[1], row[2] = int64(f.Frame), int64(f.Bytes), (first+int64(ahead))/1000
	for i, stamp := range stamps {
		row[signal.FrameTimesHead+i] = signal.UnknownStamp
		if stamp != 0 {
			row[signal.FrameTimesHead+i] = stamp - first
		}
	}
}
