package produce

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// encoder encodes all tiles of a frame at all qualities, in parallel, and hands each over as soon as it is done. Its workers live until
// close; encode is called by one goroutine.
type encoder struct {
	config  Config
	cutter  *cutter
	workers []*worker
	// jobs are in the order in which they are begun: the largest first, so that no worker is left with a large one at the end.
	jobs  []job
	sizes []int // of the newest frame in bytes, by tile × qualities + quality
	// queue are the jobs in the order of this frame, rest is room for those that do not come first. began tells by tile × qualities + quality which were
	// done in the last frame.
	queue, rest []job
	began       []bool

	// One frame at a time: the fields below are set before the workers are woken, and read again after all have reported.
	frame  *capture.Frame
	number uint32
	sink   Sink
	next   atomic.Int64
	wake   chan struct{}
	busy   sync.WaitGroup
	ended  sync.WaitGroup
}

type job struct{ tile, quality int }

// worker is what one goroutine needs to encode.
type worker struct {
	encoder codec.Encoder
	scratch scratch
	data    []byte
	outcome outcome
}

// outcome is what became of a frame's tiles.
type outcome struct {
	sent, unsent int
	// paused and gaveUp were not encoded, which has saved so many bytes.
	paused, gaveUp, saved int
	// points are those that were encoded, all qualities together; bytes what was sent.
	points, bytes int
	err           error
}

func newEncoder(c Config) (*encoder, error) {
	cutter, err := newCutter(c)
	if err != nil {
		return nil, err
	}
	e := &encoder{
		config: c,
		cutter: cutter,
		sizes:  make([]int, c.Tiles*len(c.Levels)),
		began:  make([]bool, c.Tiles*len(c.Levels)),
		wake:   make(chan struct{}, c.Workers),
	}
	for quality := range slices.Backward(c.Levels) {
		for tile := range c.Tiles {
			e.jobs = append(e.jobs, job{tile, quality})
		}
	}
	for range min(c.Workers, len(e.jobs)) {
		w := &worker{encoder: c.Codec.NewEncoder()}
		e.workers = append(e.workers, w)
		e.ended.Go(func() {
			for range e.wake {
				e.work(w)
				e.busy.Done()
			}
		})
	}
	return e, nil
}

// close ends the workers.
func (e *encoder) close() {
	close(e.wake)
	e.ended.Wait()
}

// encode encodes a frame and returns once every tile of it is handed over.
func (e *encoder) encode(frame *capture.Frame, number uint32, sink Sink) outcome {
	e.cutter.split(&frame.Cloud)
	e.frame, e.number, e.sink = frame, number, sink
	e.arrange()
	e.next.Store(0)
	// A quick worker may be woken twice and a slow one not at all, so outcomes are summed up until all wakes are done.
	for _, w := range e.workers {
		w.outcome = outcome{}
	}
	e.busy.Add(len(e.workers))
	for range e.workers {
		e.wake <- struct{}{}
	}
	e.busy.Wait()
	var sum outcome
	for _, w := range e.workers {
		sum.sent += w.outcome.sent
		sum.unsent += w.outcome.unsent
		sum.paused += w.outcome.paused
		sum.gaveUp += w.outcome.gaveUp
		sum.saved += w.outcome.saved
		sum.points += w.outcome.points
		sum.bytes += w.outcome.bytes
		sum.err = cmp.Or(sum.err, w.outcome.err)
	}
	return sum
}

// work does jobs of the frame until none is left.
func (e *encoder) work(w *worker) {
	for {
		i := int(e.next.Add(1)) - 1
		if i >= len(e.queue) {
			return
		}
		if err := e.do(w, e.queue[i]); err != nil && w.outcome.err == nil {
			w.outcome.err = err
		}
	}
}

// arrange puts what is wanted again before everything else: somebody waits for it, and other qualities of its tile leave after it.
func (e *encoder) arrange() {
	e.queue, e.rest = e.queue[:0], e.rest[:0]
	for _, j := range e.jobs {
		if !e.began[e.track(j)] && e.sink.Wanted(j.tile, volumetric.Quality(j.quality)) {
			e.queue = append(e.queue, j)
		} else {
			e.rest = append(e.rest, j)
		}
	}
	e.queue = append(e.queue, e.rest...)
}

// do encodes one tile at one quality and hands it over, unless it is not wanted.
func (e *encoder) do(w *worker, j job) error {
	quality := volumetric.Quality(j.quality)
	wanted := e.sink.Wanted(j.tile, quality)
	e.began[e.track(j)] = wanted
	if !wanted {
		w.outcome.saved += e.size(j)
		if e.sink.GaveUp(j.tile, quality) {
			w.outcome.gaveUp++
		} else {
			w.outcome.paused++
		}
		return nil
	}
	level := e.config.Levels[j.quality]
	cloud, err := e.cutter.part(j.tile, j.quality, &w.scratch)
	if err != nil {
		return fmt.Errorf("tile %d, quality %q: %w", j.tile, level.Name, err)
	}
	params := codec.Params{PositionBits: level.Bits, Speed: level.Speed, Box: e.config.Box}
	if w.data, err = w.encoder.Encode(w.data[:0], cloud, params); err != nil {
		return fmt.Errorf("tile %d, quality %q: %w", j.tile, level.Name, err)
	}
	e.sizes[e.track(j)] = len(w.data)
	w.outcome.points += cloud.Len()
	err = e.sink.WriteFrame(j.tile, quality, client.OutgoingFrame{
		Number:  e.number,
		Capture: e.frame.Capture,
		Codec:   e.config.Codec.FourCC(),
		Data:    w.data,
	})
	switch {
	case err == nil:
		w.outcome.sent++
		w.outcome.bytes += len(w.data)
	case errors.Is(err, client.ErrNotConnected):
		w.outcome.unsent++
	default:
		return err
	}
	return nil
}

// order sorts the jobs by what they cost in the newest frame.
func (e *encoder) order() {
	slices.SortStableFunc(e.jobs, func(a, b job) int {
		return cmp.Compare(e.size(b), e.size(a))
	})
}

func (e *encoder) size(j job) int { return e.sizes[e.track(j)] }

// track is the index of what a job makes among all tiles and qualities.
func (e *encoder) track(j job) int { return j.tile*len(e.config.Levels) + j.quality }

// bitrates are the nominal rates of one tile at each quality, by the newest frame: the mean over the tiles of what their frames have in bytes,
// prefix and descriptors included.
func (e *encoder) bitrates(frameRate float64) []volumetric.QualityLevel {
	levels := make([]volumetric.QualityLevel, len(e.config.Levels))
	for q, l := range e.config.Levels {
		total := 0
		for tile := range e.config.Tiles {
			data := e.size(job{tile, q}) + payload.PrefixSize
			packets := (data + payload.FragmentSize - 1) / payload.FragmentSize
			total += data + packets*payload.DescriptorSize
		}
		levels[q] = volumetric.QualityLevel{
			Name:    l.Name,
			Bitrate: volumetric.Bitrate(float64(8*total) / float64(e.config.Tiles) * frameRate),
		}
	}
	return levels
}

// nowhere takes all frames and keeps none.
type nowhere struct{}

func (nowhere) Wanted(int, volumetric.Quality) bool { return true }
func (nowhere) GaveUp(int, volumetric.Quality) bool { return false }

func (nowhere) WriteFrame(int, volumetric.Quality, client.OutgoingFrame) error { return nil }
