package peer

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/injection"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Browsers cannot make packets of payload v1. They send the frames of their publications over data channels: one
// channel for each publication, with the publication's name. Each message belongs to one track, which reassembles
// frames and packetises them.

// dataLines are the publications of a client that publishes over data channels. The owner adds and removes
// publications; the goroutines of channels deliver messages.
type dataLines struct {
	log   *zap.Logger
	limit int
	peer  dataPeer
	// guard confines a panic to the connection, which failed ends.
	guard  *panics.Guard
	failed func()

	mu     sync.Mutex
	byName map[string]*dataPublication
}

// dataPeer is the peer connection of a client that publishes over data channels.
type dataPeer interface {
	// RTT returns the round-trip time, 0 if it is unknown.
	RTT() time.Duration
	// Reply sends a message on the channel that the client opened with a label. The message may be lost.
	Reply(label string, message []byte)
}

// dataPublication is a publication over a data channel. The mutex guards the fields below it.
type dataPublication struct {
	description volumetric.Publication
	requests    *chunkRequests

	mu sync.Mutex
	// tracks are indexed by tile × qualities + quality.
	tracks   []*injection.Injector
	reported bool
}

func newDataLines(config *Config, peer dataPeer, owner Owner) *dataLines {
	return &dataLines{log: config.Log, limit: config.FrameBytes, peer: peer, guard: config.Guard,
		failed: func() { owner.ConnectionFailed(ErrPanicked) }, byName: make(map[string]*dataPublication)}
}

// CarriedByData reports whether a client with data channels sends a publication over a data channel. Audio always has a
// media line.
func CarriedByData(d *volumetric.Publication) bool {
	return d.Kind == volumetric.KindVideo && d.Codec.Is(volumetric.MIMEVolumetric)
}

// AttachData delivers the frames of a publication from its data channel to its tracks. The client must publish over
// data channels.
func (c *Connection) AttachData(p *subscriber.Publication) { c.data.add(p, c.Ingress) }

// DetachData ends the delivery.
func (c *Connection) DetachData(p *subscriber.Publication) { c.data.remove(p) }

// add delivers the frames of a publication to its tracks.
func (l *dataLines) add(p *subscriber.Publication, ingress *ingress.Ingress) {
	name := p.Description.Name
	made := &dataPublication{
		description: p.Description,
		requests: &chunkRequests{
			rtt: l.peer.RTT, send: func(message []byte) { l.peer.Reply(name, message) }, guard: l.guard,
			failed: l.failed, missing: newMissingChunks(),
		},
	}
	for _, track := range p.Tracks {
		made.tracks = append(made.tracks, ingress.NewInjector(track, l.limit))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.byName[name]; before != nil {
		before.requests.end()
	}
	l.byName[name] = made
}

// remove ends the delivery for a publication.
func (l *dataLines) remove(p *subscriber.Publication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if removed := l.byName[p.Description.Name]; removed != nil {
		removed.requests.end()
		delete(l.byName, p.Description.Name)
	}
}

// close ends the delivery for all publications.
func (l *dataLines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.byName {
		p.requests.end()
	}
}

// take handles a message of a channel. An error is logged once for each publication.
func (l *dataLines) take(label string, message []byte, now time.Time) {
	l.mu.Lock()
	p := l.byName[label]
	l.mu.Unlock()
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.take(message, now)
	if err != nil && !p.reported {
		p.reported = true
		l.log.Warn("a frame over a data channel was rejected", zap.String("publication", label), zap.Error(err))
	}
}

func (p *dataPublication) take(message []byte, now time.Time) error {
	var c payload.Chunk
	if err := c.Unmarshal(message); err != nil {
		return err
	}
	tiles, qualities := len(p.description.Tiles), len(p.description.Qualities)
	if int(c.Tile) >= tiles || int(c.Quality) >= qualities {
		return fmt.Errorf("%w: tile %d of quality %d, the publication has %d tiles and %d qualities",
			payload.ErrChunk, c.Tile, c.Quality, tiles, qualities)
	}
	if c.Numbered {
		p.requests.received(&c, now)
	}
	return p.tracks[int(c.Tile)*qualities+int(c.Quality)].Chunk(&c, now)
}
