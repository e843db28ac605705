package carriage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/queue"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// PublishConfig configures the capture rate and the queues before the encoder and the transport.
type PublishConfig struct {
	// FPS is the number of captures per second.
	FPS float64
	// EncoderQueue is the number of captures that wait while one is being encoded. SendQueue is the number of frames of
	// each tile and quality that wait while one is being sent.
	EncoderQueue, SendQueue int
	// Duration is the time of capturing, 0 until the context ends.
	Duration time.Duration
}

// DefaultPublish has the two waiting captures of VR2Gather's encoder, and as many frames before the transport.
func DefaultPublish() PublishConfig { return PublishConfig{FPS: 15, EncoderQueue: 2, SendQueue: 2} }

// ErrQueue reports a queue without room.
var ErrQueue = errors.New("queues of captures and frames: expected room for 1 or more")

// lastFrames is the time limit for the last frames to leave after the end of capturing.
const lastFrames = 2 * time.Second

// publisher is one run of Publish.
type publisher struct {
	feed    Feed
	end     End
	config  PublishConfig
	records *Records
	name    string

	captures *queue.Queue[*Capture]
	free     chan *Capture
	streams  map[Job]*outStream
	number   uint32

	mu          sync.Mutex
	counts      Published
	first, last time.Time // of the sent frames
	samples     struct{ tiling, wait, encoding, sendWait, sending sample }
}

// outStream holds the outgoing frames of one tile at one quality.
type outStream struct {
	frames *queue.Queue[*outgoing]
	free   chan *outgoing
}

// outgoing is a frame in its own memory.
type outgoing struct {
	frame  Frame
	record frametimes.Record
	buffer []byte
}

// Publish waits for the other end, then captures, encodes and sends until Duration is over or the context ends, which
// is not an error. Records get a line for each frame that was sent.
func Publish(ctx context.Context, feed Feed, end End, config PublishConfig, name string, records *Records) (*Published,
	error) {
	if config.EncoderQueue < 1 || config.SendQueue < 1 {
		return nil, fmt.Errorf("%w, got %d and %d", ErrQueue, config.EncoderQueue, config.SendQueue)
	}
	p := newPublisher(feed, end, config, name, records)
	if err := end.Ready(ctx); err != nil {
		return nil, err
	}
	capturing, stop := limited(ctx, config.Duration)
	defer stop()
	sending, settled := context.WithCancel(context.WithoutCancel(ctx))
	defer settled()
	var capturer, senders sync.WaitGroup
	var captureErr error
	began := time.Now()
	capturer.Go(func() {
		captureErr = p.capture(capturing)
		stop()
	})
	// A stream's queue is emptied after encoding has stopped; the transport has until settled.
	encoded, finish := context.WithCancel(context.Background())
	defer finish()
	for _, s := range p.streams {
		senders.Go(func() { p.send(encoded, sending, s) })
	}
	err := p.encode(capturing)
	stop()
	capturer.Wait()
	finish()
	timer := time.AfterFunc(lastFrames, settled)
	senders.Wait()
	timer.Stop()
	if err == nil && ctx.Err() == nil {
		err = captureErr
	}
	return p.summary(began), err
}

// limited ends the context after a time; 0 is no limit.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func newPublisher(feed Feed, end End, config PublishConfig, name string, records *Records) *publisher {
	p := &publisher{
		feed: feed, end: end, config: config, records: records, name: name,
		captures: queue.New[*Capture](config.EncoderQueue),
		// One capture is being read, and one is being encoded.
		free:    make(chan *Capture, config.EncoderQueue+2),
		streams: make(map[Job]*outStream),
	}
	for range cap(p.free) {
		p.free <- new(Capture)
	}
	description := feed.Publication()
	for tile := range description.Tiles {
		for q := range description.Qualities {
			// One frame is being filled, and one is being sent.
			s := &outStream{frames: queue.New[*outgoing](config.SendQueue),
				free: make(chan *outgoing, config.SendQueue+2)}
			for range cap(s.free) {
				s.free <- new(outgoing)
			}
			p.streams[Job{tile, volumetric.Quality(q)}] = s
		}
	}
	return p
}

