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

// Peer is one client of a Conference. Its methods are safe for concurrent use.
type Peer struct {
	Session *client.Session
	// Opened is when it began to open its websocket, Connected is closed when media flows.
	Opened    time.Time
	Connected chan struct{}

	conference *Conference
	// stop ends what publishing counts; receiving ends with the session.
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
	// record says that arrivals are kept.
	record   bool
	arrivals []Arrival
	// published counts the capture instants of each load.
	published map[string]int64
}

// Arrival is one whole frame that came as it was sent.
type Arrival struct {
	Track  volumetric.TrackRef
	Number int64
	// Capture and Complete are when it was captured and when its last packet came that was needed, by the server's
	// clock.
	Capture, Complete time.Time
	Bytes             int
}

// Latency is from capture to completion.
func (a Arrival) Latency() time.Duration { return a.Complete.Sub(a.Capture) }

// Reception is what one peer received of one tile.
type Reception struct {
	Frames  int
	Corrupt int
	// First and Last are when the first and the last frame were complete; LongestGap is the longest time between two.
	First, Last time.Time
	LongestGap  time.Duration
	Quality     volumetric.Quality
	Number      int64
	// changed is when the first frame of the present quality was complete.
	changed time.Time
}

// receive takes frames and events until the session ends.
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

// take verifies and books a frame.
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
	r.Last, r.Quality, r.Number = now, f.Track.Quality, f.Number
}

// note books an event.
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
	case client.Resumed:
		p.events["resumed"]++
	}
}

// ConnectedAt is when media began to flow, zero before.
func (p *Peer) ConnectedAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.connectedAt
}

// Tile is what was received of a tile so far.
func (p *Peer) Tile(ref volumetric.TileRef) Reception {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.tiles[ref]; r != nil {
		return *r
	}
	return Reception{}
}

// QualitySince is when the first frame came of the quality that a tile is received at, if that is the given one.
func (p *Peer) QualitySince(ref volumetric.TileRef, quality volumetric.Quality) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.tiles[ref]; r != nil && r.Frames > 0 && r.Quality == quality {
		return r.changed, true
	}
	return time.Time{}, false
}

// Tiles is what was received of every tile so far.
func (p *Peer) Tiles() map[volumetric.TileRef]Reception {
	p.mu.Lock()
	defer p.mu.Unlock()
	tiles := make(map[volumetric.TileRef]Reception, len(p.tiles))
	for ref, r := range p.tiles {
		tiles[ref] = *r
	}
	return tiles
}

// ResetGaps begins to measure the longest gaps anew.
func (p *Peer) ResetGaps() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.tiles {
		r.LongestGap = 0
	}
}

// Sendings are the server's messages so far about what this peer is sent.
func (p *Peer) Sendings() []client.Sending {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]client.Sending(nil), p.sendings...)
}

// Bandwidth is what the server has said last of this peer's link, zero before.
func (p *Peer) Bandwidth() client.Bandwidth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bandwidth
}

// Arrivals are all whole frames so far. There are none unless Part.Record was set.
func (p *Peer) Arrivals() []Arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.arrivals)
}

// Published is how many frames of each tile and quality of a load were sent so far. They are numbered from 0.
func (p *Peer) Published(load string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.published[load]
}

// Count is how often an event came: "joined", "left" or "resumed".
func (p *Peer) Count(event string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[event]
}

// Failure is what was wrong with frames, nil where all were as they were sent.
func (p *Peer) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// publish writes the frames of a load, all tiles and qualities of one capture instant that somebody takes at once,
// until the context ends.
func (p *Peer) publish(ctx context.Context, load Load, seed uint64) {
	factory := newFrameFactory(load, seed)
	publisher := p.Session.Publisher(load.Name)
	interval := time.Duration(float64(time.Second) / load.Rate)
	begin := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	number := uint32(0)
	for next := begin; ; next = next.Add(interval) {
		// What a stalled machine could not send in time is left out, as a camera would: no burst follows.
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

// StopPublishing ends the peer's loads. What it has sent is still on its way when it returns.
func (p *Peer) StopPublishing() {
	p.stop()
	p.publishing.Wait()
}

// Leave ends the peer and waits for its goroutines. More calls do nothing.
func (p *Peer) Leave() {
	p.StopPublishing()
	_ = p.Session.Close()
	p.receiving.Wait()
	p.conference.forget(p)
}
