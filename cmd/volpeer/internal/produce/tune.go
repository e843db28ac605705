package produce

import (
	"fmt"
	"math"
	"time"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/model"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Uplink is implemented by a Sink that has an estimate of the network's capacity. Uplink returns 0 if the estimate is
// unknown. Qualities with a target bitrate follow the target.
type Uplink interface {
	Uplink() volumetric.Bitrate
}

const (
	// busy is the fraction of processor time that qualities with a target bitrate may use. The rest is left for
	// capture, tiling and sending.
	busy = 0.7
	// rounds is the number of rounds in which rungs are searched before the first frame: one encoding with all
	// candidates, three with the selected candidates.
	rounds = 4
	// trialFrames is the number of frames that are encoded and handed over of a quality that was given up and has
	// become smaller since. These tiles are not sent, but the client measures the rate of a track from the tiles with a
	// weight of 1/8 per frame. After 32 frames, the old rate has a weight of 1.4 %, and the quality returns if the
	// network can carry the new rate.
	trialFrames = 32
)

// tuning keeps the qualities with a target bitrate at that rate. The tuning is owned by the encoding goroutine.
type tuning struct {
	tuner *ladder.Tuner
	// qualities has the indices of the tuned qualities. wanted has, for each such quality, whether any tile is wanted.
	// trials has, by quality, the number of frames that are encoded although the quality was given up.
	qualities []int
	wanted    []bool
	trials    []int
	// rasters is the source of a codec of rasters, or nil. probed is the time of the newest probe, and probes their
	// number.
	rasters *ladder.RasterSource
	probed  time.Time
	probes  int
}

// probeInterval is the interval at which a tile is encoded at the next finer choice of a codec of rasters. Only probes
// show that a finer choice has become smaller, because other choices are not encoded.
const probeInterval = time.Second

// tune finds the rungs of the qualities with a target bitrate, by encoding a capture with many parameters. Without such
// qualities, tune does nothing.
func (e *encoder) tune(frame *capture.Frame, frameRate float64) error {
	t := &tuning{}
	wishes := e.wishes(t)
	if len(wishes) == 0 {
		return nil
	}
	source, trials, try, err := e.search(t, frame, frameRate, wishes)
	if err != nil {
		return err
	}
	for range rounds {
		if err := try(trials); err != nil {
			return err
		}
		tuner, ok := ladder.NewTuner(source, wishes, e.model)
		if !ok {
			return fmt.Errorf("%w: the captured frame has no points, which bitrates require", ErrConfig)
		}
		t.tuner, trials = tuner, tuner.Rungs()
	}
	t.wanted, t.trials = make([]bool, len(wishes)), make([]int, e.config.qualities())
	e.tuning = t
	e.takeRungs()
	return nil
}

// wishes returns the wishes of the qualities with a bitrate and notes the qualities.
func (e *encoder) wishes(t *tuning) (wishes []ladder.Wish) {
	for q := range e.config.qualities() {
		w := ladder.Wish{}
		if e.rasters != nil {
			w.Target = e.rasters.rasters.Levels[q].Rate
		} else {
			l := &e.config.Levels[q]
			w = ladder.Wish{Target: l.Rate, Bits: l.Bits, Speed: l.Speed}
		}
		if w.Target > 0 {
			wishes = append(wishes, w)
			t.qualities = append(t.qualities, q)
		}
	}
	return wishes
}

// search returns the content for package ladder, the rungs to encode first, and a function that encodes the frame with
// rungs.
func (e *encoder) search(t *tuning, frame *capture.Frame, frameRate float64, wishes []ladder.Wish) (ladder.Finder,
	[]ladder.Rung, func([]ladder.Rung) error, error) {
	if e.rasters != nil {
		source, err := e.rasterSource(frame, frameRate, len(wishes))
		if err != nil {
			return nil, nil, nil, err
		}
		t.rasters = source
		return source, source.Trials(), func(rungs []ladder.Rung) error { return e.tryRasters(frame, rungs) }, nil
	}
	source, err := e.ladderSource(&frame.Cloud, frameRate, len(wishes))
	if err != nil {
		return nil, nil, nil, err
	}
	var trials []ladder.Rung
	for _, wish := range wishes {
		trials = append(trials, source.Trials(wish)...)
	}
	return &source, trials, func(rungs []ladder.Rung) error { return e.try(source, rungs) }, nil
}

// ladderSource describes the encoded content to package ladder.
func (e *encoder) ladderSource(cloud *pointcloud.Cloud, frameRate float64, rungs int) (ladder.Source, error) {
	if cloud.Len() == 0 || frameRate <= 0 {
		return ladder.Source{},
			fmt.Errorf("%w: %d points at %g frames per second, expected more than 0 of both for bitrates", ErrConfig,
				cloud.Len(), frameRate)
	}
	// A voxel of four points is twice as wide as the distance of two points.
	var voxels pointcloud.VoxelGrid
	edge, err := voxels.EdgeFor(cloud, max(1, cloud.Len()/4))
	if err != nil {
		return ladder.Source{}, err
	}
	return ladder.Source{
		Codec: e.config.Codec, Params: codec.Params{Box: e.config.Box, ColorQuality: e.config.ColorQuality},
		Tiles: len(e.cutter.tiles), FrameRate: frameRate, Points: cloud.Len(), Spacing: edge / 2,
		Budget: e.budget(frameRate, rungs), TileOverhead: tileOverhead, PacketOverhead: packetOverhead,
	}, nil
}

const (
	// tileOverhead is the prefix of a frame and half of a descriptor on average, in bytes, and packetOverhead that of
	// descriptors relative to the data.
	tileOverhead   = payload.PrefixSize + payload.DescriptorSize/2
	packetOverhead = float64(payload.DescriptorSize) / payload.FragmentSize
)

// budget returns the time of all processors for one of the rungs of a frame.
func (e *encoder) budget(frameRate float64, rungs int) time.Duration {
	return time.Duration(busy * float64(time.Second) / frameRate * float64(len(e.workers)) / float64(rungs))
}

// rasterSource describes the content of a codec of rasters to package ladder.
func (e *encoder) rasterSource(frame *capture.Frame, frameRate float64, rungs int) (*ladder.RasterSource, error) {
	points := 0
	for i := range frame.Rasters {
		for _, d := range frame.Rasters[i].Depth {
			if d != 0 {
				points++
			}
		}
	}
	if points == 0 || frameRate <= 0 {
		return nil, fmt.Errorf("%w: %d points at %g frames per second, expected more than 0 of both for bitrates",
			ErrConfig, points, frameRate)
	}
	return &ladder.RasterSource{Codec: e.config.Codec, Tiles: e.tiles, FrameRate: frameRate, Points: points,
		Budget: e.budget(frameRate, rungs), TileOverhead: tileOverhead, PacketOverhead: packetOverhead}, nil
}

// tryRasters encodes all tiles of a frame with the rasters of rungs.
func (e *encoder) tryRasters(frame *capture.Frame, rungs []ladder.Rung) error {
	for _, r := range rungs {
		for tile := range e.tiles {
			if err := e.tryRaster(frame, tile, r.Raster); err != nil {
				return err
			}
		}
	}
	e.learn()
	return nil
}

// tryRaster encodes a tile of a frame. The result is only observed.
func (e *encoder) tryRaster(frame *capture.Frame, tile int, r ladder.Raster) error {
	if _, err := e.encodeRaster(e.workers[0], frame, tile, r); err != nil {
		return fmt.Errorf("tile %d with %v: %w", tile, r, err)
	}
	return nil
}

// probe encodes a tile of the newest frame at the choices after those of the wanted tuned qualities, once per interval.
func (e *encoder) probe(now time.Time) error {
	t := e.tuning
	if t == nil || t.rasters == nil || now.Sub(t.probed) < probeInterval {
		return nil
	}
	t.probed = now
	for i, r := range t.tuner.Rungs() {
		if !t.wanted[i] {
			continue
		}
		if finer, ok := t.rasters.Finer(r); ok {
			if err := e.tryRaster(e.frame, t.probes%e.tiles, finer.Raster); err != nil {
				return err
			}
		}
	}
	t.probes++
	return nil
}

// try encodes the capture that was split last with all candidate parameters.
func (e *encoder) try(source ladder.Source, trials []ladder.Rung) error {
	w := e.workers[0]
	tried := make(map[ladder.Rung]bool)
	for _, r := range trials {
		r.Rate, r.Took = 0, 0
		if tried[r] {
			continue
		}
		tried[r] = true
		params := e.levelParams(ladder.Level{Bits: r.Bits, Speed: r.Speed})
		for tile := range e.cutter.tiles {
			cloud := &e.cutter.tiles[tile]
			points := int(math.Round(float64(cloud.Len()) * float64(r.Points) / float64(source.Points)))
			view := cloud.View(0, min(points, cloud.Len()))
			if e.config.Voxels && r.Points < source.Points && cloud.Len() > 0 {
				// Voxels as wide as the distance of the sampled points yield the same number of points.
				edge := source.Spacing * float32(math.Sqrt(float64(source.Points)/float64(r.Points)))
				if err := w.scratch.voxels.Voxelize(cloud, &w.scratch.cloud, edge); err != nil {
					return err
				}
				view = w.scratch.cloud
			}
			if err := w.encode(e.config.Codec, &view, params); err != nil {
				return fmt.Errorf("tile %d with %d bits at speed %d: %w", tile, r.Bits, r.Speed, err)
			}
		}
	}
	e.learn()
	return nil
}

// takeRungs applies the tuner's rungs to the next frames.
func (e *encoder) takeRungs() {
	for i, r := range e.tuning.tuner.Rungs() {
		q := e.tuning.qualities[i]
		if e.rasters != nil {
			if e.rasters.take(q, r.Raster) {
				e.tuning.trials[q] = trialFrames
			}
		} else if l := e.config.Levels[q].At(r.Points, r.Bits, r.Speed); l != e.config.Levels[q] {
			e.config.Levels[q] = l
			e.tuning.trials[q] = trialFrames
		}
	}
}

// retune follows the uplink estimate and the learned codec model.
func (e *encoder) retune(now time.Time, sink Sink) {
	if e.tuning == nil {
		return
	}
	estimate := volumetric.Bitrate(0)
	if u, ok := sink.(Uplink); ok {
		estimate = u.Uplink()
	}
	t := e.tuning
	for i, q := range t.qualities {
		t.wanted[i] = false
		for tile := range e.tiles {
			quality := volumetric.Quality(q)
			t.wanted[i] = t.wanted[i] || sink.Wanted(tile, quality) || sink.GaveUp(tile, quality)
		}
		t.trials[q] = max(0, t.trials[q]-1)
	}
	if t.tuner.Step(now, estimate, t.wanted, e.model) {
		e.takeRungs()
		for i, r := range t.tuner.Rungs() {
			e.config.Log.Info("tuned", "quality", e.config.qualityName(t.qualities[i]), "to", r.String(), "uplink",
				estimate)
		}
	}
}

// tries reports whether a quality that was given up is encoded anyway, to show that the quality has become smaller.
func (e *encoder) tries(q int) bool { return e.tuning != nil && e.tuning.trials[q] > 0 }

// learn adds the workers' observations to the model.
func (e *encoder) learn() {
	for _, w := range e.workers {
		for _, o := range w.observed {
			e.model.Observe(o)
		}
		w.observed = w.observed[:0]
	}
}

// encode encodes into the worker's memory and records the duration.
func (w *worker) encode(c codec.Codec, cloud *pointcloud.Cloud, params codec.Params) error {
	begun := time.Now()
	data, err := w.encoder.Encode(w.data[:0], cloud, params)
	w.data = data
	if err == nil {
		w.observe(c, params, cloud.Len(), time.Since(begun))
	}
	return err
}

// observe records the cost of the data that was encoded last.
func (w *worker) observe(c codec.Codec, params codec.Params, points int, took time.Duration) {
	w.observed = append(w.observed, model.Observation{Codec: c, Params: params, Points: points, Bytes: len(w.data),
		Took: took})
}

// expect returns the predicted time of one worker for each quality of the frame, over the tiles that were wanted in
// arrange.
func (e *encoder) expect() []time.Duration {
	clear(e.costs)
	for _, j := range e.queue {
		if e.asked[e.track(j)] {
			p := e.predict(j)
			e.costs[j.quality] += p.Took
		}
	}
	return e.costs
}

// predict returns the predicted cost of a job, 0 if the model has no data.
func (e *encoder) predict(j job) model.Prediction {
	points := e.points[e.track(j)]
	if e.cutter != nil && e.config.Levels[j.quality].Voxel == 0 {
		begin, end := e.cutter.stretches[j.quality].of(e.cutter.tiles[j.tile].Len())
		points = end - begin
	}
	p, _ := e.model.Predict(e.config.Codec, e.params(j.quality), points)
	return p
}
