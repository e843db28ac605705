package frametrace

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// rows collects the numbers of frames by track, in a message to the server.
type rows struct {
	message *signal.FrameTimes
	numbers []int64
	places  map[volumetric.TrackRef]int
}

func newRows(m *signal.FrameTimes, frames int) *rows {
	if m == nil {
		return nil
	}
	numbers := make([]int64, 0, frames*(signal.FrameTimesHead+signal.SenderStamps))
	return &rows{m, numbers, make(map[volumetric.TrackRef]int)}
}

// add appends the sender's times of a record.
func (w *rows) add(r *frametimes.Record, number uint32) {
	place, known := w.places[r.Track]
	if !known {
		place = len(w.message.Tracks)
		w.places[r.Track] = place
		w.message.Tracks = append(w.message.Tracks, signal.TrackTimes{
			Publication: r.Track.Publication, Tile: r.Track.Tile, Quality: r.Track.Quality,
		})
	}
	first := int64(0)
	for _, stamp := range frametimes.SenderStamps {
		if t := r.Times[stamp]; t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	begin := len(w.numbers)
	w.numbers = append(w.numbers, int64(number), int64(r.Bytes), first/1000)
	for _, stamp := range frametimes.SenderStamps {
		after := int64(signal.UnknownStamp)
		if t := r.Times[stamp]; t > 0 {
			if after = t - first/1000*1000; after > signal.MaxStamp {
				after = signal.UnknownStamp
			}
		}
		w.numbers = append(w.numbers, after)
	}
	track := &w.message.Tracks[place]
	track.Frames = append(track.Frames, w.numbers[begin:len(w.numbers):len(w.numbers)])
}

// Told processes the times of frames from their sender, from the server or from the servers before it. Impossible
// numbers are ignored. Of a message about the server's times, Told returns the send time by the server's clock and the
// arrival time by this host's clock of the packet with the shortest transit time. ok is false if there is no such
// packet.
func (c *Collector) Told(m *signal.FrameTimes, now time.Time) (sent, arrived time.Time, ok bool) {
	if !c.receiving.Load() {
		return sent, arrived, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	host, stamps, known := hostOf(m.Host)
	if !known {
		return sent, arrived, false
	}
	part := frametimes.Record{}
	part.Clocks[host] = clockFromSignal(m.Clock)
	for i := range m.Tracks {
		track := &m.Tracks[i]
		publication := volumetric.PublicationRef{Participant: track.Participant, Publication: track.Publication}
		key := frametimes.Key{Track: volumetric.TrackRef{
			TileRef: volumetric.TileRef{PublicationRef: publication, Tile: track.Tile},
			Quality: track.Quality,
		}}
		for _, row := range track.Frames {
			if !readRow(row, stamps, &part) {
				continue
			}
			key.Frame = uint32(row[0])
			if host != frametimes.Sender {
				// The server counts the prefix, too. The receiver knows the size of the tile.
				part.Bytes = 0
			}
			c.joiner.Add(key, &part, now)
			// The server's second report of a frame is about late packets, to which the first arrival time here does
			// not belong. The joiner keeps the times of the first report.
			c.joiner.Note(key, func(r *frametimes.Record) {
				at, here := r.Time(frametimes.ServerFirstOut), r.Local(frametimes.FirstReceived)
				if !at.IsZero() && !here.IsZero() && (!ok || at.Sub(here) > sent.Sub(arrived)) {
					sent, arrived, ok = at, here, true
				}
			})
		}
	}
	return sent, arrived, ok
}

// hostOf returns the host of a message and its stamps. known is false for hosts that only later servers name.
func hostOf(h signal.FrameHost) (host frametimes.Host, stamps []frametimes.Stamp, known bool) {
	switch h {
	case signal.FrameHostSender:
		return frametimes.Sender, frametimes.SenderStamps, true
	case signal.FrameHostServer:
		return frametimes.Server, frametimes.ServerStamps, true
	case signal.FrameHostRelay:
		return frametimes.Relay, frametimes.RelayStamps, true
	}
	return 0, nil, false
}

// readRow reads the numbers of a frame into a record, and reports whether they are possible.
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

func clockFromSignal(c signal.HostClock) frametimes.Clock {
	return frametimes.Clock{
		Source: frametimes.Source(c.Source), Offset: time.Duration(c.Offset), Bound: time.Duration(c.Bound),
		Uncertainty: time.Duration(c.Uncertainty), Disagreement: time.Duration(c.Disagreement),
	}
}

func clockToSignal(c frametimes.Clock) signal.HostClock {
	return signal.HostClock{
		Source: signal.ClockSource(c.Source), Offset: int64(c.Offset), Bound: int64(c.Bound),
		Uncertainty: int64(c.Uncertainty), Disagreement: int64(c.Disagreement),
	}
}
