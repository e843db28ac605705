package testbed

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Peer is one client of a Conference. The methods are safe for concurrent use.
type Peer struct {
	Session *client.Session
	// Opened is the time at which the peer began to open the websocket. Connected is closed when media flows.
	Opened    time.Time
	Connected chan struct{}

	conference *Conference
	// stop ends the goroutines in publishing. The goroutine in receiving ends with the session.
	stop       context.CancelFunc
	publishing sync.WaitGroup
	receiving  sync.WaitGroup

	mu          sync.Mutex
	connectedAt time.Time
	tiles       map[volumetric.TileRef]*Reception
	sendings    []client.Sending
	bandwidth   client.Bandwidth
	events      map[string]int
	failure     error
	// admit is Part.Admit.
	admit func(*Peer, Load) bool
	// record is set if arrivals are kept.
	record   bool
	arrivals []Arrival
	// published counts the capture instants of each load.
	published map[string]int64
}

// Arrival is a complete frame whose content was verified.
type Arrival struct {
	Track  volumetric.TrackRef
	Number int64
	// Capture is the capture time and Complete the arrival of the last needed packet, by the server's clock.
	Capture, Complete time.Time
	Bytes             int
}

// Latency returns the time from capture to completion.
func (a Arrival) Latency() time.Duration { return a.Complete.Sub(a.Capture) }

// Reception counts the frames that one peer received of one tile.
type Reception struct {
	Frames  int
	Corrupt int
	// First and Last are the completion times of the first and the last frame. LongestGap is the longest time between
	// two frames.
	First, Last time.Time
	LongestGap  time.Duration
	Quality     volumetric.Quality
	// Number is the highest frame number. A repaired frame may arrive after the frames that follow it.
	Number int64
	// changed is the completion time of the first frame of the present quality.
	changed time.Time
}

// receive reads frames and events until the session ends.
func (p *Peer) receive() {
	frames, events, packets := p.Session.Frames(), p.Session.Events(), p.Session.Packets()
	for frames != nil || events != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			p.take(f)
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			p.note(e)
		case _, open := <-packets:
			if !open {
				packets = nil
			}
		}
	}
}

// take verifies and records a frame.
func (p *Peer) take(f client.Frame) {
	err := verify(f.Data, f.Number, f.Track.Tile, f.Track.Quality)
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.tiles[f.Track.TileRef]
	if r == nil {
		r = &Reception{First: now, Last: now}
		p.tiles[f.Track.TileRef] = r
	}
	if err != nil {
		r.Corrupt++
		p.failure = errors.Join(p.failure, err)
		return
	}
	if p.record {
		p.arrivals = append(p.arrivals, Arrival{f.Track, f.Number, f.Capture, f.Complete, len(f.Data)})
	}
	if r.Frames == 0 || r.Quality != f.Track.Quality {
		r.changed = now
	}
	r.Frames++
	r.LongestGap = max(r.LongestGap, now.Sub(r.Last))
	r.Last, r.Quality, r.Number = now, f.Track.Quality, max(r.Number, f.Number)
}

// note records an event.
func (p *Peer) note(e client.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := e.(type) {
	case client.Connected:
		if p.connectedAt.IsZero() {
			p.connectedAt = time.Now()
			close(p.Connected)
		}
	case client.Sending:
		p.sendings = append(p.sendings, e)
	case client.Bandwidth:
		p.bandwidth = e
	case client.ParticipantJoined:
		p.events["joined"]++
	case client.ParticipantLeft:
		p.events["left"]++
	case client.Interrupted:
		p.events["interrupted"]++
	case client.Resumed:
		p.events["resumed"]++
	case client.Moved:
		p.events["moved"]++
	}
}

// ConnectedAt returns the time at which media began to flow, zero before.
func (p *Peer) ConnectedAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connectedAt
}

// Tile returns the reception of a tile so far.
func (p *Peer) Tile(ref volumetric.TileRef) Reception {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.tiles[ref]; r != nil {
		return *r
	}
	return Reception{}
}

// QualitySince returns the arrival of the first frame at the present quality of a tile. QualitySince returns false if
// the quality differs from the given quality.
func (p *Peer) QualitySince(ref volumetric.TileRef, quality volumetric.Quality) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.tiles[ref]; r != nil && r.Frames > 0 && r.Quality == quality {
		return r.changed, true
	}
	return time.Time{}, false
}

// Tiles returns the reception of every tile so far.
func (p *Peer) Tiles() map[volumetric.TileRef]Reception {
	p.mu.Lock()
	defer p.mu.Unlock()
	tiles := make(map[volumetric.TileRef]Reception, len(p.tiles))
	for ref, r := range p.tiles {
		tiles[ref] = *r
	}
	return tiles
}

// ResetGaps resets the longest gaps to zero.
func (p *Peer) ResetGaps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.tiles {
		r.LongestGap = 0
	}
}

// Sendings returns the server's messages so far about the qualities that this peer is sent.
func (p *Peer) Sendings() []client.Sending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]client.Sending(nil), p.sendings...)
}

// Bandwidth returns the server's latest report about this peer's link, zero before the first.
func (p *Peer) Bandwidth() client.Bandwidth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bandwidth
}

// Arrivals returns all complete frames so far. There are none unless Part.Record was set.
func (p *Peer) Arrivals() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.arrivals)
}

// Published returns the number of frames of a load that were sent so far, of each tile and quality. Frames are numbered
// from 0.
func (p *Peer) Published(load string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published[load]
}

// Count returns the number of events of a kind: "joined", "left" or "resumed".
func (p *Peer) Count(event string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[event]
}

// Failure returns the errors of received frames, nil if all frames were correct.
func (p *Peer) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// publish writes the frames of a load until the context ends: at each capture instant all wanted tiles and qualities.
func (p *Peer) publish(ctx context.Context, load Load, seed uint64) {
	factory := newFrameFactory(load, seed)
	publisher := p.Session.Publisher(load.Name)
	interval := time.Duration(float64(time.Second) / load.Rate)
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	number := uint32(0)
	for next := begin; ; next = next.Add(interval) {
		if p.admit != nil && Await(ctx, "the next frame is admitted", func() bool { return p.admit(p, load) }) != nil {
			return
		}
		// Frames that a stalled machine could not send in time are skipped, as by a camera. No burst follows.
		if late := time.Since(next); late > interval {
			next = next.Add(late.Truncate(interval))
		}
		timer.Reset(time.Until(next))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		written := false
		for tile := range load.Tiles {
			for q := range load.Qualities {
				quality := volumetric.Quality(q)
				if !publisher.Wanted(tile, quality) {
					continue
				}
				frame := client.OutgoingFrame{Number: number, Capture: next, Codec: [4]byte{'l', 'a', 'b', ' '},
					Data: factory.frame(number, tile, quality)}
				taken, _ := publisher.WriteFrame(tile, quality, frame)
				written = written || taken
			}
		}
		if written {
			number++
			p.mu.Lock()
			p.published[load.Name] = int64(number)
			p.mu.Unlock()
		}
	}
}

// StopPublishing ends the peer's loads. When it returns, sent packets may still be in transit.
func (p *Peer) StopPublishing() {
	p.stop()
	p.publishing.Wait()
}

// Leave ends the peer and waits for the goroutines. Further calls have no effect.
func (p *Peer) Leave() {
	p.StopPublishing()
	_ = p.Session.Close()
	p.receiving.Wait()
	p.conference.forget(p)
}
