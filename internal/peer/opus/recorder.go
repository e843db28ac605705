package opus

import (
	"fmt"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4/pkg/media/oggwriter"
)

// Recorder writes one received Opus track to an Ogg file. A Recorder puts packets in order. For each lost packet it
// writes a packet without audio, which decoders conceal, so that later packets keep their time. A Recorder is owned by
// one goroutine.
type Recorder struct {
	writer *oggwriter.OggWriter
	// waiting has the packets after a gap, by extended sequence number. next is the number of the next packet to write.
	waiting map[int64]*rtp.Packet
	started bool
	next    int64
	toc     byte
}

// reorderPackets is the number of packets that may wait for a missing one: 400 ms of 20 ms packets, more than any
// repair takes.
const reorderPackets = 20

// maxConcealed is the longest gap that is filled: 10 s of 20 ms packets. A longer gap is a pause or another track.
const maxConcealed = 500

// NewRecorder creates the file.
func NewRecorder(name string, channels uint16) (*Recorder, error) {
	writer, err := oggwriter.New(name, ClockRate, max(channels, 1))
	if err != nil {
		return nil, err
	}
	return &Recorder{writer: writer, waiting: make(map[int64]*rtp.Packet)}, nil
}

// Write adds one packet. Duplicate and late packets are dropped. Errors are those of the file.
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

// release writes the packets that are in order. If more than keep packets wait, it also writes those after gaps.
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
			// Code 0 without further bytes is one frame without data (RFC 6716 section 3.2.1, RFC 7845 section 4.1).
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

// Close writes the waiting packets and closes the file.
func (r *Recorder) Close() error {
	err := r.release(0)
	if closing := r.writer.Close(); err == nil {
		err = closing
	}
	return err
}
