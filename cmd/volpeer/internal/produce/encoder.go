package produce

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// encoder encodes all tiles of a frame at all qualities in parallel and hands over each tile once encoded. The workers
// run until close. encode is called by one goroutine.
type encoder struct {
	config Config
	// cutter makes the parts of clouds, rasters those of a codec of rasters; the other is nil.
	cutter  *cutter
	rasters *rasterCutter
	tiles   int
	workers []*worker
	// jobs has all jobs in order of decreasing size, so that no worker starts a large job last.
	jobs  []job
	sizes []int // bytes of the newest frame, by tile × qualities + quality
	// queue has the jobs in the order of this frame; rest is scratch memory for that. began has, by tile × qualities +
	// quality, whether the job was wanted in the last frame.
	queue, rest []job
	began       []bool
	// asked has, by the same index, the jobs that are requested in this frame, and points the number of points in the
	// newest frame that was encoded of each.
	asked  []bool
	points []int
	// fresh has, by the same index, the jobs that were encoded in the newest frame.
	fresh []bool

	// model predicts the duration of jobs. schedule selects the qualities for which there is time; costs is scratch
	// memory for it. tuning is nil if no quality has a target bitrate.
	model    *model.Model
	schedule *schedule
	costs    []time.Duration
	tuning   *tuning

	// The encoder works on one frame at a time. The fields below are set before the workers are woken and read after
	// all workers have reported.
	frame    *capture.Frame
	stages   client.Stages
	number   uint32
	sink     Sink
	deadline time.Time // zero means no deadline
	next     atomic.Int64
	wake     chan struct{}
	busy     sync.WaitGroup
	ended    sync.WaitGroup
}

type job struct{ tile, quality int }

// worker is the state of one encoding goroutine.
type worker struct {
	encoder  codec.Encoder
	scratch  scratch
	data     []byte
	outcome  outcome
	observed []model.Observation
}

// outcome counts the results of one frame's tiles.
type outcome struct {
	sent, unsent int
	// paused and gaveUp count tiles that were not sent. Most were not encoded, which saved the number of bytes in
	// saved.
	paused, gaveUp, saved int
	// late counts tiles that were not encoded for lack of time. If dropped is set, no tile was encoded, because a newer
	// capture can be encoded in time.
	late    int
	dropped bool
	// points is the number of encoded points over all qualities, bytes the number of bytes sent.
	points, bytes int
	err           error
}

func newEncoder(c Config) (*encoder, error) {
	// Levels with a target bitrate change.
	c.Levels = slices.Clone(c.Levels)
	e := &encoder{config: c, model: model.New(), costs: make([]time.Duration, c.qualities()),
		wake: make(chan struct{}, c.Workers)}
	if err := e.cut(); err != nil {
		return nil, err
	}
	tracks := e.tiles * c.qualities()
	e.sizes, e.points = make([]int, tracks), make([]int, tracks)
	e.began, e.asked, e.fresh = make([]bool, tracks), make([]bool, tracks), make([]bool, tracks)
	for quality := c.qualities() - 1; quality >= 0; quality-- {
		for tile := range e.tiles {
			e.jobs = append(e.jobs, job{tile, quality})
		}
	}
	for range min(c.Workers, len(e.jobs)) {
		w, err := e.newWorker()
		if err != nil {
			e.close()
			return nil, err
		}
		e.workers = append(e.workers, w)
		e.ended.Go(func() {
			for range e.wake {
				e.work(w)
				e.busy.Done()
			}
		})
	}
	e.schedule = newSchedule(c.qualities(), len(e.workers), c.Limit)
	return e, nil
}

// cut creates the cutter of the codec's content.
func (e *encoder) cut() (err error) {
	if e.config.Rasters != nil {
		if e.rasters, err = newRasterCutter(*e.config.Rasters, e.config.Box); err == nil {
			e.tiles = len(e.rasters.tiles)
		}
		return err
	}
	if e.cutter, err = newCutter(e.config); err == nil {
		e.tiles = len(e.cutter.tiles)
	}
	return err
}

