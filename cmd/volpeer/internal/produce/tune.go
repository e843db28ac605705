package produce

import (
	"fmt"
	"math"
	"time"

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
}

// tune finds the rungs of the qualities with a target bitrate, by encoding a capture with many parameters. Without such
// qualities, tune does nothing.
func (e *encoder) tune(cloud *pointcloud.Cloud, frameRate float64) error {
	var wishes []ladder.Wish
	t := &tuning{}
	for q, l := range e.config.Levels {
		if l.Rate > 0 {
			wishes = append(wishes, ladder.Wish{Target: l.Rate, Bits: l.Bits, Speed: l.Speed})
			t.qualities = append(t.qualities, q)
		}
	}
	if len(wishes) == 0 {
		return nil
	}
	source, err := e.ladderSource(cloud, frameRate, len(wishes))
	if err != nil {
		return err
	}
	var trials []ladder.Rung
	for _, wish := range wishes {
		trials = append(trials, source.Trials(wish)...)
	}
	for range rounds {
		if err := e.try(source, trials); err != nil {
			return err
		}
		tuner, ok := ladder.NewTuner(source, wishes, e.model)
		if !ok {
			return fmt.Errorf("%w: the captured frame has no points, which bitrates require", ErrConfig)
		}
		t.tuner, trials = tuner, tuner.Rungs()
	}
	t.wanted, t.trials = make([]bool, len(wishes)), make([]int, len(e.config.Levels))
	e.tuning = t
	e.takeRungs()
	return nil
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
		Budget: time.Duration(busy * float64(time.Second) / frameRate * float64(len(e.workers)) /
			float64(rungs)),
		TileOverhead:   payload.PrefixSize + payload.DescriptorSize/2,
		PacketOverhead: float64(payload.DescriptorSize) / payload.FragmentSize,
	}, nil
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
		if l := e.config.Levels[q].At(r.Points, r.Bits, r.Speed); l != e.config.Levels[q] {
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
		for tile := range e.cutter.tiles {
			quality := volumetric.Quality(q)
			t.wanted[i] = t.wanted[i] || sink.Wanted(tile, quality) || sink.GaveUp(tile, quality)
		}
		t.trials[q] = max(0, t.trials[q]-1)
	}
	if t.tuner.Step(now, estimate, t.wanted, e.model) {
		e.takeRungs()
		for i, r := range t.tuner.Rungs() {
			e.config.Log.Info("tuned", "quality", e.config.Levels[t.qualities[i]].Name, "to", r.String(), "uplink",
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
