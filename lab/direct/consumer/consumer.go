// Package consumer receives the frames of one producer: it reassembles, decodes and draws them, and records the times
// of each frame.
//
// An inlet is called by the goroutine that reads from the network. A Consumer has one goroutine that decodes and then
// draws, as in paper 002.
package consumer

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/lab/direct/stages"
	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Arrival is a reassembled frame.
type Arrival struct {
	Number uint32
	Codec  volumetric.FourCC
	// Data is owned by the frame.
	Data []byte
	// First and Last are the arrival times of the first and the last packet. Whole is the time at which the frame was
	// complete.
	First, Last, Whole time.Time
	Hash               uint64
	// release returns the memory of Data. It may be nil.
	release func()
}

// Stage draws decoded clouds.
type Stage interface {
	Draw(cloud *pointcloud.Cloud)
}

// Ledger receives the consumer's record of each frame.
type Ledger interface {
	Received(r *stages.Received)
}

// Clock converts local time to the producer's time.
type Clock interface {
	Producer(t time.Time) time.Time
}

// Consumer decodes frames.
type Consumer struct {
	frames   *queue.Queue[*Arrival]
	ledger   Ledger
	clock    Clock
	stage    Stage // nil if nothing is drawn
	log      *slog.Logger
	decoders map[volumetric.FourCC]codec.Decoder
	cloud    pointcloud.Cloud
	warned   bool

	decoded atomic.Int64
}

// New returns a Consumer in which up to room frames wait for decoding; with room 1, only the newest one waits. stage
// may be nil.
func New(room int, ledger Ledger, clock Clock, stage Stage, log *slog.Logger) *Consumer {
	return &Consumer{
		frames: queue.New[*Arrival](room), ledger: ledger, clock: clock, stage: stage, log: log,
		decoders: make(map[volumetric.FourCC]codec.Decoder),
	}
}

// Decoded returns the number of decoded frames.
func (c *Consumer) Decoded() int64 { return c.decoded.Load() }

// take queues a frame. If the queue is full, the oldest frame is superseded.
func (c *Consumer) take(a *Arrival) {
	if oldest, dropped := c.frames.Push(a); dropped {
		r := c.received(oldest)
		r.Superseded = true
		c.finish(oldest, r)
	}
}

// received returns the record of a frame before decoding.
func (c *Consumer) received(a *Arrival) *stages.Received {
	return &stages.Received{
		Frame: a.Number, FirstReceived: c.at(a.First), LastReceived: c.at(a.Last), Reassembled: c.at(a.Whole),
		ReceivedBytes: len(a.Data), ReceivedHash: a.Hash,
	}
}

func (c *Consumer) at(t time.Time) stages.Instant { return stages.At(c.clock.Producer(t)) }

func (c *Consumer) finish(a *Arrival, r *stages.Received) {
	c.ledger.Received(r)
	if a.release != nil {
		a.release()
	}
}

// Run decodes until the context ends.
func (c *Consumer) Run(ctx context.Context) {
	for {
		a, ok := c.frames.Pop(ctx)
		if !ok {
			return
		}
		r := c.received(a)
		r.DecodeBegun = c.at(time.Now())
		if err := c.decode(a); err != nil {
			r.Undecodable = true
			if !c.warned {
				c.warned = true
				c.log.Warn("frame cannot be decoded; further frames are only counted", "frame", a.Number, "error", err)
			}
		} else {
			r.Decoded, r.DecodedPoints = c.at(time.Now()), c.cloud.Len()
			c.decoded.Add(1)
			if c.stage != nil {
				c.stage.Draw(&c.cloud)
				r.Shown = c.at(time.Now())
			}
		}
		c.finish(a, r)
	}
}

// decode decodes a frame with the codec named in the frame. A frame without data has no points in every codec.
func (c *Consumer) decode(a *Arrival) error {
	if len(a.Data) == 0 {
		c.cloud.Reset()
		return nil
	}
	decoder := c.decoders[a.Codec]
	if decoder == nil {
		known, err := codec.ByFourCC(a.Codec)
		if err != nil {
			return err
		}
		decoder = known.NewDecoder()
		c.decoders[a.Codec] = decoder
	}
	return decoder.Decode(&c.cloud, a.Data)
}
