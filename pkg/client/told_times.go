package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// told takes what sender or server say of frames. Numbers that cannot be are passed over. Of the server's it finds the packet that was quickest on its way here: when it was
// sent by the server's clock, and when it arrived by this host's.
func (t *tracing) told(m *signal.FrameTimes, now time.Time) (sent, arrived time.Time, ok bool) {
	if !t.receiving.Load() {
		return sent, arrived, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	host, stamps := frametimes.Server, frametimes.ServerStamps
	if m.Host == signal.FrameHostSender {
		host, stamps = frametimes.Sender, frametimes.SenderStamps
	}
	part := frametimes.Record{}
	part.Clocks[host] = clockOf(m.Clock)
	for i := range m.Tracks {
		track := &m.Tracks[i]
		key := frametimes.Key{Track: volumetric.TrackRef{
			TileRef: volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: track.Participant, Publication: track.Publication}, Tile: track.Tile},
			Quality: track.Quality,
		}}
		for _, row := range track.Frames {
			if !readRow(row, stamps, &part) {
				continue
			}
			key.Frame = uint32(row[0])
			if host == frametimes.Server {
				// The server counts the prefix, too. How long the tile is the receiver knows.
				part.Bytes = 0
			}
			t.joiner.Add(key, &part, now)
			// Of a frame that the server tells of twice, the second time is about packets that came late, of which the first one here was none: what is known already stays.
			t.joiner.Note(key, func(r *frametimes.Record) {
				at, here := r.Time(frametimes.ServerFirstOut), r.Local(frametimes.FirstReceived)
				if !at.IsZero() && !here.IsZero() && (!ok || at.Sub(here) > sent.Sub(arrived)) {
					sent, arrived, ok = at, here, true
				}
			})
		}
	}
	return sent, arrived, ok
}

// readRow reads the numbers of a frame into a record, and tells whether they can be.
func readRow(row []int64, stamps []frametimes.Stamp, r *frametimes.Record) bool {
	if len(row) != signal.FrameTimesHead+len(stamps) || row[2] <= 0 || row[2] > signal.MaxClockOffset/1000 {
		return false
	}
	r.Bytes = int(row[1])
	for n, after := range row[signal.FrameTimesHead:] {
		r.Times[stamps[n]] = 0
		if after >= 0 && after <= signal.MaxStamp {
			r.Times[stamps[n]] = row[2]*1000 + after
		}
	}
	return true
}

func clockOf(c signal.HostClock) frametimes.Clock {
	return frametimes.Clock{
		Source: frametimes.Source(c.Source), Offset: time.Duration(c.Offset), Bound: time.Duration(c.Bound),
		Uncertainty: time.Duration(c.Uncertainty), Disagreement: time.Duration(c.Disagreement),
	}
}
