package segments

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/volsfu/volsfu/lab/carriage"
)

// Errors of the origin.
var (
	errGone    = errors.New("segment is gone")
	errEnded   = errors.New("the publisher has ended")
	errTooMuch = errors.New("segment is too large")
)

const (
	// keptSegments is the number of segments kept per track. A client that is further behind continues with the latest
	// segment.
	keptSegments = 8
	// maxSegmentBytes bounds one segment: some seconds of the lab's largest frames.
	maxSegmentBytes = 256 << 20
)

// track holds the segments of one tile at one quality of one peer. The origin's lock guards it.
type track struct {
	segments map[int64]*segment
	latest   int64
}

// segment is the received part of a segment.
type segment struct {
	data  []byte
	whole bool
	// changed is closed and replaced after each change.
	changed chan struct{}
}

// peer holds the tracks of one peer.
type peer struct {
	tracks map[carriage.Job]*track
	ended  bool
	// changed is closed and replaced when a segment begins or the peer ends.
	changed chan struct{}
}

// origin keeps the segments of all peers. It is safe for concurrent use.
type origin struct {
	mu     sync.Mutex
	peers  map[string]*peer
	counts carriage.Relayed
}

func newOrigin() *origin { return &origin{peers: make(map[string]*peer)} }

// peerOf finds or creates a peer. The caller holds the lock.
func (o *origin) peerOf(name string) *peer {
	p := o.peers[name]
	if p == nil {
		p = &peer{tracks: make(map[carriage.Job]*track), changed: make(chan struct{})}
		o.peers[name] = p
	}
	return p
}

func (p *peer) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

func (s *segment) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// begin begins a segment of a track. The oldest segments beyond keptSegments are deleted.
func (o *origin) begin(name string, job carriage.Job, number int64) *segment {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.peerOf(name)
	t := p.tracks[job]
	if t == nil {
		t = &track{segments: make(map[int64]*segment)}
		p.tracks[job] = t
	}
	s := &segment{changed: make(chan struct{})}
	t.segments[number], t.latest = s, max(t.latest, number)
	for old := range t.segments {
		if old <= t.latest-keptSegments {
			delete(t.segments, old)
		}
	}
	p.tell()
	return s
}

// readBuffers has buffers for concurrent uploads, up to one for each tile and quality.
var readBuffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// receive reads a segment as its data arrives.
func (o *origin) receive(s *segment, body io.Reader) error {
	pooled := readBuffers.Get().(*[]byte)
	defer readBuffers.Put(pooled)
	buffer := *pooled
	for {
		n, err := body.Read(buffer)
		o.mu.Lock()
		s.data = append(s.data, buffer[:n]...)
		o.counts.BytesReceived += int64(n)
		if s.whole = err != nil; s.whole {
			o.counts.FramesReceived++
		}
		s.tell()
		tooMuch := len(s.data) > maxSegmentBytes
		o.mu.Unlock()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case tooMuch:
			return errTooMuch
		}
	}
}

// end records that a peer publishes no more segments.
func (o *origin) end(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.peerOf(name)
	p.ended = true
	p.tell()
}

// find waits until a segment begins. The error is errGone if newer segments have replaced it, errEnded if the peer has
// ended without it.
func (o *origin) find(ctx context.Context, name string, job carriage.Job, number int64) (*segment, error) {
	for {
		o.mu.Lock()
		p := o.peerOf(name)
		changed, ended := p.changed, p.ended
		var found *segment
		gone := false
		if t := p.tracks[job]; t != nil {
			found = t.segments[number]
			gone = found == nil && t.latest > number
		}
		o.mu.Unlock()
		switch {
		case found != nil:
			return found, nil
		case gone:
			return nil, errGone
		case ended:
			return nil, errEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// latest waits until a peer has published any segment of a tile, and returns the number of its newest segment at any
// quality.
func (o *origin) latest(ctx context.Context, name string, tile int) (int64, error) {
	for {
		o.mu.Lock()
		p := o.peerOf(name)
		changed, ended := p.changed, p.ended
		newest := int64(-1)
		for job, t := range p.tracks {
			if job.Tile == tile {
				newest = max(newest, t.latest)
			}
		}
		o.mu.Unlock()
		switch {
		case newest >= 0:
			return newest, nil
		case ended:
			return 0, errEnded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// send writes a segment as its data arrives. flush is called when all received data is written.
func (o *origin) send(ctx context.Context, s *segment, w io.Writer, flush func()) error {
	for at := 0; ; {
		o.mu.Lock()
		data, whole, changed := s.data[at:], s.whole, s.changed
		o.mu.Unlock()
		// Appending does not move earlier data, so the slice stays valid.
		if len(data) > 0 {
			if _, err := w.Write(data); err != nil {
				return err
			}
			flush()
			at += len(data)
			o.mu.Lock()
			o.counts.BytesSent += int64(len(data))
			o.mu.Unlock()
			continue
		}
		if whole {
			o.mu.Lock()
			o.counts.FramesSent++
			o.mu.Unlock()
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// relayed returns the counts of forwarding; segments are counted as frames.
func (o *origin) relayed() *carriage.Relayed {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := o.counts
	return &counts
}
