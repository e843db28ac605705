package rs2

import (
	"runtime"
	"time"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/foreign"
)

// Queue collects frames from sensors and blocks. In a full queue, a new frame of a camera replaces
// the oldest frame; a recording waits.
type Queue struct {
	library *Library
	handle  uintptr
	slot    uintptr // memory in which the library stores a frame
}

// NewQueue makes a queue for the given number of frames.
func (l *Library) NewQueue(capacity int) (*Queue, error) {
	var failed uintptr
	handle := l.symbols.CreateFrameQueue(int32(capacity), &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	return &Queue{library: l, handle: handle}, nil
}

// Close frees the queue and its frames. Nothing may be writing to it.
func (q *Queue) Close() { q.library.symbols.DeleteFrameQueue(q.handle) }

// Wait removes and returns a frame, or no frame if none arrived in time (whole milliseconds).
func (q *Queue) Wait(patience time.Duration) (Frame, error) {
	q.slot = 0
	_, err := q.library.call(
		q.library.symbols.TryWaitForFrame,
		q.handle,
		uintptr(patience.Milliseconds()),
		address(&q.slot),
	)
	runtime.KeepAlive(q)
	return Frame{q.library, q.slot}, err
}

// Poll removes and returns a frame, or no frame if the queue is empty.
func (q *Queue) Poll() (Frame, error) {
	q.slot = 0
	_, err := q.library.call(q.library.symbols.PollForFrame, q.handle, address(&q.slot))
	runtime.KeepAlive(q)
	return Frame{q.library, q.slot}, err
}

// Frame is an image, or a set of images of one instant. The zero value means no frame.
type Frame struct {
	library *Library
	handle  uintptr
}

// Valid reports whether there is a frame.
func (f Frame) Valid() bool { return f.handle != 0 }

// Release returns the frame's memory to the library. The library has few frames: a camera stalls if
// too many are in use.
func (f Frame) Release() {
	if f.handle != 0 {
		i := invocations.Get().(*invocation)
		i.arguments[0] = f.handle
		foreign.Invoke(f.library.symbols.ReleaseFrame, i.arguments[:1])
		invocations.Put(i)
	}
}

// Len returns the number of images in a set. For a single image, Len fails.
func (f Frame) Len() (int, error) {
	n, err := f.library.call(f.library.symbols.EmbeddedFrames, f.handle)
	return int(int32(n)), err
}

// At returns one image of a set, which must be released separately.
func (f Frame) At(index int) (Frame, error) {
	handle, err := f.library.call(f.library.symbols.ExtractFrame, f.handle, uintptr(index))
	return Frame{f.library, handle}, err
}

// Profile returns the profile of the image, without its size.
func (f Frame) Profile() (Profile, error) {
	handle, err := f.library.call(f.library.symbols.FrameProfile, f.handle)
	if err != nil {
		return Profile{}, err
	}
	return f.library.kind(handle)
}

// Number returns the number of the frame in the stream. The number of a set is that of the first
// image.
func (f Frame) Number() (uint64, error) {
	n, err := f.library.call(f.library.symbols.FrameNumber, f.handle)
	return uint64(n), err
}

// Timestamp returns the capture time in milliseconds and its clock. The host's clocks count from
// 1970.
func (f Frame) Timestamp() (float64, Domain, error) {
	domain, err := f.library.call(f.library.symbols.FrameDomain, f.handle)
	if err != nil {
		return 0, 0, err
	}
	i := invocations.Get().(*invocation)
	defer invocations.Put(i)
	i.failed = 0
	stamp := f.library.symbols.GetTimestamp(f.handle, &i.failed)
	return stamp, Domain(int32(domain)), f.library.failure(i.failed)
}

// Picture is the memory of an image: rows of Stride bytes. The library owns the memory, which is
// valid until the frame is released.
type Picture struct {
	Width, Height, Stride int
	Pixels                []byte
}

// Picture returns the memory of an image.
func (f Frame) Picture() (Picture, error) {
	var p Picture
	for _, ask := range []struct {
		function uintptr
		into     *int
	}{{f.library.symbols.FrameWidth, &p.Width}, {f.library.symbols.FrameHeight, &p.Height},
		{f.library.symbols.FrameStride, &p.Stride}} {
		n, err := f.library.call(ask.function, f.handle)
		if err != nil {
			return Picture{}, err
		}
		*ask.into = int(int32(n))
	}
	data, err := f.library.call(f.library.symbols.FrameData, f.handle)
	if err != nil {
		return Picture{}, err
	}
	p.Pixels = memory[byte](data, p.Stride*p.Height)
	return p, nil
}

// Vertices returns the points projected by a block of NewPointcloud, in metres, x right, y down, z forward, one for
// each pixel of the depth image. Pixels without depth yield the origin. The library owns the memory. The memory is
// valid until the frame is released.
func (f Frame) Vertices() ([][3]float32, error) {
	n, err := f.library.call(f.library.symbols.FramePointsCount, f.handle)
	if err != nil {
		return nil, err
	}
	data, err := f.library.call(f.library.symbols.FrameVertices, f.handle)
	if err != nil {
		return nil, err
	}
	return memory[[3]float32](data, int(int32(n))), nil
}

// memory returns the values at an address outside of Go's memory, nil for address 0.
func memory[T any](at uintptr, n int) []T {
	if at == 0 || n <= 0 {
		return nil
	}
	// The address was never a Go pointer, so go vet's rules for converting numbers to pointers do
	// not apply.
	return unsafe.Slice(*(**T)(unsafe.Pointer(&at)), n)
}
