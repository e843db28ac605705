// Package consumer takes the frames of one producer: it puts them together, decodes and draws them, and says what it
// knows of each.
//
// An inlet is fed by the goroutine that reads the network; a Consumer has one goroutine that decodes and, after that,
// draws, as that of paper 002.
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

// Arrival is a frame that was put together.
type Arrival struct {
	Number uint32
	Codec  volumetric.FourCC
	// Data is the frame's own.
	Data []byte
	// First and Last are when its first and last packets came, Whole when it was handed on.
	First, Last, Whole time.Time
	Hash               uint64
	// release gives the memory of Data back; nil where nobody wants it.
	release func()
}

// Stage draws what was decoded.
type Stage interface {
	Draw(cloud *pointcloud.Cloud)
}

// Ledger takes the consumer's word of each frame.
type Ledger interface {
	Received(r *stages.Received)
}

// Clock gives the producer's time.
type Clock interface {
	Producer(t time.Time) time.Time
}

// Consumer decodes.
type Consumer struct {
	frames   *queue.Queue[*Arrival]
	ledger   Ledger
	clock    Clock
	stage    Stage // nil where nothing is drawn
	log      *slog.Logger
	decoders map[volumetric.FourCC]codec.Decoder
	cloud    pointcloud.Cloud
	warned   bool

	decoded atomic.Int64
}

// New makes a Consumer in which so many frames wait to be decoded: with room for one, the newest. stage may be nil.
func New(room int, ledger Ledger, clock Clock, stage Stage, log *slog.Logger) *Consumer {
	return &Consumer{
		frames: queue.New[*Arrival](room), ledger: ledger, clock: clock, stage: stage, log: log,
		decoders: make(map[volumetric.FourCC]codec.Decoder),
	}
}

// Decoded is how many frames were.
func (c *Consumer) Decoded() int64 { return c.decoded.Load() }

// take takes a frame that has come, and lets go of one that has waited for too long.
func (c *Consumer) take(a *Arrival) {
	if oldest, dropped := c.frames.Push(a); dropped {
		r := c.received(oldest)
		r.Superseded = true
		c.finish(oldest, r)
	}
}

// received is what is known of a frame before it is decoded.
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
				c.log.Warn("frame cannot be decoded; further ones are only counted", "frame", a.Number, "error", err)
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

// decode decodes a frame with the codec that it names. A frame without data is one without points in every codec.
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