// newWorker returns a worker with the memory for its jobs.
func (e *encoder) newWorker() (*worker, error) {
	w := &worker{encoder: e.config.Codec.NewEncoder()}
	if e.rasters == nil {
		return w, e.cutter.equip(&w.scratch)
	}
	if _, ok := w.encoder.(codec.RasterEncoder); !ok {
		return nil, fmt.Errorf("%w: codec %q encodes clouds, expected a codec of rasters", ErrConfig,
			e.config.Codec.Name())
	}
	return w, nil
}

// split takes a new frame.
func (e *encoder) split(frame *capture.Frame) error {
	if e.rasters != nil {
		return e.rasters.learn(frame)
	}
	return e.cutter.split(&frame.Cloud)
}

// describe describes the tiles.
func (e *encoder) describe() []volumetric.Tile {
	if e.rasters != nil {
		return e.rasters.describe()
	}
	return e.cutter.tiler.Tiles()
}

// close ends the workers.
func (e *encoder) close() {
	close(e.wake)
	e.ended.Wait()
}

// encode encodes a frame and returns when all tiles are handed over. captured is the capture time; with the zero time
// the frame has no time limit.
func (e *encoder) encode(frame *capture.Frame, captured time.Time, number uint32, sink Sink) outcome {
	now := time.Now()
	if captured.IsZero() {
		captured = now
	}
	e.retune(now, sink)
	if err := e.split(frame); err != nil {
		return outcome{err: err}
	}
	e.frame, e.number, e.sink = frame, number, sink
	e.arrange()
	e.stages = client.Stages{Acquired: captured, TilingBegan: now, Tiled: time.Now()}
	if !e.schedule.admit(now.Sub(captured), e.expect()) {
		return outcome{dropped: true}
	}
	if e.deadline = (time.Time{}); e.schedule.limit > 0 {
		e.deadline = captured.Add(e.schedule.limit)
	}
	clear(e.fresh)
	e.next.Store(0)
	// A fast worker may be woken twice and a slow one not at all. Therefore outcomes are added up after all wakes are
	// done.
	for _, w := range e.workers {
		w.outcome = outcome{}
	}
	e.busy.Add(len(e.workers))
	for range e.workers {
		e.wake <- struct{}{}
	}
	e.busy.Wait()
	probed := e.probe(now)
	e.learn()
	e.resize()
	var sum outcome
	for _, w := range e.workers {
		sum.sent += w.outcome.sent
		sum.unsent += w.outcome.unsent
		sum.paused += w.outcome.paused
		sum.gaveUp += w.outcome.gaveUp
		sum.saved += w.outcome.saved
		sum.late += w.outcome.late
		sum.points += w.outcome.points
		sum.bytes += w.outcome.bytes
		sum.err = cmp.Or(sum.err, w.outcome.err)
	}
	sum.err = cmp.Or(sum.err, probed)
	return sum
}

// work runs jobs of the frame until none is left.
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

// arrange moves jobs that are wanted again to the front: a receiver waits for such a tile, and keeps the present
// quality until the tile arrives.
func (e *encoder) arrange() {
	e.queue, e.rest = e.queue[:0], e.rest[:0]
	for _, j := range e.jobs {
		track := e.track(j)
		e.asked[track] = e.began[track] || e.sink.Wanted(j.tile, volumetric.Quality(j.quality))
		if e.asked[track] && !e.began[track] {
			e.queue = append(e.queue, j)
		} else {
			e.rest = append(e.rest, j)
		}
	}
	e.queue = append(e.queue, e.rest...)
}

