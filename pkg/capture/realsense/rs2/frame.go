package rs2

import (
	"runtime"
	"time"
	"unsafe"
)

// Queue is where sensors and blocks leave frames. When a camera's frame finds it full, the oldest frame makes room; a recording waits.
type Queue struct {
	library *Library
	handle  uintptr
	slot    uintptr // where the library leaves a frame
}

// NewQueue makes a queue of so many frames.
func (l *Library) NewQueue(capacity int) (*Queue, error) {
	var failed uintptr
	handle := l.symbols.CreateFrameQueue(int32(capacity), &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	return &Queue{library: l, handle: handle}, nil
}

// Close throws away the queue and what is in it. Nothing must be filling it any more.
func (q *Queue) Close() { q.library.symbols.DeleteFrameQueue(q.handle) }

// Wait takes a frame out, or gives no frame when none came in time (whole milliseconds).
func (q *Queue) Wait(patience time.Duration) (Frame, error) {
	q.slot = 0
	_, err := q.library.call(q.library.symbols.TryWaitForFrame, q.handle, uintptr(patience.Milliseconds()), address(&q.slot))
	runtime.KeepAlive(q)
	return Frame{q.library, q.slot}, err
}

// Poll takes a frame out, or gives no frame when there is none.
func (q *Queue) Poll() (Frame, error) {
	q.slot = 0
	_, err := q.library.call(q.library.symbols.PollForFrame, q.handle, address(&q.slot))
	runtime.KeepAlive(q)
	return Frame{q.library, q.slot}, err
}

// Frame is an image, or a set of images of one instant. The zero Frame is none.
type Frame struct {
	library *Library
	handle  uintptr
}

// Valid tells whether there is a frame.
func (f Frame) Valid() bool { return f.handle != 0 }

// Release gives the frame's memory back to the library, which has few frames: a camera stalls when too many are held.
func (f Frame) Release() {
	if f.handle != 0 {
		i := invocations.Get().(*invocation)
		i.arguments[0] = f.handle
		invoke(f.library.symbols.ReleaseFrame, i.arguments[:1])
		invocations.Put(i)
	}
}

// Len is the number of images in a set. Of an image by itself it is an error.
func (f Frame) Len() (int, error) {
	n, err := f.library.call(f.library.symbols.EmbeddedFrames, f.handle)
	return int(int32(n)), err
}

// At takes one image of a set, to be released by itself.
func (f Frame) At(index int) (Frame, error) {
	handle, err := f.library.call(f.library.symbols.ExtractFrame, f.handle, uintptr(index))
	return Frame{f.library, handle}, err
}

// Profile is what the image shows, without its size.
func (f Frame) Profile() (Profile, error) {
	handle, err := f.library.call(f.library.symbols.FrameProfile, f.handle)
	if err != nil {
		return Profile{}, err
	}
	return f.library.kind(handle)
}

// Number counts the frames of a stream; of a set it is that of its first image.
func (f Frame) Number() (uint64, error) {
	n, err := f.library.call(f.library.symbols.FrameNumber, f.handle)
	return uint64(n), err
}

// Timestamp is when the image was taken, in milliseconds of its clock; the host's clocks count from 1970.
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

// Picture is the memory of an image: rows of Stride bytes. It is the library's, and valid until the frame is released.
type Picture struct {
	Width, Height, Stride int
	Pixels                []byte
}

// Picture gives an image's memory.
func (f Frame) Picture() (Picture, error) {
	var p Picture
	for _, ask := range []struct {
		function uintptr
		into     *int
	}{{f.library.symbols.FrameWidth, &p.Width}, {f.library.symbols.FrameHeight, &p.Height}, {f.library.symbols.FrameStride, &p.Stride}} {
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

// Vertices gives the points that a block made by NewPointcloud projected, in metres, x right, y down, z forward, one for each pixel of the depth image;
// where that has no depth, the origin. The memory is the library's, and valid until the frame is released.
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

// memory is what lies at an address outside of Go's memory, nothing where there is no address.
func memory[T any](at uintptr, n int) []T {
	if at == 0 || n <= 0 {
		return nil
	}
	// The address never was a Go pointer, so that go vet's rules for turning numbers into pointers do not apply.
	return unsafe.Slice(*(**T)(unsafe.Pointer(&at)), n)
}
