package client

import (
	"time"

	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Stages are when the stages of a frame before it was handed over were reached, by this host's clock; zero where that is not known.
type Stages struct {
	Acquired, TilingBegan, Tiled, EncodingBegan, Encoded time.Time
}

// sentTimes are those of a frame that is sent. The sending goroutine fills them in.
type sentTimes struct {
	publisher *Publisher
	track     int
	number    uint32
	bytes     int
	capture   time.Time
	stages    Stages

	first, segment, last time.Time
	// ssrc and sequence are the first packet's.
	ssrc     uint32
	sequence uint16
}

// mark says what a packet is to the times of its frame.
type mark uint8

const (
	markFirst mark = 1 << iota
	markSegment
	markLast
)

// segmentPackets are the packets that hold a frame's first segment.
const segmentPackets = (frametimes.SegmentBytes + 1143) / 1144

// mark marks a packet of the frame if a stamp is taken of the packet, which is the one with an index among so many.
func (t *sentTimes) mark(o *outgoing, index, packets int) {
	if t == nil {
		return
	}
	if index == 0 {
		o.mark |= markFirst
		t.ssrc, t.sequence = o.header.SSRC, o.header.SequenceNumber
	}
	if index == min(segmentPackets, packets)-1 {
		o.mark |= markSegment
	}
	if index == packets-1 {
		o.mark |= markLast
	}
	if o.mark != 0 {
		o.times = t
	}
}

// leaves notes that a packet is handed to the socket.
func (t *sentTimes) leaves(m mark, now time.Time) {
	if m&markFirst != 0 {
		t.first = now
	}
	if m&markSegment != 0 {
		t.segment = now
	}
	if m&markLast != 0 {
		t.last = now
	}
}

// record is what the sender knows of a frame.
func (t *sentTimes) record(identity string, clock frametimes.Clock, shift time.Duration) frametimes.Record {
	description := &t.publisher.publication
	r := frametimes.Record{Frame: int64(t.number), Bytes: t.bytes}
	r.Track.Participant, r.Track.Publication = identity, description.Name
	r.Track.Tile, r.Track.Quality = t.track/len(description.Qualities), volumetric.Quality(t.track%len(description.Qualities))
	r.Clocks[frametimes.Sender] = clock
	for stamp, at := range map[frametimes.Stamp]time.Time{
		frametimes.Captured: t.capture, frametimes.Acquired: t.stages.Acquired, frametimes.TilingBegan: t.stages.TilingBegan, frametimes.Tiled: t.stages.Tiled,
		frametimes.EncodingBegan: t.stages.EncodingBegan, frametimes.Encoded: t.stages.Encoded,
		frametimes.FirstSent: t.first, frametimes.FirstSegmentSent: t.segment, frametimes.LastSent: t.last,
	} {
		if !at.IsZero() {
			r.SetLocal(stamp, at.Add(shift))
		}
	}
	return r
}

// rows collects the numbers of frames by track.
type rows struct {
	message *signal.FrameTimes
	numbers []int64
	places  map[volumetric.TrackRef]int
}

func newRows(m *signal.FrameTimes, frames int) *rows {
	if m == nil {
		return nil
	}
	return &rows{m, make([]int64, 0, frames*(signal.FrameTimesHead+signal.SenderStamps)), make(map[volumetric.TrackRef]int)}
}

// add appends what a record says of the sender.
func (w *rows) add(r *frametimes.Record, number uint32) {
	place, known := w.places[r.Track]
	if !known {
		place = len(w.message.Tracks)
		w.places[r.Track] = place
		w.message.Tracks = append(w.message.Tracks, signal.TrackTimes{Publication: r.Track.Publication, Tile: r.Track.Tile, Quality: r.Track.Quality})
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