// do encodes and hands over one tile at one quality, unless the tile is not wanted or there is not enough time.
func (e *encoder) do(w *worker, j job) error {
	quality := volumetric.Quality(j.quality)
	wanted := e.sink.Wanted(j.tile, quality)
	e.began[e.track(j)] = wanted
	if !wanted {
		gaveUp := e.sink.GaveUp(j.tile, quality)
		if !gaveUp || !e.tries(j.quality) {
			w.outcome.saved += e.size(j)
			if gaveUp {
				w.outcome.gaveUp++
			} else {
				w.outcome.paused++
			}
			return nil
		}
	}
	if !e.inTime(j) {
		w.outcome.late++
		return nil
	}
	stages := e.stages
	stages.EncodingBegan = time.Now()
	points, err := e.encodeJob(w, j)
	if err != nil {
		return fmt.Errorf("tile %d, quality %q: %w", j.tile, e.config.qualityName(j.quality), err)
	}
	e.sizes[e.track(j)], e.points[e.track(j)], e.fresh[e.track(j)] = len(w.data), points, true
	w.outcome.points += points
	stages.Encoded = time.Now()
	taken, err := e.sink.WriteFrame(j.tile, quality, client.OutgoingFrame{
		Number:  e.number,
		Capture: e.frame.Capture,
		Codec:   e.config.Codec.FourCC(),
		Data:    w.data,
		Stages:  stages,
	})
	switch {
	case err == nil && !taken && e.sink.GaveUp(j.tile, quality):
		w.outcome.gaveUp++
	case err == nil && !taken:
		w.outcome.paused++
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

// encodeJob encodes one tile at one quality into the worker's memory, and returns the number of points.
func (e *encoder) encodeJob(w *worker, j job) (points int, err error) {
	if e.rasters == nil {
		cloud, err := e.cutter.part(j.tile, j.quality, &w.scratch)
		if err != nil {
			return 0, err
		}
		return cloud.Len(), w.encode(e.config.Codec, cloud, e.params(j.quality))
	}
	return e.encodeRaster(w, e.frame, j.tile, e.rasters.rasters.Levels[j.quality])
}

// encodeRaster encodes a tile of a frame into the worker's memory and records the duration.
func (e *encoder) encodeRaster(w *worker, frame *capture.Frame, tile int, r ladder.Raster) (points int, err error) {
	begun := time.Now()
	w.data, points, err = e.rasters.encode(w.encoder.(codec.RasterEncoder), w.data[:0], frame, tile, r)
	if err == nil {
		w.observe(e.config.Codec, r.Params(), points, time.Since(begun))
	}
	return points, err
}

// inTime reports whether a job may begin: the quality was admitted in this frame, and the predicted end is before the
// deadline.
func (e *encoder) inTime(j job) bool {
	switch {
	case !e.schedule.admitted[j.quality]:
		return false
	case e.deadline.IsZero() || e.schedule.first == j.quality:
		return true
	}
	return !time.Now().Add(e.predict(j).Took).After(e.deadline)
}

// params returns the codec parameters of a quality. Those of a codec of rasters only identify the quality in the model.
func (e *encoder) params(quality int) codec.Params {
	if e.rasters != nil {
		return e.rasters.rasters.Levels[quality].Params()
	}
	return e.levelParams(e.config.Levels[quality])
}

// levelParams returns the codec parameters of a level.
func (e *encoder) levelParams(l ladder.Level) codec.Params {
	return codec.Params{PositionBits: l.Bits, Speed: l.Speed, Box: e.config.Box, ColorQuality: e.config.ColorQuality}
}

// order sorts the jobs by the encoded size in the newest frame, largest first.
func (e *encoder) order() {
	slices.SortStableFunc(e.jobs, func(a, b job) int {
		return cmp.Compare(e.size(b), e.size(a))
	})
}

func (e *encoder) size(j job) int { return e.sizes[e.track(j)] }

// track returns the index of a job's result among all tiles and qualities.
func (e *encoder) track(j job) int { return j.tile*e.config.qualities() + j.quality }

// bitrates returns the nominal bitrate of one tile at each quality: the mean over the tiles of the newest frame's size,
// with prefix and descriptors, times the frame rate.
func (e *encoder) bitrates(frameRate float64) []volumetric.QualityLevel {
	levels := make([]volumetric.QualityLevel, e.config.qualities())
	for q := range levels {
		total := 0
		for tile := range e.tiles {
			data := e.size(job{tile, q}) + payload.PrefixSize
			packets := (data + payload.FragmentSize - 1) / payload.FragmentSize
			total += data + packets*payload.DescriptorSize
		}
		levels[q] = volumetric.QualityLevel{
			Name:    e.config.qualityName(q),
			Bitrate: volumetric.Bitrate(float64(8*total) / float64(e.tiles) * frameRate),
		}
	}
	return levels
}

// nowhere is a Sink that accepts and discards all frames.
type nowhere struct{}

func (nowhere) Wanted(int, volumetric.Quality) bool { return true }
func (nowhere) GaveUp(int, volumetric.Quality) bool { return false }

func (nowhere) WriteFrame(int, volumetric.Quality, client.OutgoingFrame) (bool, error) {
	return true, nil
}
