// Package decode decodes received frames in parallel. Of each tile at most one frame waits: the newest one wins, so
// that a receiver that is behind shows less and not later. A fixed number of workers decodes; whoever submits never
// waits.
package decode

import (
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Result is a frame that was decoded, or could not be.
type Result struct {
	Frame client.Frame
	// Cloud is the decoded tile, the receiver's to keep, where the pool keeps clouds; else nil.
	Cloud *pointcloud.Cloud
	// Points is the number of points.
	Points int
	// Began and Decoded are when decoding began and was done, by this host's clock.
	Began, Decoded time.Time
	Err            error
}

// Pool is a set of workers. Its methods are safe for concurrent use.
type Pool struct {
	keep    bool
	results chan Result
	workers sync.WaitGroup

	mu     sync.Mutex
	wake   sync.Cond
	closed bool
	// waiting are the newest frames that nobody decodes yet, by tile (description in volumetric.ModeDescriptions), and
	// queue is the order of the tiles.
	waiting map[volumetric.TrackRef]client.Frame
	queue   []volumetric.TrackRef
}

// resultBacklog is how many results may wait for their reader: a tenth of a second of 1,200 tile frames per second.
// Then workers wait.
const resultBacklog = 128

// NewPool starts the workers. With keep, results bring their clouds; without, clouds are decoded and dropped.
func NewPool(workers int, keep bool) *Pool {
	p := &Pool{
		keep:    keep,
		results: make(chan Result, resultBacklog),
		waiting: make(map[volumetric.TrackRef]client.Frame),
	}
	p.wake.L = &p.mu
	for range max(1, workers) {
		p.workers.Go(p.work)
	}
	return p
}

// Submit queues a frame of a tile. It returns how many frames are superseded thereby before their decoding began: the
// one that waited, or the submitted one where that is the older.
func (p *Pool) Submit(tile volumetric.TrackRef, frame client.Frame) (superseded int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 1
	}
	if other, waits := p.waiting[tile]; waits {
		if frame.Number >= other.Number || restarted(frame, other) {
			p.waiting[tile] = frame
		}
		return 1
	}
	p.waiting[tile] = frame
	p.queue = append(p.queue, tile)
	p.wake.Signal()
	return 0
}

// restarted tells whether a frame with a lower number is newer all the same, since the publication began anew.
func restarted(frame, other client.Frame) bool { return frame.Capture.After(other.Capture) }

// Results brings what was decoded, in no particular order. It is closed once the pool is closed and empty.
func (p *Pool) Results() <-chan Result { return p.results }

// Close drops what waits and returns how many frames of each tile that were. Frames under way still come as results,
// which must be read until the channel is closed.
func (p *Pool) Close() (superseded map[volumetric.TrackRef]int) {
	superseded = make(map[volumetric.TrackRef]int)
	p.mu.Lock()
	for tile := range p.waiting {
		superseded[tile]++
	}
	p.closed, p.queue = true, nil
	clear(p.waiting)
	p.wake.Broadcast()
	p.mu.Unlock()
	go func() {
		p.workers.Wait()
		close(p.results)
	}()
	return superseded
}

// take waits for a frame; it tells false once the pool is closed.
func (p *Pool) take() (client.Frame, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.closed {
			return client.Frame{}, false
		}
		p.wake.Wait()
	}
	tile := p.queue[0]
	p.queue = p.queue[1:]
	frame := p.waiting[tile]
	delete(p.waiting, tile)
	return frame, true
}

// work decodes until the pool is closed.
func (p *Pool) work() {
	decoders := make(map[codec.FourCC]codec.Decoder)
	var scratch pointcloud.Cloud
	for {
		frame, ok := p.take()
		if !ok {
			return
		}
		cloud := &scratch
		if p.keep {
			cloud = new(pointcloud.Cloud)
		}
		result := Result{Frame: frame, Began: time.Now()}
		result.Err = decode(decoders, cloud, &frame)
		result.Decoded = time.Now()
		result.Frame.Data = nil
		if result.Err == nil {
			result.Points = cloud.Len()
			if p.keep {
				result.Cloud = cloud
			}
		}
		p.results <- result
	}
}

// decode decodes one frame with the codec that it names. A frame without data is a tile without points in every codec.
func decode(decoders map[codec.FourCC]codec.Decoder, cloud *pointcloud.Cloud, frame *client.Frame) error {
	if len(frame.Data) == 0 {
		cloud.Reset()
		return nil
	}
	decoder := decoders[frame.Codec]
	if decoder == nil {
		c, err := codec.ByFourCC(frame.Codec)
		if err != nil {
			return fmt.Errorf("%s frame %d: %w", frame.Track, frame.Number, err)
		}
		decoder = c.NewDecoder()
		decoders[frame.Codec] = decoder
	}
	if err := decoder.Decode(cloud, frame.Data); err != nil {
		return fmt.Errorf("%s frame %d: %w", frame.Track, frame.Number, err)
	}
	return nil
}
