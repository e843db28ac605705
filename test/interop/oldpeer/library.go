package oldpeer

import (
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
)

// Source is the origin of frames: one tile of one client, or a client's sound, whose tile is SoundTile.
type Source struct{ Client, Tile int }

// SoundTile is the tile of a client's sound.
const SoundTile = -1

// Frame is one frame that the connector would pass to VR2Gather.
type Frame struct {
	Source
	// Number is the received number; if a server rewrites the number, the number counts the frames of this receiver.
	// Quality is -1 for sound.
	Number  uint32
	Quality int
	Data    []byte
}

// Reception has the counts of a source.
type Reception struct {
	// Frames were completed. Rejected frames arrived with a lower number than an earlier frame; Broken had packets of
	// two qualities, or a duplicate; Incomplete frames were overtaken by a newer frame.
	Frames, Rejected, Broken, Incomplete int
	// Repeated were completed although a frame with the same number had been completed before.
	Repeated int
	// Early arrived in part before the first complete frame: the original also loses packets that arrive while the
	// connection is established.
	Early int
	// Unread were completed and dropped because the reader's queue was full.
	Unread int
	// Quality and Number describe the last complete frame.
	Quality int
	Number  uint32
}

// Limits that prevent a server's faults from exhausting this process.
const (
	maxFrame   = 64 << 20
	frameQueue = 4096
)

// library completes frames as the native connector does.
type library struct {
	mu      sync.Mutex
	sources map[Source]*assembly
	frames  chan Frame
	closed  bool
}

// assembly is the connector's state of one source.
type assembly struct {
	Reception
	partials map[uint32]*partial
}

// partial is a frame of which parts have arrived. The connector adds up the lengths, but does not record which parts
// arrived.
type partial struct {
	quality  uint32
	data     []byte
	received int
	offsets  map[uint32]bool
	doubled  bool
}

// fragment is the header of a payload.
type fragment struct{ client, number, total, offset, length, tile, quality uint32 }

// readFragment reads the words at the start of a buffer, which may be words of an earlier packet.
func readFragment(video bool, buffer []byte) fragment {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(buffer[4*i:]) }
	f := fragment{client: word(0), number: word(1), total: word(2), offset: word(3), length: word(4)}
	if video {
		f.tile, f.quality = word(5), word(6)
	}
	return f
}

func newLibrary() *library {
	return &library{sources: make(map[Source]*assembly), frames: make(chan Frame, frameQueue)}
}

// packet processes a payload, with any further bytes in the buffer. packet reports the errors of the payload, once per
// frame.
func (l *library) packet(video bool, buffer []byte) error {
	f := readFragment(video, buffer)
	source, data := Source{int(f.client), int(f.tile)}, buffer[videoHeader:]
	if !video {
		source.Tile, data = SoundTile, buffer[audioHeader:]
	}
	if f.total > maxFrame || int(f.length) > len(data) {
		return fmt.Errorf("%w: %+v", ErrPacket, f)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.sources[source]
	if a == nil {
		a = &assembly{partials: make(map[uint32]*partial)}
		l.sources[source] = a
	}
	frame, err := a.take(f, data[:f.length])
	if frame == nil || l.closed {
		return err
	}
	if !video {
		a.Quality = -1
	}
	select {
	case l.frames <- Frame{source, f.number, a.Quality, frame}:
	default:
		a.Unread++
	}
	return err
}

// take adds a part of a frame, and returns the frame once complete.
func (a *assembly) take(f fragment, data []byte) (complete []byte, err error) {
	if a.Frames > 0 && f.number < a.Number {
		if f.offset > 0 {
			return nil, nil
		}
		a.Rejected++
		return nil, fmt.Errorf("%w: %d after %d, client %d, tile %d", ErrBackwards, f.number, a.Number,
			f.client, f.tile)
	}
	p := a.partials[f.number]
	if p != nil && p.quality != f.quality {
		err = fmt.Errorf("%w: %d and %d, frame %d of client %d, tile %d", ErrMixed, p.quality, f.quality, f.number,
			f.client, f.tile)
		a.Broken++
		p = nil
	}
	if p == nil {
		p = &partial{quality: f.quality, data: make([]byte, f.total), offsets: make(map[uint32]bool)}
		a.partials[f.number] = p
	}
	if uint64(f.offset)+uint64(f.length) > uint64(len(p.data)) {
		return nil, fmt.Errorf("%w: %+v, in a frame of %d bytes", ErrPacket, f, len(p.data))
	}
	if p.offsets[f.offset] && !p.doubled {
		p.doubled = true
		a.Broken++
		err = fmt.Errorf("%w: offset %d, frame %d of client %d, tile %d", ErrDuplicate, f.offset, f.number,
			f.client, f.tile)
	}
	p.offsets[f.offset] = true
	copy(p.data[f.offset:], data)
	if p.received += len(data); p.received != len(p.data) {
		return nil, err
	}
	a.finish(f)
	return p.data, err
}

// finish records a complete frame, and drops older frames: the connector keeps the parts of older frames forever.
func (a *assembly) finish(f fragment) {
	if a.Frames > 0 && f.number == a.Number {
		a.Repeated++
	}
	behind := &a.Incomplete
	if a.Frames == 0 {
		behind = &a.Early
	}
	a.Frames++
	a.Number, a.Quality = f.number, int(f.quality)
	delete(a.partials, f.number)
	for number, p := range a.partials {
		if number < f.number {
			if !p.doubled {
				*behind++
			}
			delete(a.partials, number)
		}
	}
}

// receptions returns the counts of every source.
func (l *library) receptions() map[Source]Reception {
	l.mu.Lock()
	defer l.mu.Unlock()
	receptions := make(map[Source]Reception, len(l.sources))
	for source, a := range maps.All(l.sources) {
		receptions[source] = a.Reception
	}
	return receptions
}

func (l *library) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.frames)
	}
}

// Frames returns a channel of complete frames in the order of completion, which is closed when the peer is closed. The
// connector passes only the newest frame to a reader; here all are passed.
func (p *Peer) Frames() <-chan Frame { return p.library.frames }

// Receptions returns the counts of every source so far.
func (p *Peer) Receptions() map[Source]Reception { return p.library.receptions() }

// Reception returns the counts of one source so far.
func (p *Peer) Reception(source Source) Reception { return p.library.receptions()[source] }
