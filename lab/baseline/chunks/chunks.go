// Package chunks implements the wire format of the streaming tool of paper 002. A frame is cut into chunks of 1,400
// bytes. A chunk has the number of the frame and the index of the chunk, and nothing else, so that a receiver knows
// neither the length nor the capture time of a frame. A frame ends when the first chunk of the next frame arrives;
// chunks that are missing then are holes.
//
// An Assembler is pure and belongs to the goroutine that calls it. Transmit is the second thread of the paper: it sends
// the chunks of one frame on the goroutine that calls it.
package chunks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Sizes of the wire format, in bytes. A packet with its IPv4 and UDP headers is 1,436 bytes.
const (
	// HeaderSize is the size of the frame number and the chunk index, four bytes each, little-endian as written by the
	// machines of the paper.
	HeaderSize = 8
	// ChunkSize is the data of a chunk. The last chunk of a frame has the rest of the frame.
	ChunkSize = 1400
	// MaxPacketSize is the size of a whole chunk with its header.
	MaxPacketSize = HeaderSize + ChunkSize
)

// Errors of packets, wrapped with the values found.
var (
	ErrPacket   = errors.New("malformed chunk")
	ErrTooLarge = errors.New("frame too large")
)

// Count returns the number of chunks of a frame with that many bytes. A frame without data is one chunk without data.
func Count(length int) int { return max(1, (length+ChunkSize-1)/ChunkSize) }

// Append appends a chunk of a frame to dst; index is below Count(len(frame)).
func Append(dst []byte, number uint32, frame []byte, index int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, number)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(index))
	return append(dst, frame[index*ChunkSize:min((index+1)*ChunkSize, len(frame))]...)
}

// Frame is the received part of a frame. If the last chunks of a frame are lost, the receiver cannot know.
type Frame struct {
	Number uint32
	// Data ends with the last received chunk, and has zeros in place of missing chunks. Data is valid until the next
	// Push.
	Data []byte
	// Chunks is the number of received chunks, Holes the number of missing chunks before the last received chunk.
	Chunks, Holes int
	// First and Last are the arrival times of the first and the last chunk, Closed that of the next frame's first.
	First, Last, Closed time.Time
}

// restartAfter is the number of consecutive chunks of earlier frames after which the stream counts as restarted. A
// frame has fewer late chunks; a restarted sender sends more.
const restartAfter = 512

// Assembler reassembles the frames of one stream. Its memory is bounded by the size of the largest frame.
type Assembler struct {
	maxBytes int
	begun    bool
	number   uint32
	frame    Frame
	// data and closed are the memory of the present frame and of the frame before.
	data, closed []byte
	seen         []uint64
	stale        int
	stats        Stats
}

// Stats counts the packets of an Assembler.
type Stats struct {
	// Packets counts all packets, Late the packets of closed frames, Duplicates repeated packets.
	Packets, Late, Duplicates uint64
	// Malformed counts packets that are too short, too long or of a frame that is too large, Restarts the restarts of
	// the stream.
	Malformed, Restarts uint64
}

// NewAssembler returns an Assembler for frames of up to maxBytes bytes.
func NewAssembler(maxBytes int) *Assembler { return &Assembler{maxBytes: maxBytes} }

// Stats returns the counts so far.
func (a *Assembler) Stats() Stats { return a.stats }

// Push adds a packet. The first packet of the next frame closes the present frame, which Push then returns. Errors wrap
// ErrPacket or ErrTooLarge.
func (a *Assembler) Push(packet []byte, now time.Time) (closed Frame, ok bool, err error) {
	a.stats.Packets++
	number, index, data, err := a.parse(packet)
	if err != nil {
		a.stats.Malformed++
		return Frame{}, false, err
	}
	switch distance := int32(number - a.number); {
	case !a.begun:
		a.begin(number, now)
	case distance == 0:
		a.stale = 0
	case distance > 0 || a.restarted():
		closed, ok = a.close(now), true
		a.begin(number, now)
	default:
		a.stats.Late++
		return Frame{}, false, nil
	}
	a.put(index, data, now)
	return closed, ok, nil
}

// parse reads the header of a packet and checks the limits.
func (a *Assembler) parse(packet []byte) (number uint32, index int, data []byte, err error) {
	if len(packet) < HeaderSize || len(packet) > MaxPacketSize {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes, expected %d to %d", ErrPacket, len(packet), HeaderSize,
			MaxPacketSize)
	}
	number = binary.LittleEndian.Uint32(packet)
	place := binary.LittleEndian.Uint32(packet[4:])
	data = packet[HeaderSize:]
	if len(data) == 0 && place > 0 {
		return 0, 0, nil, fmt.Errorf("%w: chunk %d of frame %d has no data", ErrPacket, place, number)
	}
	if int64(place)*ChunkSize+int64(len(data)) > int64(a.maxBytes) {
		return 0, 0, nil, fmt.Errorf("%w: chunk %d of frame %d, expected at most %d bytes", ErrTooLarge, place, number,
			a.maxBytes)
	}
	return number, int(place), data, nil
}

// restarted counts a chunk of an earlier frame, and reports whether the stream has restarted.
func (a *Assembler) restarted() bool {
	if a.stale++; a.stale < restartAfter {
		return false
	}
	a.stats.Restarts++
	return true
}

func (a *Assembler) begin(number uint32, now time.Time) {
	a.begun, a.number, a.stale = true, number, 0
	a.data, a.seen = a.data[:0], a.seen[:0]
	a.frame = Frame{Number: number, First: now}
}

// close ends the present frame. The memory of the frame is used again for the frame after the next.
func (a *Assembler) close(now time.Time) Frame {
	f := a.frame
	f.Data, f.Closed, f.Holes = a.data, now, Count(len(a.data))-f.Chunks
	a.data, a.closed = a.closed, a.data
	return f
}

// put stores a chunk.
func (a *Assembler) put(index int, data []byte, now time.Time) {
	begin := index * ChunkSize
	if words := index/64 + 1; words > len(a.seen) {
		a.seen = append(a.seen, make([]uint64, words-len(a.seen))...)
	}
	if a.seen[index/64]>>(index%64)&1 == 1 {
		a.stats.Duplicates++
		return
	}
	a.seen[index/64] |= 1 << (index % 64)
	if end := begin + len(data); end > len(a.data) {
		before := len(a.data)
		a.data = slices.Grow(a.data, end-before)[:end]
		// The memory has data of an older frame, which must not remain in place of a missing chunk.
		clear(a.data[before:min(end, max(begin, before))])
	}
	copy(a.data[begin:], data)
	a.frame.Chunks++
	a.frame.Last = now
}
