package gallery

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/peer/picture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// deadline is the time for which the receiver awaits a packet of a picture.
	deadline = 250 * time.Millisecond
	// staleAfter is the age from which the last frame of a tile counts as nothing.
	staleAfter = 500 * time.Millisecond
	// freezeAfter is the time without a frame that counts as a freeze.
	freezeAfter = time.Second
)

// receiver counts the frames of all tiles. Only collect changes the counts.
type receiver struct {
	session  *client.Session
	guests   map[volumetric.PublicationRef]*guest
	pictures map[volumetric.PublicationRef]*picture.Reception

	mu    sync.Mutex
	tiles map[volumetric.TileRef]*showing
	// from is the time from which gaps count.
	from    time.Time
	freezes int
	bytes   int64
	// estimate is the server's last estimate of the downlink.
	estimate volumetric.Bitrate
}

// showing is the state of a tile at the receiver.
type showing struct {
	quality volumetric.Quality
	// off is set while the server sends nothing. Frames that were under way then do not count.
	off bool
	// last is the time of the last frame since the tile was off, zero without one.
	last time.Time
}

func newReceiver(session *client.Session, all []guest) *receiver {
	r := &receiver{
		session: session, guests: make(map[volumetric.PublicationRef]*guest),
		pictures: make(map[volumetric.PublicationRef]*picture.Reception), tiles: make(map[volumetric.TileRef]*showing),
	}
	for i := range all {
		r.guests[all[i].ref()] = &all[i]
	}
	return r
}

// collect reads frames, packets and events until the session ends.
func (r *receiver) collect() {
	frames, packets, events := r.session.Frames(), r.session.Packets(), r.session.Events()
	for frames != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			r.mu.Lock()
			r.bytes += int64(len(f.Data))
			r.shown(f.Track.TileRef, f.Track.Quality, f.Complete)
			r.mu.Unlock()
		case p, open := <-packets:
			if !open {
				packets = nil
				continue
			}
			r.packet(&p)
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			switch e := e.(type) {
			case client.Sending:
				r.sending(&e)
			case client.Bandwidth:
				r.mu.Lock()
				r.estimate = e.Estimate
				r.mu.Unlock()
			}
		}
	}
}

// packet takes a packet of a picture.
func (r *receiver) packet(p *client.Packet) {
	reception := r.pictures[p.Track.PublicationRef]
	if reception == nil {
		reception = picture.NewReception(p.Codec.MIMEType, deadline)
		r.pictures[p.Track.PublicationRef] = reception
	}
	r.mu.Lock()
	r.bytes += int64(len(p.Payload))
	for _, f := range reception.Push(&p.Packet, p.Arrival) {
		if f.Decodable {
			r.shown(p.Track.TileRef, volumetric.QualityOff, f.Complete)
		}
	}
	r.mu.Unlock()
	if reception.WantsKeyFrame(p.Arrival) {
		_ = r.session.RequestKeyFrame(p.Track.TileRef)
	}
}

// shown records a frame that was shown at a time of the server's clock. The quality of a picture is that of the
// server's last message. The caller holds the lock.
func (r *receiver) shown(tile volumetric.TileRef, quality volumetric.Quality, at time.Time) {
	s := r.tile(tile)
	if s.off {
		return
	}
	if quality != volumetric.QualityOff {
		s.quality = quality
	}
	r.gap(s, at)
	s.last = at
}

// tile returns the state of a tile.
func (r *receiver) tile(ref volumetric.TileRef) *showing {
	s := r.tiles[ref]
	if s == nil {
		s = &showing{quality: volumetric.QualityOff}
		r.tiles[ref] = s
	}
	return s
}

// gap counts a freeze that ends at a time. The caller holds the lock.
func (r *receiver) gap(s *showing, at time.Time) {
	begin := s.last
	if begin.Before(r.from) {
		begin = r.from
	}
	if !s.last.IsZero() && !r.from.IsZero() && at.Sub(begin) > freezeAfter {
		r.freezes++
	}
}

// sending records the server's message about the quality of a tile.
func (r *receiver) sending(e *client.Sending) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.tile(e.Track.TileRef)
	if g := r.guests[e.Track.PublicationRef]; g != nil && g.levels != nil || e.Quality == volumetric.QualityOff {
		s.quality = e.Quality
	}
	if s.off = e.Quality == volumetric.QualityOff; s.off {
		s.last = time.Time{}
	}
}

// begin starts counting freezes and bytes.
func (r *receiver) begin(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.from, r.freezes, r.bytes = at, 0, 0
}

// end counts the freezes that have not ended, and returns all freezes, the received bytes and the last estimate.
func (r *receiver) end(at time.Time) (freezes int, bytes int64, estimate volumetric.Bitrate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.tiles {
		r.gap(s, at)
	}
	return r.freezes, r.bytes, r.estimate
}

// shows returns the qualities that are shown at a time of the server's clock, as decisions about a scene of all guests.
func (r *receiver) shows(scene *allocate.Scene, all []guest, at time.Time) [][]allocate.Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return decisions(scene, func(object, tile int) volumetric.Quality {
		s := r.tiles[volumetric.TileRef{PublicationRef: all[object].ref(), Tile: tile}]
		if s == nil || s.last.IsZero() || at.Sub(s.last) > staleAfter {
			return volumetric.QualityOff
		}
		return s.quality
	})
}
