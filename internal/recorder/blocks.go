package recorder

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	// blockSize is a multiple of the block size of disks, and of the alignment that direct writing needs.
	blockSize = 4096
	// bufferBytes is the length of a write. A write of 1 MiB is one request to the disk.
	bufferBytes = 1 << 20
	// maxBuffers bounds the writes at the same time, of all recordings.
	maxBuffers = 4
)

// buffers has the memory of writes for all recordings.
type buffers chan []byte

func newBuffers() buffers {
	b := make(buffers, maxBuffers)
	for range maxBuffers {
		b <- nil
	}
	return b
}

// take returns a buffer that begins at a multiple of blockSize. take waits while all buffers are in use.
func (b buffers) take() []byte {
	if buffer := <-b; buffer != nil {
		return buffer
	}
	memory := make([]byte, bufferBytes+blockSize)
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % blockSize)
	from := (blockSize - past) % blockSize
	return memory[from : from+bufferBytes : from+bufferBytes]
}

// give returns a buffer.
func (b buffers) give(buffer []byte) { b <- buffer }

// blocks appends bytes to a file in whole blocks. A direct write takes the data from the memory of the process: the
// kernel neither copies the data nor keeps a copy of the file in memory. The last, incomplete block is written with
// zeros at its end, and again with the following bytes.
type blocks struct {
	file *os.File
	// direct is set if the file was opened for direct writing.
	direct bool
	// buffer is set from begin to end. Its first byte is at the position at of the file. used is the number of its bytes
	// that are to be written.
	buffer []byte
	at     int64
	used   int
	// rest is the incomplete block between end and begin.
	rest [blockSize]byte
}

// begin begins to append, with memory that end releases.
func (b *blocks) begin(buffer []byte) {
	b.buffer = buffer
	copy(buffer, b.rest[:b.used])
}

// end returns the memory of begin.
func (b *blocks) end() []byte {
	buffer := b.buffer
	b.buffer = nil
	return buffer
}

// append appends data. It writes whole buffers.
func (b *blocks) append(data []byte) error {
	for len(data) > 0 {
		n := copy(b.buffer[b.used:], data)
		b.used += n
		data = data[n:]
		if b.used == len(b.buffer) {
			if err := b.write(b.buffer); err != nil {
				return err
			}
			b.at += int64(b.used)
			b.used = 0
		}
	}
	return nil
}

// flush writes everything that was appended, and keeps the incomplete block.
func (b *blocks) flush() error {
	whole := b.used / blockSize * blockSize
	end := b.used
	if b.direct && end > whole {
		end = whole + blockSize
		clear(b.buffer[b.used:end])
	}
	if err := b.write(b.buffer[:end]); err != nil {
		return err
	}
	b.used = copy(b.rest[:], b.buffer[whole:b.used])
	copy(b.buffer, b.rest[:b.used])
	b.at += int64(whole)
	return nil
}

// write writes data at the position at.
func (b *blocks) write(data []byte) error {
	_, err := b.file.WriteAt(data, b.at)
	if b.direct && errors.Is(err, syscall.EINVAL) {
		// The file system has opened the file for direct writing and cannot do so.
		b.direct = false
		if err := endDirect(b.file); err != nil {
			return err
		}
		_, err = b.file.WriteAt(data, b.at)
	}
	return err
}
