package sfu

import (
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// A client that cannot make packets of payload v1, as browsers cannot, sends the frames of its publications over data channels: one for each, under its name. What comes on
// them goes to the track that it is for, where frames are put together, and made packets of.

// dataLines are what a client publishes over data channels. The room adds and removes; the goroutines of channels bring frames.
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
	tracks   []*forward.Injector
	reported bool
}

func newDataLines(log *zap.Logger, limit int) *dataLines {
	return &dataLines{log: log, limit: limit, byName: make(map[string]*dataPublication)}
}

// carriedByData tells whether what a client publishes so comes over a data channel, if it has one: sound has a line of its own like everybody's.
func carriedByData(d *volumetric.Publication) bool {
	return d.Kind == volumetric.KindVideo && d.Codec.Is(volumetric.MIMEVolumetric)
}

// add makes frames of a publication the tracks'.
func (l *dataLines) add(p *publication, ingress *forward.Ingress) {
	made := &dataPublication{description: p.Description}
	for _, track := range p.Tracks {
		made.tracks = append(made.tracks, ingress.NewInjector(track, l.limit))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byName[p.Description.Name] = made
}

// remove ends what came of a publication.
func (l *dataLines) remove(p *publication) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byName, p.Description.Name)
}

// take takes a message of a channel. What is wrong with it is logged once for each publication.
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
		l.log.Warn("a frame over a data channel cannot be taken", zap.String("publication", label), errorField(err))
	}
}

func (p *dataPublication) take(message []byte, now time.Time) error {
	var c payload.Chunk
	if err := c.Unmarshal(message); err != nil {
		return err
	}
	tiles, qualities := len(p.description.Tiles), len(p.description.Qualities)
	if int(c.Tile) >= tiles || int(c.Quality) >= qualities {
		return fmt.Errorf("%w: tile %d of quality %d, the publication has %d × %d", payload.ErrChunk, c.Tile, c.Quality, tiles, qualities)
	}
	return p.tracks[int(c.Tile)*qualities+int(c.Quality)].Chunk(&c, now)
}
