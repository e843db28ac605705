// Package producer captures, samples, encodes and sends frames for one consumer. In mode adaptive, a frame has as many
// points as the bandwidth and the view justify, and the newest frame is sent first. In the mode of paper 002, complete
// frames are sent in order through a buffer of ten.
//
// A Producer has one goroutine that captures and one that encodes; in the mode of paper 002, one goroutine does both.
// An Outlet has one goroutine that sends.
package producer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab/direct/individual"
	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Outlet accepts frames for sending.
type Outlet interface {
	// Send queues a frame. The data of the frame is not kept.
	Send(f *Frame) error
	// Estimate returns the bandwidth estimate.
	Estimate() volumetric.Bitrate
	// Want sets the rate that would be sent without a bandwidth limit.
	Want(rate volumetric.Bitrate)
}

// Frame is an encoded frame.
type Frame struct {
	Sent    stages.Sent
	Capture time.Time
	// Data has the prefix of payload v1 and the data of the codec.
	Data []byte
}

// Config configures a Producer.
type Config struct {
	Source capture.Source
	Codec  codec.Codec
	Params codec.Params
	// Control selects the points of each frame; nil selects all.
	Control *individual.Control
	Gaze    *Gaze
	Outlet  Outlet
	// Sequential captures a frame only after the previous one was encoded.
	Sequential bool
	// Limit is the number of encoded frames after which production ends; 0 means no limit.
	Limit int
	Log   *slog.Logger
}

// Producer captures and encodes frames.
type Producer struct {
	config  Config
	encoder codec.Encoder
	sample  pointcloud.Cloud
	buffer  []byte
	number  uint32
	warned  bool

	captured, missed, superseded, failed atomic.Int64
}

// New returns a Producer.
func New(config Config) *Producer {
	return &Producer{config: config, encoder: config.Codec.NewEncoder()}
}

// Counts are the counters of a Producer.
type Counts struct {
	// Captured counts frames read from the source. Missed counts frames that fell due after the first one and were not
	// read, because the previous one was still being processed.
	Captured, Missed int64
	// Superseded counts captured frames that were replaced by a newer one before encoding, Failed those that the codec
	// refused.
	Superseded, Failed int64
}

// Counts returns the counters.
func (p *Producer) Counts() Counts {
	return Counts{p.captured.Load(), p.missed.Load(), p.superseded.Load(), p.failed.Load()}
}

// shot is a captured frame.
type shot struct {
	capture.Frame
	captured time.Time
}

// inHand is the number of frame buffers: one is being captured, one waits, one is being encoded.
const inHand = 3

// Run produces until the context ends or the limit is reached, which is not an error, or until the source or the outlet
// fails.
func (p *Producer) Run(ctx context.Context) error {
	if p.config.Control != nil {
		if err := p.calibrate(ctx); err != nil {
			return ending(ctx, err)
		}
	}
	if p.config.Sequential {
		var s shot
		for !p.done() {
			if err := p.read(ctx, &s); err != nil {
				return ending(ctx, err)
			}
			if err := p.encode(&s); err != nil {
				return err
			}
		}
		return nil
	}
	return p.overlap(ctx)
}

// overlap captures and encodes concurrently.
func (p *Producer) overlap(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, free := queue.New[*shot](1), make(chan *shot, inHand)
	for range inHand {
		free <- &shot{}
	}
	var running sync.WaitGroup
	var reading error
	running.Go(func() {
		defer cancel()
		for {
			s := <-free
			if err := p.read(ctx, s); err != nil {
				reading = ending(ctx, err)
				return
			}
			if oldest, dropped := waiting.Push(s); dropped {
				p.superseded.Add(1)
				free <- oldest
			}
		}
	})
	var encoding error
	for encoding == nil && !p.done() {
		s, ok := waiting.Pop(ctx)
		if !ok {
			break
		}
		encoding = p.encode(s)
		free <- s
	}
	cancel()
	running.Wait()
	return errors.Join(reading, encoding)
}

// done reports whether the limit of encoded frames is reached. It is called by the encoding goroutine.
func (p *Producer) done() bool { return p.config.Limit > 0 && int(p.number) >= p.config.Limit }

