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

// A client that cannot make packets of payload v1, as browsers cannot, sends the frames of its publications over data
// channels: one channel for each publication, under its name. A message goes to the track that it is for, which
// reassembles frames and makes packets of them.

// dataLines are what a client publishes over data channels. The owner adds and removes publications; the goroutines of
// channels bring frames.
type dataLines struct {
	log   *zap.Logger
	limit int

	mu     sync.Mutex
	byName map[string]*dataPublication
}

// dataPublication is one of them. Its mutex guards all but the description.
type dataPublication struct {
	description volumetric.Publication

	mu sync.Mutex
	// tracks are tiles at qualities: of the first tile all qualities, and so on.
	tracks   []*ingress.Injector
	reported bool
}

func newDataLines(log *zap.Logger, limit int) *dataLines {
	return &dataLines{log: log, limit: limit, byName: make(map[string]*dataPublication)}
}

// CarriedByData reports whether a client that has data channels sends a publication over one. Sound has a media line in
// any case.
func CarriedByData(d *volumetric.Publication) bool {
	return d.Kind == volumetric.KindVideo && d.Codec.Is(volumetric.MIMEVolumetric)
}

// AttachData has the frames of a publication that come over a data channel go to its tracks. The client must publish
// over data channels.
func (c *Connection) AttachData(p *subscriber.Publication) { c.data.add(p, c.Ingress) }

// DetachData ends that.
func (c *Connection) DetachData(p *subscriber.Publication) { c.data.remove(p) }

// add has the frames of a publication go to its tracks.
func (l *dataLines) add(p *subscriber.Publication, ingress *ingress.Ingress) {
	made := &dataPublication{description: p.Description}
	for _, track := range p.Tracks {
		made.tracks = append(made.tracks, ingress.NewInjector(track, l.limit))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName[p.Description.Name] = made
}

// remove forgets a publication.
func (l *dataLines) remove(p *subscriber.Publication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, p.Description.Name)
}

// take takes a message of a channel. An error is logged once for each publication.
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
		l.log.Warn("a frame over a data channel cannot be taken", zap.String("publication", label), zap.Error(err))
	}
}

func (p *dataPublication) take(message []byte, now time.Time) error {
	var c payload.Chunk
	if err := c.Unmarshal(message); err != nil {
		return err
	}
	tiles, qualities := len(p.description.Tiles), len(p.description.Qualities)
	if int(c.Tile) >= tiles || int(c.Quality) >= qualities {
		return fmt.Errorf("%w: tile %d of quality %d, the publication has %d × %d", payload.ErrChunk, c.Tile, c.Quality,
			tiles, qualities)
	}
	return p.tracks[int(c.Tile)*qualities+int(c.Quality)].Chunk(&c, now)
}
