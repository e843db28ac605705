// Package frametimes passes the times of frames to clients that ask for them: times from publishers, within a rate, and
// times that the server has measured.
package frametimes

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/sfu/presence"
	"github.com/volsfu/volsfu/internal/sfu/roomevent"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// maxRate is the number of frames per second of one publisher whose times are forwarded, and burst the number at
	// once. 30 tiles at 60 frames per second are 1,800, and three qualities of all of them exceed any uplink.
	// A receiver of these times gets 200 kB per second.
	maxRate = 2000
	burst   = 4000
)

// State is a participant's state for times of frames.
type State struct {
	// Wanted is set if the participant asked for times of the frames that it receives, Asked if the server asked the
	// participant for times of its own frames.
	Wanted, Asked bool
	// limiter bounds the times that the participant sends. dropped counts the frames that were left out since the last
	// message to others.
	limiter *rate.Limiter
	dropped int
}

// Limit returns the message for others with the times of a publisher's frames, within the rate limit. Tracks that the
// publisher does not publish are left out. After the message was sent, the caller calls Sent.
func (t *State) Limit(now time.Time, p *presence.Presence, m *signal.FrameTimes) *signal.FrameTimes {
	if t.limiter == nil {
		t.limiter = rate.NewLimiter(maxRate, burst)
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
		if !t.limiter.AllowN(now, len(track.Frames)) {
			t.dropped += len(track.Frames)
			continue
		}
		track.Participant = p.Identity
		passed.Tracks = append(passed.Tracks, track)
	}
	passed.Dropped = t.dropped
	return passed
}

// Sent notes that a message of Limit was sent, with the number of frames that were left out.
func (t *State) Sent() { t.dropped = 0 }

// Clock is the clock of this host as clients see it.
type Clock struct {
	Source signal.ClockSource
	// Ahead is added to the times of this host.
	Ahead time.Duration
}

// Message returns a message with the times of frames that the server has sent. Frames of slots with another assignment
// since are left out.
func (c Clock) Message(slots *subscriber.Slots, frames []egress.FrameTimes) *signal.FrameTimes {
	const width = signal.FrameTimesHead + signal.ServerStamps
	m := &signal.FrameTimes{Host: signal.FrameHostServer, Clock: signal.HostClock{Source: c.Source}}
	numbers := make([]int64, len(frames)*width)
	places := make(map[volumetric.TrackRef]int)
	for i := range frames {
		f := &frames[i]
		track, ok := carried(slots, f)
		if !ok {
			continue
		}
		row := numbers[i*width : (i+1)*width : (i+1)*width]
		fillTimes(row, f, c.Ahead)
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

// Relayed returns the messages with the times of frames of a publication in the nodes before this one: of the tiles
// that the slots carry. The tracks of the publication are by tile × qualities + quality.
func (c Clock) Relayed(slots *subscriber.Slots, qualities int, e *roomevent.Relayed) (messages []*signal.FrameTimes) {
	tiles := make(map[int]bool)
	for _, s := range slots.All() {
		if s.Target != nil && s.Target.Tile.PublicationRef == e.Ref {
			tiles[s.Target.Tile.Tile] = true
		}
	}
	rows := make(map[int][][]int64)
	for i := range e.Frames {
		f := &e.Frames[i]
		if f.Held > signal.MaxStamp-time.Microsecond || !tiles[f.Track/qualities] {
			continue
		}
		in := f.LastIn + int64(c.Ahead)
		after := in % 1000
		rows[f.Track] = append(rows[f.Track], []int64{int64(f.Frame), 0, in / 1000, after, after + int64(f.Held)})
	}
	var m *signal.FrameTimes
	room := 0
	for _, track := range slices.Sorted(maps.Keys(rows)) {
		for frames := rows[track]; len(frames) > 0; {
			if room == 0 {
				m = &signal.FrameTimes{Host: signal.FrameHostRelay, Clock: signal.HostClock{
					Source: signal.ClockEstimated, Offset: int64(e.Offset + c.Ahead), Bound: int64(e.Bound),
					Uncertainty: int64(e.Uncertainty),
				}}
				messages, room = append(messages, m), signal.MaxFrameTimes
			}
			n := min(len(frames), room)
			m.Tracks = append(m.Tracks, signal.TrackTimes{
				Participant: e.Ref.Participant, Publication: e.Ref.Publication, Tile: track / qualities,
				Quality: volumetric.Quality(track % qualities), Frames: frames[:n],
			})
			frames, room = frames[n:], room-n
		}
	}
	return messages
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