// ending returns nil if the context has ended, and err otherwise.
func ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (p *Producer) read(ctx context.Context, s *shot) error {
	if err := p.config.Source.Read(ctx, &s.Frame); err != nil {
		return err
	}
	s.captured = wallclock.Now()
	if p.captured.Add(1) > 1 {
		p.missed.Add(s.Skipped)
	}
	return nil
}

// calibrate encodes a frame with two numbers of points, as the first observations.
func (p *Producer) calibrate(ctx context.Context) error {
	var s shot
	if err := p.config.Source.Read(ctx, &s.Frame); err != nil {
		return err
	}
	for _, share := range []int{8, 2} {
		n := s.Cloud.Len() / share
		pointcloud.Stride(&s.Cloud, &p.sample, n)
		begun := time.Now()
		data, err := p.encoder.Encode(p.buffer[:0], &p.sample, p.config.Params)
		if err != nil {
			return err
		}
		p.buffer = data
		p.config.Control.Observe(n, len(data), time.Since(begun))
	}
	return nil
}

// encode samples and encodes a frame and sends it to the outlet.
func (p *Producer) encode(s *shot) error {
	taken := wallclock.Now()
	sent := stages.Sent{
		Capture: stages.At(s.Capture), Captured: stages.At(s.captured), Taken: stages.At(taken), SourceFrame: s.Number,
		SourcePoints: s.Cloud.Len(),
		Bound:        string(individual.BoundSource),
	}
	err := p.fit(s, &sent)
	if err != nil {
		// A single frame that cannot be encoded does not end the production, because the next one may be valid.
		p.failed.Add(1)
		if !p.warned {
			p.warned = true
			p.config.Log.Warn("frame cannot be encoded; further frames are only counted", "error", err)
		}
		return nil
	}
	frame := p.buffer[payload.PrefixSize:]
	p.number++
	sent.Frame, sent.Bytes, sent.Hash = p.number, len(frame), stages.Hash(frame)
	return p.config.Outlet.Send(&Frame{Sent: sent, Capture: s.Capture, Data: p.buffer})
}

// attempts is the number of encodings of a frame that misses its target. The observation of the first attempt corrects
// the second one.
const attempts = 2

// fit encodes a frame into the buffer, with the selected number of points.
func (p *Producer) fit(s *shot, sent *stages.Sent) error {
	control := p.config.Control
	if control == nil {
		return p.try(s, &s.Cloud, sent, s.Cloud.Len())
	}
	cloud := p.config.Gaze.Thin(&s.Cloud)
	view, estimate := p.config.Gaze.Limit(), p.config.Outlet.Estimate()
	p.config.Outlet.Want(control.Wanted(cloud.Len(), view))
	sent.Estimate = int64(estimate)
	for attempt := 1; ; attempt++ {
		choice := control.Choose(estimate, cloud.Len(), view)
		if choice.Bound == individual.BoundSource && cloud.Len() < s.Cloud.Len() {
			choice.Bound = individual.BoundView
		}
		sent.Target, sent.Bound = choice.Target, string(choice.Bound)
		begun := time.Now()
		if err := p.try(s, cloud, sent, choice.Points); err != nil {
			return err
		}
		bytes := len(p.buffer) - payload.PrefixSize
		control.Observe(choice.Points, bytes, time.Since(begun))
		if attempt == attempts || !control.Misses(choice, bytes) {
			return nil
		}
	}
}

// try encodes a frame with the given number of points of a cloud.
func (p *Producer) try(s *shot, cloud *pointcloud.Cloud, sent *stages.Sent, points int) error {
	if points < cloud.Len() {
		pointcloud.Stride(cloud, &p.sample, points)
		cloud = &p.sample
	}
	sent.Points, sent.Sampled = points, stages.At(wallclock.Now())
	p.buffer = payload.Prefix{FourCC: p.config.Codec.FourCC(), Capture: s.Capture}.AppendTo(p.buffer[:0])
	data, err := p.encoder.Encode(p.buffer, cloud, p.config.Params)
	if err != nil {
		return err
	}
	p.buffer, sent.Encoded = data, stages.At(wallclock.Now())
	return nil
}
