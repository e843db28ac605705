// Package replay publishes the encoded tiles of a journal. One goroutine runs a Replay; Counts is safe for concurrent
// use.
package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volpeer/internal/produce"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Replay sends the tiles of a journal with the original bytes and timing, in a loop. Counts may be called during Run.
type Replay struct {
	reader *journal.Reader

	mu     sync.Mutex
	counts produce.Counts
}

var errReplayed = errors.New("--vr2gather: expected a journal with frames of the codec cwi0")

// Open opens the source of a publication if the source is a journal of encoded tiles. For any other source the result
// is nil.
func Open(source string) (*Replay, error) {
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
	return &Replay{reader: reader}, nil
}

// Publication returns the journal's description of the publication under another name. Frames for VR2Gather must be of
// the codec cwi0.
func (r *Replay) Publication(name string, vr2gather bool) (volumetric.Publication, error) {
	description := *r.reader.Head().Publication
	description.Name, description.VR2Gather = name, vr2gather
	for _, e := range r.reader.Entries() {
		if vr2gather && e.Codec != codec.CWI0.FourCC() {
			return volumetric.Publication{}, fmt.Errorf("%w: %v", errReplayed, e.Codec)
		}
	}
	return description, nil
}

// Close closes the journal.
func (r *Replay) Close() { _ = r.reader.Close() }

// Counts returns the counters since the last call.
func (r *Replay) Counts() produce.Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := r.counts
	r.counts = produce.Counts{}
	return counts
}

// Run sends until the context ends, which is not an error, or until the sink or the file fails.
func (r *Replay) Run(ctx context.Context, sink produce.Sink) error {
	entries := r.reader.Entries()
	first, last := entries[0], entries[len(entries)-1]
	span := uint32(0)
	for _, e := range entries {
		span = max(span, uint32(e.Number-first.Number)+1)
	}
	period := last.Captured - first.Captured + time.Duration(float64(time.Second)/r.reader.Head().FrameRate)
	// The first tile is sent now. The capture was earlier by the recorded encoding time.
	base := time.Now().Add(-first.Written)
	var tile journal.Tile
	published := false // whether any tile of the current capture was sent
	for number := uint32(0); ; number, base = number+span, base.Add(period) {
		for i := range entries {
			e := &entries[i]
			if !peer.SleepUntil(ctx, base.Add(e.Written)) {
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

// end counts a capture. took is the time from capture to handing over the last tile.
func (r *Replay) end(published bool, took time.Duration) {
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

// send hands over one tile if the tile is wanted, and reports whether it did.
func (r *Replay) send(index int, capture time.Time, number uint32, sink produce.Sink, tile *journal.Tile) (bool,
	error) {
	e := &r.reader.Entries()[index]
	if !sink.Wanted(e.Tile, e.Quality) {
		r.withheld(sink.GaveUp(e.Tile, e.Quality), e.Bytes)
		return false, nil
	}
	if err := r.reader.ReadTile(index, tile); err != nil {
		return false, err
	}
	taken, err := sink.WriteFrame(tile.Tile, tile.Quality,
		client.OutgoingFrame{Number: number, Capture: capture, Codec: tile.Codec, Data: tile.Data})
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

// withheld counts a tile that was not sent, and the bytes that were not read because of that.
func (r *Replay) withheld(gaveUp bool, saved int) {
	r.count(func(c *produce.Counts) {
		c.Saved += int64(saved)
		if gaveUp {
			c.GivenUp++
		} else {
			c.Paused++
		}
	})
}

func (r *Replay) count(change func(*produce.Counts)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.counts)
}
