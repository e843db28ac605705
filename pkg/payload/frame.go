package payload

import (
	"sync"
	"time"
)

// Frame is a complete frame. It belongs to the caller until Release.
type Frame struct {
	// Number is the frame number as sent; Extended is the same number unwrapped, so that the frames of one Reassembler compare by <. For frames of
	// different streams use ExtendFrame, or compare int32(a-b) with 0.
	Number   uint32
	Extended int64
	// Quality is the index of the quality.
	Quality uint8
	// Prefixed says whether the frame carried a prefix; without one Prefix is zero.
	Prefixed bool
	Prefix   Prefix
	// Data is what the codec made, without the prefix. It is empty for a tile without points.
	Data []byte
	// First and Last are the times of the first and of the last packet that was used.
	First, Last time.Time
	// Begun is when the first 65,000 bytes of the frame were there, or all of it.
	Begun time.Time
	// Packets is the number of different packets that arrived; Recovered is the number of source fragments that parity replaced.
	Packets, Recovered int
	// Late says that a newer frame of this stream was completed earlier.
	Late bool

	buffer []byte
	home   *sync.Pool
}

// Release gives the frame and its memory back to the Reassembler that completed it. It may be called from any goroutine, once; the frame must not be
// used afterwards. A frame that is never released is simply collected as garbage.
func (f *Frame) Release() {
	home := f.home
	if home == nil {
		return
	}
	buffer := f.buffer
	*f = Frame{buffer: buffer}
	home.Put(f)
}

// reserve makes the frame's buffer size bytes long. Its content is undefined.
func (f *Frame) reserve(size int) {
	// A buffer that once held a frame four times as large as this is let go, so that one huge frame does not stay for the life of the stream; below
	// 64 kB that is not worth an allocation. An eighth of headroom lets frames vary without one.
	if cap(f.buffer) < size || cap(f.buffer) > 4*size+(64<<10) {
		f.buffer = make([]byte, size, size+size/8)
	}
	f.buffer = f.buffer[:size]
}

// GivenUp is a frame that some packets arrived of, but not enough.
type GivenUp struct {
	Number   uint32
	Extended int64
	Quality  uint8
	// First is the time of the first packet.
	First time.Time
	// Source is the number of source fragments, Missing how many of them did not arrive.
	Source, Missing int
	// Evicted says that the frame had to make room for a newer one, or that the stream began anew, before its deadline.
	Evicted bool
}

// ExtendFrame unwraps a frame number: of all numbers that have it as their low 32 bits it returns the one closest to near.
func ExtendFrame(near int64, frame uint32) int64 {
	return near + int64(int32(frame-uint32(near)))
}
