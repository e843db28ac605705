package watch

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/choice"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// failure is a request that the server refused.
type failure struct {
	choices []signal.Choice
	err     error
}

// requests sends the viewer's quality requests. send runs in a goroutine of its own; everything else is owned by the
// viewer's goroutine.
type requests struct {
	log *slog.Logger
	// now returns the time by the server's clock.
	now func() time.Time
	// publications and volumetric are the viewer's maps.
	publications map[volumetric.PublicationRef]volumetric.Publication
	volumetric   map[volumetric.PublicationRef]bool

	tracker *choice.Tracker
	random  *rand.Rand
	// asked has the last requested selection of each tile.
	asked  map[volumetric.TileRef]signal.Selection
	queue  chan []signal.Choice
	failed chan failure
}

func newRequests(v *viewer, seed uint64) *requests {
	return &requests{
		log:          v.log,
		now:          v.now,
		publications: v.publications,
		volumetric:   v.volumetric,
		tracker:      choice.NewTracker(),
		random:       rand.New(rand.NewPCG(seed, 0)),
		asked:        make(map[volumetric.TileRef]signal.Selection),
		queue:        make(chan []signal.Choice, peer.RequestBacklog),
		failed:       make(chan failure, peer.RequestBacklog),
	}
}

// send sends requests in order, each after the reply to the request before, until the context ends.
func (r *requests) send(ctx context.Context, session reception) {
	for {
		select {
		case choices := <-r.queue:
			limited, cancel := context.WithTimeout(ctx, peer.ReplyTimeout)
			err := session.SetQuality(limited, choices...)
			cancel()
			if err == nil || ctx.Err() != nil {
				continue
			}
			select {
			case r.failed <- failure{choices, err}:
			case <-ctx.Done():
			}
		case <-ctx.Done():
			return
		}
	}
}

// ask queues a request and records the time.
func (r *requests) ask(choices []signal.Choice) {
	select {
	case r.queue <- choices:
	default:
		r.log.Warn("too many requests wait for the server's reply; this request is dropped")
		return
	}
	now := r.now()
	r.eachTile(choices, func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, wanted signal.Selection) {
		r.asked[tile] = wanted
		if mode == volumetric.ModeDescriptions {
			for q := range volumetric.Quality(qualities) {
				r.note(volumetric.TrackRef{TileRef: tile, Quality: q}, wanted, wanted.Wants(q), q, now)
			}
			return
		}
		quality := volumetric.QualityOff
		if len(wanted.Qualities) > 0 {
			quality = wanted.Qualities[0]
		}
		r.note(volumetric.TrackRef{TileRef: tile, Quality: volumetric.QualityOff}, wanted,
			quality != volumetric.QualityOff, quality, now)
	})
}

// note records a request in the tracker.
func (r *requests) note(part volumetric.TrackRef, wanted signal.Selection, on bool, quality volumetric.Quality,
	now time.Time) {
	switch {
	case wanted.Auto:
		r.tracker.Withdrawn(part)
	case on:
		r.tracker.Requested(part, quality, now)
	default:
		r.tracker.Requested(part, volumetric.QualityOff, now)
	}
}

// withdraw removes a request that the server refused.
func (r *requests) withdraw(f failure) {
	r.log.Warn("the server refused the choice of qualities", "error", f.err)
	r.eachTile(f.choices, func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, _ signal.Selection) {
		delete(r.asked, tile)
		r.tracker.Withdrawn(volumetric.TrackRef{TileRef: tile, Quality: volumetric.QualityOff})
		for q := range volumetric.Quality(qualities) {
			r.tracker.Withdrawn(volumetric.TrackRef{TileRef: tile, Quality: q})
		}
	})
}

// eachTile calls do for every tile that the choices cover.
func (r *requests) eachTile(choices []signal.Choice,
	do func(tile volumetric.TileRef, mode volumetric.Mode, qualities int, wanted signal.Selection)) {
	for _, c := range choices {
		p, ok := r.publications[c.PublicationRef]
		if !ok {
			continue
		}
		for tile := range p.Tiles {
			if c.Tile == nil || *c.Tile == tile {
				do(volumetric.TileRef{PublicationRef: c.PublicationRef, Tile: tile}, p.Mode, len(p.Qualities),
					c.Quality)
			}
		}
	}
}

// switchAtRandom requests another quality of every tile. In volumetric.ModeDescriptions, the request is for another set
// of descriptions.
func (r *requests) switchAtRandom() {
	var choices []signal.Choice
	for _, ref := range slices.SortedFunc(maps.Keys(r.publications), comparePublications) {
		p := r.publications[ref]
		if !r.volumetric[ref] || len(p.Qualities) < 2 {
			continue
		}
		for tile := range p.Tiles {
			before := r.asked[volumetric.TileRef{PublicationRef: ref, Tile: tile}]
			choices = append(choices, signal.Choice{PublicationRef: ref, Tile: &tile, Quality: r.another(&p, before)})
		}
	}
	if len(choices) > 0 {
		r.ask(choices)
	}
}

// another returns a random selection, uniformly distributed, that differs from before and is not empty.
func (r *requests) another(p *volumetric.Publication, before signal.Selection) signal.Selection {
	for {
		var s signal.Selection
		if p.Mode == volumetric.ModeDescriptions {
			for q := range volumetric.Quality(len(p.Qualities)) {
				if r.random.IntN(2) == 1 {
					s.Qualities = append(s.Qualities, q)
				}
			}
		} else {
			s = signal.Only(volumetric.Quality(r.random.IntN(len(p.Qualities))))
		}
		if len(s.Qualities) > 0 && !slices.Equal(s.Qualities, before.Qualities) {
			return s
		}
	}
}

// forget removes the requests of a publication that has ended.
func (r *requests) forget(ref volumetric.PublicationRef) {
	maps.DeleteFunc(r.asked, func(tile volumetric.TileRef,
		_ signal.Selection) bool {
		return tile.PublicationRef == ref
	})
}
