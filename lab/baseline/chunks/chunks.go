// Package chunks is the wire form of the streaming tool of paper 002: a frame is cut into chunks of 1,400 bytes, each
// with the numbers of its frame and of its place in it, and nothing else. So a receiver learns neither how long a frame
// is nor when it was captured: a frame ends when the first chunk of the next one comes, and what did not come until
// then is a hole.
//
// An Assembler is pure and belongs to the goroutine that calls it. Transmit is the paper's second thread: it sends the
// chunks of one frame on the goroutine that calls it.
package chunks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The sizes of the wire form, in bytes. A packet with its IPv4 and UDP headers is 1,436 bytes.
const (
	// HeaderSize is that of the frame's number and the chunk's number, four bytes each, little-endian as the machines
	// of the paper wrote them.
	HeaderSize = 8
	// ChunkSize is what a chunk carries of its frame, all but the last one, which carries the rest.
	ChunkSize = 1400
	// MaxPacketSize is the size of a whole chunk with its header.
	MaxPacketSize = HeaderSize + ChunkSize
)

// Errors of packets. They are wrapped with what was found.
var (
	ErrPacket   = errors.New("malformed chunk")
	ErrTooLarge = errors.New("frame too large")
)

// Count is the number of chunks of a frame of so many bytes. A frame without data is one chunk without data.
func Count(length int) int { return max(1, (length+ChunkSize-1)/ChunkSize) }

// Append appends a chunk of a frame to dst; index is below Count(len(frame)).
func Append(dst []byte, number uint32, frame []byte, index int) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, number)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(index))
	return append(dst, frame[index*ChunkSize:min((index+1)*ChunkSize, len(frame))]...)
}

// Frame is what came of one frame. It is not known whether that is all: the last chunks of a frame are missed by
// nobody.
type Frame struct {
	Number uint32
	// Data is as long as the last chunk that came says, with zeros where a chunk did not. It is valid until the next
	// Push.
	Data []byte
	// Chunks came; Holes did not, before the last one that did.
	Chunks, Holes int
	// First and Last are when the first and the last chunk came, Closed when the first of the next frame did.
	First, Last, Closed time.Time
}

// restartAfter is the number of chunks in a row from before the frame under way that make a stream begin anew: a
// frame's worth of late ones does no harm, and a sender that was started again sends more.
const restartAfter = 512

// Assembler puts the chunks of one stream together. Its memory is bounded by the size of the largest frame.
type Assembler struct {
	maxBytes int
	begun    bool
	number   uint32
	frame    Frame
	// data and closed are the memory of the frame under way and of the one that was closed.
	data, closed []byte
	seen         []uint64
	stale        int
	stats        Stats
}

// Stats counts what an Assembler saw.
type Stats struct {
	// Packets of any fate; Late ones were of a frame that was closed, Duplicates came twice.
	Packets, Late, Duplicates uint64
	// Malformed packets were too short, too long or of too large a frame; Restarts is how often numbers began anew.
	Malformed, Restarts uint64
}

// NewAssembler makes one for frames of at most so many bytes.
func NewAssembler(maxBytes int) *Assembler { return &Assembler{maxBytes: maxBytes} }

// Stats returns the counts so far.
func (a *Assembler) Stats() Stats { return a.stats }

// Push takes a packet and returns the frame that it closes, if it is the first of another one. Errors wrap ErrPacket or
// ErrTooLarge.
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

// parse reads a packet's header and holds it against the limits.
func (a *Assembler) parse(packet []byte) (number uint32, index int, data []byte, err error) {
	if len(packet) < HeaderSize || len(packet) > MaxPacketSize {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes, expected %d to %d", ErrPacket, len(packet), HeaderSize, MaxPacketSize)
	}
	number = binary.LittleEndian.Uint32(packet)
	place := binary.LittleEndian.Uint32(packet[4:])
	data = packet[HeaderSize:]
	if len(data) == 0 && place > 0 {
		return 0, 0, nil, fmt.Errorf("%w: chunk %d of frame %d has no data", ErrPacket, place, number)
	}
	if int64(place)*ChunkSize+int64(len(data)) > int64(a.maxBytes) {
		return 0, 0, nil, fmt.Errorf("%w: chunk %d of frame %d, expected at most %d bytes", ErrTooLarge, place, number, a.maxBytes)
	}
	return number, int(place), data, nil
}

// restarted counts a chunk of an earlier frame, and tells whether there were so many that the stream has begun anew.
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

// close ends the frame under way. Its memory becomes that of the frame after the next.
func (a *Assembler) close(now time.Time) Frame {
	f := a.frame
	f.Data, f.Closed, f.Holes = a.data, now, Count(len(a.data))-f.Chunks
	a.data, a.closed = a.closed, a.data
	return f
}

// put writes a chunk to its place.
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
		// What was in this memory is of an older frame: a chunk that does not come must not leave it there.
		clear(a.data[before:min(end, max(begin, before))])
	}
	copy(a.data[begin:], data)
	a.frame.Chunks++
	a.frame.Last = now
}
