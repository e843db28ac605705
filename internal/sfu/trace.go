package sfu

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// timesRate is how many frames of one publisher per second have their times passed on, and timesBurst how many at
	// once: 30 tiles at 60 frames per second and all of three qualities are more than anybody's uplink, and a
	// receiver that reads them gets 200 kB per second.
	timesRate  = 2000
	timesBurst = 4000
)

// clock is a time by this host's clock as clients see it, in microseconds since 1970.
func (c *Config) clock(t time.Time) int64 { return t.Add(c.ClockOffset).UnixMicro() }

// tracing is what a participant has to do with times of frames.
type tracing struct {
	// wanted says that it asked for those of the frames that it is sent; asked that it was asked for its own.
	wanted, asked bool
	// limiter bounds what it sends, and dropped counts what was left out since.
	limiter *rate.Limiter
	dropped int
}

// traceRequested takes a receiver's wish for times of frames.
func (r *Room) traceRequested(p *participant, wanted bool) {
	p.trace(wanted && p.receive)
	r.participants.askForTimes()
}

// trace begins or ends the tracing of what the participant is sent. While anybody is traced, the media sockets take
// the kernel's stamps.
func (p *participant) trace(wanted bool) {
	if p.tracing.wanted != wanted {
		p.tracing.wanted = wanted
		p.room.node.endpoint.TakeStamps(wanted)
	}
	p.connection.Receiver.TraceFrames(wanted)
}

// askForTimes tells those who publish whether anybody else wants the times of their frames, where that has changed.
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
		if asked := others > 0; p.profile.Traces && len(p.publications) > 0 && p.tracing.asked != asked {
			p.tracing.asked = asked
			p.send(&signal.Trace{FrameTimes: asked})
		}
	}
}

// tellTrace tells a participant that came back what it may have missed.
func (p *participant) tellTrace() {
	if p.tracing.asked {
		p.send(&signal.Trace{FrameTimes: true})
	}
}

// timesReported passes the times of a publisher's frames on to those who asked, as far as they are of tracks that it
// publishes, and not too many.
func (r *Room) timesReported(p *participant, m *signal.FrameTimes) {
	t := &p.tracing
	if t.limiter == nil {
		t.limiter = rate.NewLimiter(timesRate, timesBurst)
	}
	t.dropped += m.Dropped
	passed := &signal.FrameTimes{Host: signal.FrameHostSender, Clock: m.Clock}
	for _, track := range m.Tracks {
		publication := p.publication(track.Publication)
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
		track.Participant = p.identity
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

// frameTimes bring the times of the frames that a connection's receiver was sent.
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

// timesMessage makes a message of the times of frames. Those of slots that carry something else by now are left out.
func (p *participant) timesMessage(frames []egress.FrameTimes) *signal.FrameTimes {
	const width = signal.FrameTimesHead + signal.ServerStamps
	source := signal.ClockSource(p.room.node.config.ClockSource)
	m := &signal.FrameTimes{Host: signal.FrameHostServer, Clock: signal.HostClock{Source: source}}
	numbers := make([]int64, len(frames)*width)
	places := make(map[volumetric.TrackRef]int)
	for i := range frames {
		f := &frames[i]
		track, ok := p.carried(f)
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

// carried returns the track of a frame, false if its slot carries something else by now.
func (p *participant) carried(f *egress.FrameTimes) (volumetric.TrackRef, bool) {
	s := p.subscriber.Slots.ByOutput(f.Slot)
	if s == nil || s.Target == nil {
		return volumetric.TrackRef{}, false
	}
	quality, ok := s.Target.Publication.QualityOf(f.Track)
	return volumetric.TrackRef{TileRef: s.Target.Tile, Quality: quality}, ok
}

// fillTimes writes a frame's numbers: what stands before the stamps, and the stamps after the first of them, by a
// clock that clients see ahead by so much.
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
