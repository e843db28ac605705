package chunks

import (
	"bytes"
	"testing"
	"time"
)

// pipe passes datagrams to an assembler.
type pipe struct {
	t         *testing.T
	assembler *Assembler
	closed    []Frame
}

// SendOne implements Outlet.
func (p *pipe) SendOne(datagram []byte) {
	f, closed, err := p.assembler.Push(datagram, time.Now())
	if err != nil {
		p.t.Error(err)
	}
	if closed {
		f.Data = bytes.Clone(f.Data)
		p.closed = append(p.closed, f)
	}
}

// TestTransmit sends two frames, with a gap and without, and ends the stream. Both frames arrive complete, and the gap
// is kept.
func TestTransmit(t *testing.T) {
	way := &pipe{t: t, assembler: NewAssembler(1 << 20)}
	packet := make([]byte, 0, MaxPacketSize)
	const gap = 50 * time.Microsecond
	first, last, count := Transmit(way, packet, 1, frameOf(1, 3*ChunkSize), gap)
	if count != 3 || last.Sub(first) < 2*gap {
		t.Errorf("%d chunks within %v, want 3 and at least %v", count, last.Sub(first), 2*gap)
	}
	if first, last, count := Transmit(way, packet, 2, nil, 0); count != 1 || last.Before(first) {
		t.Errorf("a frame without data: %d chunks from %v to %v", count, first, last)
	}
	Finish(way, packet, 2)
	if len(way.closed) != 2 || !bytes.Equal(way.closed[0].Data, frameOf(1, 3*ChunkSize)) ||
		len(way.closed[1].Data) != 0 {
		t.Fatalf("got %d frames, want the two sent frames", len(way.closed))
	}
}
