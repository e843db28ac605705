package segments

import (
	"context"
	"io"
	"math"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
)

// uploads has the outgoing segments of all streams. One goroutine per current segment sends the segment.
type uploads struct {
	access *access
	// name is the peer's name, frames the number of frames of a segment.
	name   string
	frames uint32
	// ctx is the context of the uploads, which continue for a moment after the last frame was sent.
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	streams map[carriage.Job]*upload
}

// upload holds the outgoing segments of one stream. It belongs to the goroutine that sends the stream's frames.
type upload struct {
	number int64
	body   *io.PipeWriter
	box    []byte // memory of one box
}

func newUploads(access *access, config Config) *uploads {
	u := &uploads{access: access, name: config.Name, frames: 1, streams: make(map[carriage.Job]*upload)}
	u.ctx, u.cancel = context.WithCancel(context.Background())
	if config.Segment > 0 {
		u.frames = uint32(max(1, math.Round(config.Segment.Seconds()*config.FPS)))
	}
	return u
}

// stream returns the upload of a stream.
func (u *uploads) stream(job carriage.Job) *upload {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.streams[job]
	if s == nil {
		s = &upload{number: -1}
		u.streams[job] = s
	}
	return s
}

// send adds a frame to the segment of the frame.
func (u *uploads) send(ctx context.Context, f *carriage.Frame) (carriage.Departure, error) {
	job := carriage.Job{Tile: f.Tile, Quality: f.Quality}
	s := u.stream(job)
	if number := int64(f.Number / u.frames); number != s.number {
		s.end()
		s.number = number
		u.begin(s, job)
	}
	body := s.body
	stop := context.AfterFunc(ctx, func() { _ = body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	d := carriage.Departure{First: wallclock.Now(), Copies: 1}
	// One write, which the HTTP client sends immediately, in chunks of at most 32 kB.
	s.box = append(AppendBoxHeader(s.box[:0], len(f.Bytes)), f.Bytes...)
	_, err := s.body.Write(s.box)
	d.Last = wallclock.Now()
	if f.Number%u.frames == u.frames-1 {
		s.end()
	}
	return d, err
}

// begin begins the upload of a segment.
func (u *uploads) begin(s *upload, job carriage.Job) {
	reader, writer := io.Pipe()
	s.body = writer
	url := u.access.url(u.name, job.Tile, int(job.Quality), s.number)
	u.running.Go(func() {
		err := u.access.put(u.ctx, url, reader)
		if err == nil {
			err = io.ErrClosedPipe
		}
		_ = reader.CloseWithError(err)
	})
}

// end ends the current segment.
func (s *upload) end() {
	if s.body != nil {
		_ = s.body.Close()
	}
}

// close ends the current segments, and waits up to stopTimeout for their uploads.
func (u *uploads) close() {
	u.mu.Lock()
	for _, s := range u.streams {
		s.end()
	}
	u.mu.Unlock()
	timer := time.AfterFunc(stopTimeout, u.cancel)
	u.running.Wait()
	timer.Stop()
	u.cancel()
}