// capture reads the feed until the context ends.
func (p *publisher) capture(ctx context.Context) error {
	for first := true; ; first = false {
		c := <-p.free
		if err := p.feed.Read(ctx, c); err != nil {
			p.free <- c
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		oldest, dropped := p.captures.Push(c)
		if dropped {
			p.free <- oldest
		}
		p.mu.Lock()
		p.counts.Captures++
		if !first {
			p.counts.Captures += c.Missed
			p.counts.CapturesMissed += c.Missed
		}
		if dropped {
			p.counts.CapturesDropped++
		}
		p.mu.Unlock()
	}
}

// encode encodes the captures until the context ends and the queue is empty.
func (p *publisher) encode(ctx context.Context) error {
	wanted := func(j Job) bool {
		if p.end.Wanted(j.Tile, j.Quality) {
			return true
		}
		p.mu.Lock()
		p.counts.FramesUnwanted++
		p.mu.Unlock()
		return false
	}
	for {
		c, ok := p.captures.Pop(ctx)
		if !ok {
			return nil
		}
		err := p.feed.Encode(c, p.number, wanted, p.enqueue)
		p.free <- c
		if err != nil {
			return err
		}
		p.number++
		p.mu.Lock()
		p.counts.CapturesEncoded++
		p.mu.Unlock()
	}
}

// enqueue puts an encoded frame into the queue of its stream.
func (p *publisher) enqueue(e *Encoded) {
	s := p.streams[Job{e.Frame.Tile, e.Frame.Quality}]
	o := <-s.free
	o.frame, o.record = e.Frame, e.Record
	o.frame.Seal(o.buffer)
	o.buffer = o.frame.Bytes
	o.record.Track = volumetric.TrackRef{
		TileRef: volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: p.name,
			Publication: publicationName}, Tile: e.Frame.Tile}, Quality: e.Frame.Quality,
	}
	o.record.Frame, o.record.Bytes = int64(e.Frame.Number), len(o.frame.Data)
	o.record.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceSystem}
	oldest, dropped := s.frames.Push(o)
	if dropped {
		s.free <- oldest
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Frames++
	if dropped {
		p.counts.FramesDropped++
	}
	r := &e.Record
	p.samples.tiling.between(r, frametimes.TilingBegan, frametimes.Tiled)
	p.samples.wait.add(r.Time(frametimes.TilingBegan).Sub(r.Time(frametimes.Acquired)) +
		r.Time(frametimes.EncodingBegan).Sub(r.Time(frametimes.Tiled)))
	p.samples.encoding.between(r, frametimes.EncodingBegan, frametimes.Encoded)
}

// send sends the frames of a stream until encoded has ended and none is left, or sending ends.
func (p *publisher) send(encoded, sending context.Context, s *outStream) {
	for sending.Err() == nil {
		o, ok := s.frames.Pop(encoded)
		if !ok {
			return
		}
		d, err := p.end.Send(sending, &o.frame)
		p.sent(o, d, err)
		s.free <- o
	}
}

// sent records a frame that has left, or failed to.
func (p *publisher) sent(o *outgoing, d Departure, err error) {
	now := wallclock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.counts.FramesFailed++
		return
	}
	if d.Copies == 0 {
		return
	}
	if p.first.IsZero() {
		p.first = now
	}
	p.last = now
	p.counts.FramesSent++
	p.counts.Bytes += int64(len(o.frame.Data)) * int64(d.Copies)
	r := &o.record
	r.Set(frametimes.FirstSent, d.First)
	r.Set(frametimes.LastSent, d.Last)
	if !d.First.IsZero() {
		p.samples.sendWait.between(r, frametimes.Encoded, frametimes.FirstSent)
		p.samples.sending.between(r, frametimes.FirstSent, frametimes.LastSent)
	}
	p.records.Write(r)
}

// summary returns the counts since an instant.
func (p *publisher) summary(began time.Time) *Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.counts
	s.Begun = began
	if took := time.Since(began); took > 0 {
		s.FPS = float64(s.CapturesEncoded) / took.Seconds()
	}
	s.Mbps = spanRate(p.end.Traffic().Sent, p.first, p.last, s.CapturesEncoded)
	s.Tiling, s.QueueWait, s.Encoding = p.samples.tiling.percentiles(), p.samples.wait.percentiles(),
		p.samples.encoding.percentiles()
	s.SendWait, s.Sending = p.samples.sendWait.percentiles(), p.samples.sending.percentiles()
	if e, ok := p.end.(Estimator); ok {
		s.Estimates = e.Estimates(began)
	}
	return &s
}

// spanRate returns the rate of bytes in Mbit/s for captures of which the first and the last were sent at two times. The
// interval of the last capture is included.
func spanRate(bytes int64, first, last time.Time, captures int64) float64 {
	span := last.Sub(first).Seconds()
	if captures < 2 || span <= 0 {
		return 0
	}
	return float64(bytes) * 8 / 1e6 / (span * float64(captures) / float64(captures-1))
}
