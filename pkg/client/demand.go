package client

import (
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// sizeShare is the weight of a frame in the mean size of its track's: a quarter of a second at 30 frames per second. intervalShare is that of an interval.
	sizeShare     = 1. / 8
	intervalShare = 1. / 16
	// shortestInterval is what is taken for another tile of the same frame: cameras have 90 frames per second at most, and programs may stamp each tile by itself.
	shortestInterval = 4 * time.Millisecond
	// longestInterval is what is taken for a pause.
	longestInterval = time.Second
)

// trackState is what is known of one track of a publication. It belongs to media's lock.
type trackState struct {
	// unwanted says that nobody takes it, gaveUp that the uplink does not carry it.
	unwanted, gaveUp bool
	// size is what a frame takes on the wire, in bytes, 0 before the first one.
	size float64
	// resumption is set while it is wanted again and has not been sent.
	resumption resumption
}

// rate is what the track takes on the wire in bit/s, as it was measured last, or as it was announced; 0 where neither is known.
func (p *Publisher) rate(track int) float64 {
	if size := p.tracks[track].size; size > 0 {
		return 8 * size / p.interval.Seconds()
	}
	nominal := float64(p.publication.Qualities[track%len(p.publication.Qualities)].Bitrate)
	return nominal * (payload.FragmentSize + payload.DescriptorSize + congestion.PacketOverhead) / (payload.FragmentSize + payload.DescriptorSize)
}

// measure takes note of a frame, whether or not it is sent: of its size on the wire and of when it was captured.
func (p *Publisher) measure(track int, capture time.Time, size int) {
	t := &p.tracks[track]
	if t.size == 0 {
		t.size = float64(size)
	} else {
		t.size += (float64(size) - t.size) * sizeShare
	}
	// Captures are the publication's, whichever tracks they are sent on: those that pause say nothing.
	passed := capture.Sub(p.latest)
	if !p.latest.IsZero() && passed < shortestInterval {
		return
	}
	if !p.latest.IsZero() && passed < longestInterval {
		// One that is missing is no slower rate.
		p.interval += time.Duration(float64(min(passed, 2*p.interval)-p.interval) * intervalShare)
	}
	p.latest = capture
}

// takes measures a frame of a track and tells whether it is to be sent. The error is ErrNotConnected.
func (p *Publisher) takes(track int, capture time.Time, size int) (bool, error) {
	m := p.session.media
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.lines[track] == nil || !m.connected || m.ended {
		return false, ErrNotConnected
	}
	p.measure(track, capture, size)
	if m.planned.IsZero() && m.uplink.numbers() {
		// Nothing has been decided yet: the first frame is not to go out and the second to be given up.
		m.weigh(time.Now())
	}
	switch t := &p.tracks[track]; {
	case t.gaveUp:
		m.counts.GivenUp++
	case t.unwanted:
		m.counts.Paused++
	default:
		return true, nil
	}
	return false, nil
}

// maxBudget bounds how long frames of slow publications wait for the uplink: at 10 frames per second it is one interval.
const maxBudget = 100 * time.Millisecond

// budgetOf is how long a frame of a publication may wait for the uplink, as configured: one frame interval by default, since the next one is there then. Audio
// always leaves.
func budgetOf(publication volumetric.Publication, interval, configured time.Duration) time.Duration {
	switch {
	case publication.Kind == volumetric.KindAudio:
		return 0
	case configured > 0:
		return configured
	case !publication.Codec.Is(volumetric.MIMEVolumetric):
		return foreignBudget
	}
	return min(interval, maxBudget)
}

// frameSize is what a frame of payload v1 of that length, the prefix included, takes on the wire.
func frameSize(length int) int {
	return length + payload.SourceFragments(length)*(payload.DescriptorSize+congestion.PacketOverhead)
}

// packetsSize is what RTP payloads take on the wire.
func packetsSize(payloads [][]byte) int {
	size := len(payloads) * congestion.PacketOverhead
	for _, body := range payloads {
		size += len(body)
	}
	return size
}

// Wanted tells whether a tile is to be encoded and written at a quality: whether somebody takes it, as far as the server has said, and the uplink
// carries it. Frames of others are not sent. It is to be asked for each frame; the event Wanted, or Uplink, says that answers have changed.
func (p *Publisher) Wanted(tile int, quality volumetric.Quality) bool {
	if !p.has(tile, quality) {
		return false
	}
	m := p.session.media
	m.mu.Lock()
	defer m.mu.Unlock()
	track := p.index(tile, quality)
	if t := &p.tracks[track]; t.unwanted || t.gaveUp {
		return false
	}
	p.announce(track, time.Now())
	return true
}

// GaveUp tells whether a tile is not sent at a quality because the uplink cannot carry it beside what is worth more.
func (p *Publisher) GaveUp(tile int, quality volumetric.Quality) bool {
	if !p.has(tile, quality) {
		return false
	}
	m := p.session.media
	m.mu.Lock()
	defer m.mu.Unlock()
	return p.tracks[p.index(tile, quality)].gaveUp
}

// want takes which qualities of each tile, and how much parity, the server wants. Tiles that are not named are not wanted.
func (p *Publisher) want(w signal.WantedPublication) Wanted {
	p.setParity(w.Parity)
	m := p.session.media
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := make([]bool, len(p.tracks))
	for tile, qualities := range w.Tiles {
		for _, quality := range qualities {
			if p.has(tile, quality) {
				wanted[p.index(tile, quality)] = true
			}
		}
	}
	now := time.Now()
	for i := range p.tracks {
		t := &p.tracks[i]
		if wanted[i] != t.unwanted {
			continue
		}
		t.unwanted, t.resumption = !wanted[i], resumption{due: wanted[i]}
		p.reorder(i, now)
	}
	m.planned = time.Time{}
	m.wakeSender()
	return Wanted{Publication: w.Publication, Tiles: w.Tiles, Parity: w.Parity}
}
