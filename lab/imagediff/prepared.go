package imagediff

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/capture/journal"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrPrepared is returned for invalid prepared frames, or an invalid list of shown frames.
var ErrPrepared = errors.New("prepared frames")

// ShownFrame is the quality at which a captured frame was shown.
type ShownFrame struct {
	// Number counts due captures from 0. The prepared frames are played in a loop.
	Number  int64              `json:"number"`
	Quality volumetric.Quality `json:"quality"`
}

// Limits of a list. A line has about 30 bytes; an hour has 108,000 lines.
const (
	maxShownLine = 1 << 10
	maxShown     = 1 << 20
)

// ReadShown reads a list with one JSON object per line. Errors wrap ErrPrepared and name the line.
func ReadShown(from io.Reader) (list []ShownFrame, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxShownLine)
	for line := 1; lines.Scan(); line++ {
		var f ShownFrame
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrPrepared, line, err)
		}
		if f.Number < 0 || f.Quality < 0 || len(list) == maxShown {
			return nil, fmt.Errorf("%w: line %d: expected numbers and qualities from 0 on, and at most %d lines",
				ErrPrepared, line, maxShown)
		}
		list = append(list, f)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPrepared, err)
	}
	return list, nil
}

// Prepared has frames that were prepared in a file and shown at the qualities of a list.
type Prepared struct {
	shown    map[int64]volumetric.Quality
	last     int64
	captures []map[volumetric.Quality]journal.Tile
	decoders map[volumetric.FourCC]codec.Decoder
}

// OpenPrepared reads a journal of encoded frames of one tile.
func OpenPrepared(path string, shown []ShownFrame) (*Prepared, error) {
	reader, err := journal.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	if head := reader.Head(); head.Content != journal.Encoded {
		return nil, fmt.Errorf("%w: %s has %s, expected encoded tiles", ErrPrepared, path, head.Content)
	}
	p := &Prepared{shown: make(map[int64]volumetric.Quality), last: -1,
		decoders: make(map[volumetric.FourCC]codec.Decoder)}
	entries := reader.Entries()
	places := make(map[int64]int)
	for i := range entries {
		e := &entries[i]
		if e.Tile != 0 {
			return nil, fmt.Errorf("%w: %s has several tiles, expected one", ErrPrepared, path)
		}
		if _, known := places[e.Number]; !known {
			places[e.Number] = len(p.captures)
			p.captures = append(p.captures, make(map[volumetric.Quality]journal.Tile))
		}
		var tile journal.Tile
		if err := reader.ReadTile(i, &tile); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		p.captures[places[e.Number]][e.Quality] = tile
	}
	if len(p.captures) == 0 {
		return nil, fmt.Errorf("%w: %s is empty", ErrPrepared, path)
	}
	for _, f := range shown {
		if _, known := p.captures[f.Number%int64(len(p.captures))][f.Quality]; !known {
			return nil, fmt.Errorf("%w: %s has no quality %d of frame %d", ErrPrepared, path, f.Quality, f.Number)
		}
		p.shown[f.Number] = f.Quality
		p.last = max(p.last, f.Number)
	}
	return p, nil
}

// Last implements Received.
func (p *Prepared) Last() int64 { return p.last }

// Has implements Received.
func (p *Prepared) Has(number int64) bool {
	_, ok := p.shown[number]
	return ok
}

// Make implements Received.
func (p *Prepared) Make(into *pointcloud.Cloud, number int64, _ *pointcloud.Cloud) error {
	tile := p.captures[number%int64(len(p.captures))][p.shown[number]]
	if len(tile.Data) == 0 {
		into.Reset()
		return nil
	}
	decoder := p.decoders[tile.Codec]
	if decoder == nil {
		known, err := codec.ByFourCC(tile.Codec)
		if err != nil {
			return err
		}
		decoder = known.NewDecoder()
		p.decoders[tile.Codec] = decoder
	}
	return decoder.Decode(into, tile.Data)
}

// Loop returns a source that plays the first captures of another source in a loop, as many as were prepared.
func (p *Prepared) Loop(source capture.Source) capture.Source {
	return &loop{Source: source, length: len(p.captures)}
}

// loop plays its captures from memory.
type loop struct {
	capture.Source
	length   int
	captures []pointcloud.Cloud
	next     int64
}

// Read implements capture.Source.
func (l *loop) Read(ctx context.Context, frame *capture.Frame) error {
	if len(l.captures) < l.length {
		if err := l.Source.Read(ctx, frame); err != nil {
			return err
		}
		var kept pointcloud.Cloud
		kept.CopyFrom(&frame.Cloud)
		l.captures = append(l.captures, kept)
	} else {
		frame.Cloud.CopyFrom(&l.captures[l.next%int64(l.length)])
	}
	frame.Number = l.next
	l.next++
	return nil
}
