package peer

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward/ingress"
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

	mu     sync.Mutex
	byName map[string]*dataPublication
}

// dataPublication is a publication over a data channel. The mutex guards all fields except the description.
type dataPublication struct {
	description volumetric.Publication

	mu sync.Mutex
	// tracks are indexed by tile × qualities + quality.
	tracks   []*ingress.Injector
	reported bool
}

func newDataLines(log *zap.Logger, limit int) *dataLines {
	return &dataLines{log: log, limit: limit, byName: make(map[string]*dataPublication)}
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
	made := &dataPublication{description: p.Description}
	for _, track := range p.Tracks {
		made.tracks = append(made.tracks, ingress.NewInjector(track, l.limit))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName[p.Description.Name] = made
}

// remove ends the delivery for a publication.
func (l *dataLines) remove(p *subscriber.Publication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, p.Description.Name)
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
	return p.tracks[int(c.Tile)*qualities+int(c.Quality)].Chunk(&c, now)
}
