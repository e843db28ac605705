package payload

import (
	"sync"
	"time"
)

// Frame is a complete frame. The caller owns a Frame until Release.
type Frame struct {
	// Number is the frame number as sent. Extended is the unwrapped number; frames of one
	// Reassembler compare by <. To compare frames of different streams, use ExtendFrame or compare
	// int32(a-b) with 0.
	Number   uint32
	Extended int64
	// Quality is the index of the quality, ascending with fidelity.
	Quality uint8
	// Prefixed reports whether the frame carried a prefix. Without a prefix, Prefix is the zero
	// value.
	Prefixed bool
	Prefix   Prefix
	// Data is the codec's output, without the prefix. Data is empty for a tile without points. Data is nil if the frame
	// refers to shared packets.
	Data []byte
	// Length is the length of the codec's output, also if Data is nil.
	Length int
	// First and Last are the arrival times of the first and of the last packet used.
	First, Last time.Time
	// Begun is the time when the first 65,000 bytes of the frame, or the whole of a shorter frame,
	// had arrived.
	Begun time.Time
	// Packets is the number of distinct packets received. Recovered is the number of source
	// fragments replaced by parity.
	Packets, Recovered int
	// Late reports that a newer frame of this stream was completed earlier.
	Late bool

	prefix [PrefixSize]byte
	buffer []byte
	// shares are the packets of a frame without Data, the first source of them with the source fragments.
	shares []share
	source int
	home   *sync.Pool
}

// RawPrefix returns the bytes of the prefix as they were received, nil without a prefix. They refer
// to the memory of the frame.
func (f *Frame) RawPrefix() []byte {
	if !f.Prefixed {
		return nil
	}
	return f.prefix[:]
}

// AppendParts appends the parts of the codec's output to dst, in order: Data, or parts of the shared packets. The parts
// are valid until Release.
func (f *Frame) AppendParts(dst [][]byte) [][]byte {
	if f.source == 0 {
		return append(dst, f.Data)
	}
	for i, s := range f.shares[:f.source] {
		if i == 0 && f.Prefixed {
			s.data = s.data[PrefixSize:]
		}
		dst = append(dst, s.data)
	}
	return dst
}

// Release returns the frame and its memory to the Reassembler that completed it. Release may be
// called once, from any goroutine; the frame must not be used afterwards. A frame that is never
// released is garbage collected.
func (f *Frame) Release() {
	home := f.home
	if home == nil {
		return
	}
	*f = Frame{buffer: f.buffer, shares: released(f.shares)}
	home.Put(f)
}

// reserve resizes the frame's buffer to size bytes. The content is undefined.
func (f *Frame) reserve(size int) {
	// A buffer of more than four times the size is dropped, so that one huge frame does not occupy
	// memory for the life of the stream. Below 64 kB this is not worth an allocation. An eighth of
	// headroom lets frames grow a little without a new allocation.
	if cap(f.buffer) < size || cap(f.buffer) > 4*size+(64<<10) {
		f.buffer = make([]byte, size, size+size/8)
	}
	f.buffer = f.buffer[:size]
}

// GivenUp describes a frame that received some packets, but not enough to complete it.
type GivenUp struct {
	Number   uint32
	Extended int64
	Quality  uint8
	// First is the arrival time of the first packet.
	First time.Time
	// Source is the number of source fragments, Missing the number of source fragments that did not
	// arrive.
	Source, Missing int
	// Evicted reports that the frame was given up before its deadline, either to make room for a
	// newer frame or because the stream restarted.
	Evicted bool
}

// ExtendFrame unwraps a frame number: of all numbers whose low 32 bits equal frame, it returns the
// one closest to near.
func ExtendFrame(near int64, frame uint32) int64 {
	return near + int64(int32(frame-uint32(near)))
}
