package opus

import (
	"fmt"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4/pkg/media/oggwriter"
)

// Recorder writes one received track of Opus as an Ogg file. Packets are put into order; for each lost one it writes a
// packet without sound, which decoders conceal, so that what follows keeps its time. It belongs to one goroutine.
type Recorder struct {
	writer *oggwriter.OggWriter
	// waiting are packets behind a gap, by extended sequence number; next is the number to be written.
	waiting map[int64]*rtp.Packet
	started bool
	next    int64
	toc     byte
}

// reorderPackets is how many packets may wait behind a missing one: 400 ms of 20 ms packets, more than any repair
// takes.
const reorderPackets = 20

// maxConcealed is the longest gap that is filled: ten seconds of 20 ms packets. A longer one is a pause or another
// track.
const maxConcealed = 500

// NewRecorder creates the file.
func NewRecorder(name string, channels uint16) (*Recorder, error) {
	writer, err := oggwriter.New(name, ClockRate, max(channels, 1))
	if err != nil {
		return nil, err
	}
	return &Recorder{writer: writer, waiting: make(map[int64]*rtp.Packet)}, nil
}

// Write takes one packet. Packets that come twice or too late are dropped. Errors are the file's.
func (r *Recorder) Write(packet *rtp.Packet) error {
	if _, err := Duration(packet.Payload); err != nil {
		return nil
	}
	sequence := int64(packet.SequenceNumber)
	if r.started {
		sequence = r.next + int64(int16(packet.SequenceNumber-uint16(r.next)))
	} else {
		r.started, r.next = true, sequence
	}
	if sequence < r.next {
		return nil
	}
	r.waiting[sequence] = packet
	return r.release(reorderPackets)
}

// release writes what is in order, and what waits behind gaps while more than so many packets wait.
func (r *Recorder) release(keep int) error {
	for {
		packet := r.waiting[r.next]
		switch {
		case packet != nil:
			delete(r.waiting, r.next)
			r.toc = packet.Payload[0]
		case len(r.waiting) <= keep:
			return nil
		default:
			if first := r.first(); first-r.next > maxConcealed {
				r.next = first
				continue
			}
			// Code 0 with nothing after the first byte is one frame without data (RFC 6716 section 3.2.1, RFC 7845
			// section 4.1).
			packet = &rtp.Packet{Payload: []byte{r.toc &^ 3}}
		}
		r.next++
		if err := r.writer.WriteRTP(packet); err != nil {
			return fmt.Errorf("write Ogg: %w", err)
		}
	}
}

func (r *Recorder) first() int64 {
	first := int64(-1)
	for sequence := range r.waiting {
		if first < 0 || sequence < first {
			first = sequence
		}
	}
	return first
}

// Close writes what waits and closes the file.
func (r *Recorder) Close() error {
	err := r.release(0)
	if closing := r.writer.Close(); err == nil {
		err = closing
	}
	return err
}
