// Package reflector is VR2Gather's TCP reflector: one connection for each client, and a server that relays a client's
// packets to all other clients. Each client has a queue of ten packets; packets that do not fit are dropped. A packet
// is a line of 128 bytes with the name of the stream, followed by the data.
package reflector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// HeaderSize is the size of a packet's first line, in bytes, with the line feed at its end.
const HeaderSize = 128

// version begins every header.
const version = "2"

// ErrHeader reports an invalid header. The wrapping error has the header.
var ErrHeader = errors.New("malformed header")

// Header describes the data that follows: version,stream,timestamp,length,000…
type Header struct {
	Stream string
	// Timestamp is in milliseconds since 1970.
	Timestamp int64
	Length    int
}

// Append appends the header, padded with zeros to its size. The stream's name must have no comma, and leave room for
// two numbers.
func (h Header) Append(dst []byte) ([]byte, error) {
	begin := len(dst)
	dst = append(append(append(dst, version...), ','), h.Stream...)
	dst = strconv.AppendInt(append(dst, ','), h.Timestamp, 10)
	dst = strconv.AppendInt(append(dst, ','), int64(h.Length), 10)
	dst = append(dst, ',')
	if room := HeaderSize - 1 - (len(dst) - begin); room < 0 || strings.ContainsAny(h.Stream, ",\n") {
		return dst[:begin], fmt.Errorf("%w: stream %.140q, expected no commas and a header of %d bytes", ErrHeader,
			h.Stream, HeaderSize)
	}
	for len(dst)-begin < HeaderSize-1 {
		dst = append(dst, '0')
	}
	return append(dst, '\n'), nil
}

// Parse parses a header of HeaderSize bytes. Errors wrap ErrHeader.
func Parse(line []byte) (Header, error) {
	fail := func(why string) (Header, error) {
		return Header{}, fmt.Errorf("%w: %.*q: %s", ErrHeader, HeaderSize, line, why)
	}
	if len(line) != HeaderSize || line[HeaderSize-1] != '\n' {
		return fail("expected 128 bytes with a line feed at the end")
	}
	fields := bytes.Split(line[:HeaderSize-1], []byte{','})
	if len(fields) != 5 || string(fields[0]) != version {
		return fail("expected 2,stream,timestamp,length,padding")
	}
	timestamp, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil || timestamp < 0 {
		return fail("expected a timestamp in milliseconds")
	}
	length, err := strconv.Atoi(string(fields[3]))
	if err != nil || length < 0 || length > carriage.MaxFrameBytes {
		return fail("expected a length up to that of the largest frame")
	}
	return Header{Stream: string(fields[1]), Timestamp: timestamp, Length: length}, nil
}

// readPacket reads a packet into new memory: header and data.
func readPacket(r io.Reader) (Header, []byte, error) {
	var line [HeaderSize]byte
	if _, err := io.ReadFull(r, line[:]); err != nil {
		return Header{}, nil, err
	}
	h, err := Parse(line[:])
	if err != nil {
		return h, nil, err
	}
	packet := make([]byte, HeaderSize+h.Length)
	copy(packet, line[:])
	if _, err := io.ReadFull(r, packet[HeaderSize:]); err != nil {
		return h, nil, fmt.Errorf("%w: packet cut off: %w", ErrHeader, err)
	}
	return h, packet, nil
}

// StreamName returns the name of the stream of a peer's tile at a quality.
func StreamName(peer string, job carriage.Job) string {
	return peer + "/" + strconv.Itoa(job.Tile) + "/" + strconv.Itoa(int(job.Quality))
}

// ParseStreamName parses the result of StreamName, and reports whether name has that form.
func ParseStreamName(name string) (peer string, job carriage.Job, ok bool) {
	fields := strings.Split(name, "/")
	if len(fields) != 3 {
		return "", job, false
	}
	tile, err := strconv.Atoi(fields[1])
	quality, err2 := strconv.Atoi(fields[2])
	ok = err == nil && err2 == nil && tile >= 0 && tile < volumetric.MaxTiles && quality >= 0 &&
		quality < volumetric.MaxQualities
	return fields[0], carriage.Job{Tile: tile, Quality: volumetric.Quality(quality)}, ok
}
