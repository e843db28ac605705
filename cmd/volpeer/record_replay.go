package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
)

// replay sends the tiles of a journal again, with the bytes and at the times that they had, in a loop. Its counts may be asked for while it runs.
type replay struct {
	reader *journal.Reader

	mu     sync.Mutex
	counts produce.Counts
}

var errReplayed = errors.New("--vr2gather: the journal's frames are of another codec than cwi0")

// openReplay opens the source of a publication where that is a journal of encoded tiles, and gives nil for any other.
func openReplay(source string) (*replay, error) {
	path, ok := strings.CutPrefix(source, "replay:")
	if !ok || path == "" {
		return nil, nil
	}
	reader, err := journal.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	if reader.Head().Content != journal.Encoded {
		return nil, reader.Close()
	}
	return &replay{reader: reader}, nil
}

// broadcast describes what will be sent: as the journal does, under the name that the flags give.
func (r *replay) broadcast(p *publication, settings production) (*broadcast, error) {
	description := *r.reader.Head().Publication
	description.Name, description.VR2Gather = p.name, p.vr2gather
	for _, e := range r.reader.Entries() {
		if p.vr2gather && e.Codec != codec.CWI0.FourCC() {
			return nil, fmt.Errorf("%w: %v", errReplayed, e.Codec)
		}
	}
	return &broadcast{producer: r, description: description, sound: settings.sound, pose: settings.pose}, nil
}

// Close implements feed.
func (r *replay) Close() { _ = r.reader.Close() }

// Counts implements feed.
func (r *replay) Counts() produce.Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	r.counts = produce.Counts{}
	return counts
}

// Run implements feed. It ends with the context, which is no error, or when the sink or the file fails.
func (r *replay) Run(ctx context.Context, sink produce.Sink) error {
	entries := r.reader.Entries()
	first, last := entries[0], entries[len(entries)-1]
	span := uint32(0)
	for _, e := range entries {
		span = max(span, uint32(e.Number-first.Number)+1)
	}
	period := last.Captured - first.Captured + time.Duration(float64(time.Second)/r.reader.Head().FrameRate)
	// The first tile leaves now: it was captured a while before.
	base := time.Now().Add(-first.Written)
	var tile journal.Tile
	published := false // anything of the capture under way
	for number := uint32(0); ; number, base = number+span, base.Add(period) {
		for i := range entries {
			e := &entries[i]
			if !sleepUntil(ctx, base.Add(e.Written)) {
				return nil
			}
			sent, err := r.send(i, base.Add(e.Captured), number+uint32(e.Number-first.Number), sink, &tile)
			if err != nil {
				return err
			}
			published = published || sent
			if i+1 == len(entries) || entries[i+1].Number != e.Number {
				r.end(published, e.Written-e.Captured)
				published = false
			}
		}
	}
}

// end counts a capture, whose last tile had been handed over so long after it.
func (r *replay) end(published bool, took time.Duration) {
	r.count(func(c *produce.Counts) {
		c.Captured++
		if !published {
			c.Idle++
			return
		}
		c.Published++
		c.Encode.Add(took)
	})
}

// send hands one tile over, unless nobody wants it, and tells whether it did.
func (r *replay) send(index int, capture time.Time, number uint32, sink produce.Sink, tile *journal.Tile) (bool, error) {
	e := &r.reader.Entries()[index]
	if !sink.Wanted(e.Tile, e.Quality) {
		r.withheld(sink.GaveUp(e.Tile, e.Quality), e.Bytes)
		return false, nil
	}
	if err := r.reader.ReadTile(index, tile); err != nil {
		return false, err
	}
	taken, err := sink.WriteFrame(tile.Tile, tile.Quality, client.OutgoingFrame{Number: number, Capture: capture, Codec: tile.Codec, Data: tile.Data})
	switch {
	case taken:
		r.count(func(c *produce.Counts) { c.Sent++; c.Bytes += int64(len(tile.Data)) })
	case err == nil:
		r.withheld(sink.GaveUp(e.Tile, e.Quality), 0)
		return false, nil
	case errors.Is(err, client.ErrNotConnected):
		r.count(func(c *produce.Counts) { c.Unsent++ })
	default:
		return false, err
	}
	return true, nil
}

// withheld counts a tile that is not sent, and the bytes that were not even read for it.
func (r *replay) withheld(gaveUp bool, saved int) {
	r.count(func(c *produce.Counts) {
		c.Saved += int64(saved)
		if gaveUp {
			c.GivenUp++
		} else {
			c.Paused++
		}
	})
}

func (r *replay) count(change func(*produce.Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.counts)
}

// sleepUntil waits for a time, and tells whether it came before the context ended.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
