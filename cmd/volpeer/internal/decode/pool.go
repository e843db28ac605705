// Package decode decodes received frames in parallel, with a fixed number of workers. At most one frame per tile waits.
// A newer frame replaces the waiting frame, so that a slow receiver shows fewer frames instead of late frames. Submit
// never blocks.
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

// Result is the result of decoding one frame.
type Result struct {
	Frame client.Frame
	// Cloud is the decoded tile, owned by the receiver of the result. Cloud is nil if the pool does not keep clouds.
	Cloud *pointcloud.Cloud
	// Points is the number of decoded points.
	Points int
	// Began and Decoded are the times of the start and the end of decoding, by this host's clock.
	Began, Decoded time.Time
	Err            error
}

// Pool is a set of decoding workers. The methods are safe for concurrent use.
type Pool struct {
	keep    bool
	results chan Result
	workers sync.WaitGroup

	mu     sync.Mutex
	wake   sync.Cond
	closed bool
	// waiting has the newest frame of each tile (in volumetric.ModeDescriptions: of each description) whose decoding
	// has not begun. queue has the keys of waiting in order of arrival.
	waiting map[volumetric.TrackRef]client.Frame
	queue   []volumetric.TrackRef
}

// resultBacklog is the capacity of the result channel: 0.1 s at 1,200 tile frames per second. Workers block when the
// channel is full.
const resultBacklog = 128

// NewPool starts the workers. If keep is set, results contain the clouds; otherwise clouds are decoded and discarded.
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

// Submit queues a frame of a tile. Submit returns the number of frames that are superseded before decoding: the frame
// that waited, or the submitted frame if that is older. After Close the result is 1.
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

// restarted reports whether a frame with a lower number is newer, because the publication was restarted.
func restarted(frame, other client.Frame) bool { return frame.Capture.After(other.Capture) }

// Results returns the channel of results, in no particular order. The channel is closed when the pool is closed and all
// workers have returned.
func (p *Pool) Results() <-chan Result { return p.results }

// Close discards the waiting frames and returns the number for each tile. Frames that are being decoded still yield
// results, which must be read until the channel is closed.
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

// take waits for a frame. take returns false when the pool is closed.
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

// work decodes frames until the pool is closed.
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

// decode decodes one frame with the codec named in the frame. A frame without data is an empty tile in every codec.
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
