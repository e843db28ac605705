package recorder

import (
	"sync"
	"unsafe"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/recording"
)

const (
	// blockSize is a multiple of the block size of disks, and of the alignment that direct writing needs.
	blockSize = 4096
	// bufferBytes is the length of the buffers of a chunk, a multiple of blockSize: the memory of a recording in which
	// little happens.
	bufferBytes = 64 << 10
	// spareBuffers bounds the unused buffers that all recordings keep: 4 MiB.
	spareBuffers = 64
)

// buffers has unused buffers. The buffer that was returned last is taken first, since the processor's caches may still
// have it. The methods are safe for any goroutine.
type buffers struct {
	mu    sync.Mutex
	spare [][]byte
}

// take returns a buffer that begins at a multiple of blockSize.
func (b *buffers) take() []byte {
	if buffer := b.reuse(); buffer != nil {
		return buffer
	}
	memory := make([]byte, bufferBytes+blockSize)
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % blockSize)
	from := (blockSize - past) % blockSize
	return memory[from : from+bufferBytes : from+bufferBytes]
}

// reuse returns the unused buffer that was returned last, nil without one.
func (b *buffers) reuse() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	last := len(b.spare) - 1
	if last < 0 {
		return nil
	}
	buffer := b.spare[last]
	b.spare[last] = nil
	b.spare = b.spare[:last]
	return buffer
}

// give returns buffers.
func (b *buffers) give(list [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spare = append(b.spare, list[:min(len(list), spareBuffers-len(b.spare))]...)
}

// chunk is a part of a segment on its way to the disk. It begins at a multiple of blockSize in the segment, with the
// bytes before its first record that share a block with it.
type chunk struct {
	segment int
	// first and last are set for the first and the last chunk of a segment.
	first, last bool
	// frames is the number of frames and units in the chunk.
	frames int
	// at is the position in the segment, before the number of bytes before the first record, and used the number of all
	// bytes.
	at           int64
	before, used int
	// data are the buffers, all of which are full except the last.
	data [][]byte
	free *buffers
	// encoded and parts are memory for records.
	encoded []byte
	parts   [][]byte
}

// size returns the length of the records in the chunk.
func (c *chunk) size() int64 { return int64(c.used - c.before) }

// memory returns the memory of the chunk in bytes.
func (c *chunk) memory() int64 { return int64(len(c.data)) * bufferBytes }

// empty reports whether the chunk has no record.
func (c *chunk) empty() bool { return c.used == c.before }

// append appends bytes.
func (c *chunk) append(data []byte) {
	for len(data) > 0 {
		from := c.used % bufferBytes
		if c.used == len(c.data)*bufferBytes {
			c.data = append(c.data, c.free.take())
		}
		n := copy(c.data[len(c.data)-1][from:], data)
		c.used += n
		data = data[n:]
	}
}

// record appends a record other than a frame.
func (c *chunk) record(r recording.Record) {
	c.encoded = recording.Append(c.encoded[:0], r)
	c.append(c.encoded)
}

// frame appends a frame. The checksum is that of the copy, which has fewer and longer parts than the packets.
func (c *chunk) frame(r *recording.Frame, f *payload.Frame) {
	at := c.used
	c.encoded = recording.AppendFrameHead(c.encoded[:0], r)
	c.append(c.encoded)
	c.parts = f.AppendParts(c.parts[:0])
	for _, data := range c.parts {
		c.append(data)
	}
	clear(c.parts)
	c.parts = c.written(c.parts[:0], at+len(c.encoded))
	recording.SealFrame(c.encoded, f.Length, c.parts...)
	clear(c.parts)
	c.overwrite(at, c.encoded)
}

// written appends the parts of the buffers that have the bytes from a position on to dst.
func (c *chunk) written(dst [][]byte, from int) [][]byte {
	for from < c.used {
		begin := from % bufferBytes
		part := c.data[from/bufferBytes][begin:min(begin+c.used-from, bufferBytes)]
		dst = append(dst, part)
		from += len(part)
	}
	return dst
}

// overwrite replaces the bytes from a position on.
func (c *chunk) overwrite(at int, data []byte) {
	for len(data) > 0 {
		n := copy(c.data[at/bufferBytes][at%bufferBytes:], data)
		at += n
		data = data[n:]
	}
}

// follow makes an empty chunk that continues c in the same segment.
func (c *chunk) follow() *chunk {
	next := &chunk{segment: c.segment, free: c.free, encoded: c.encoded[:0], parts: c.parts[:0]}
	if cap(c.encoded) > bufferBytes {
		next.encoded = nil
	}
	whole := c.used / blockSize * blockSize
	next.at = c.at + int64(whole)
	if whole < c.used {
		last := c.data[len(c.data)-1]
		from := whole % bufferBytes
		next.append(last[from : from+c.used-whole])
		next.before = next.used
	}
	return next
}

// blocks returns the bytes of the chunk, with zeros to the end of the last block if whole is set.
func (c *chunk) blocks(whole bool) [][]byte {
	if len(c.data) == 0 {
		return nil
	}
	list := append([][]byte(nil), c.data...)
	last := &list[len(list)-1]
	used := c.used - (len(list)-1)*bufferBytes
	end := used
	if whole {
		end = (used + blockSize - 1) / blockSize * blockSize
		clear((*last)[used:end])
	}
	*last = (*last)[:end]
	return list
}

// release returns the buffers.
func (c *chunk) release() {
	c.free.give(c.data)
	c.data = nil
}
