package export

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/recording"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// maxDrift is the largest difference between the time by timestamps and the time of arrival. Beyond it, the sender
	// has begun other timestamps.
	maxDrift = time.Second
	// maxSilence is the longest pause that is filled with silence.
	maxSilence = 24 * time.Hour
)

// voice is the Ogg file of a publication of sound. Its packets follow each other without gaps: lost packets and pauses
// are packets without sound, which decoders conceal.
type voice struct {
	*recording.Publication
	path   string
	writer *opus.Recorder
	// begins is the time of the first packet since the beginning of the recording.
	begins time.Duration
	// next is the number of samples in the file, sequence that of packets.
	next     int64
	sequence uint16
	// position and timestamp are those of the latest packet.
	position  int64
	timestamp uint32
}

// samples converts a time to samples of Opus.
func samples(d time.Duration) int64 { return int64(d.Seconds() * opus.ClockRate) }

// newVoice returns the file of a publication in a folder. The file is created with the first packet.
func newVoice(folder string, p *recording.Publication) *voice {
	name := fmt.Sprintf("%s.%s.%d.ogg", volumetric.FileName(p.Participant), volumetric.FileName(p.Description.Name),
		p.ID)
	return &voice{Publication: p, path: filepath.Join(folder, name)}
}

// add adds a packet at a time since the beginning of the recording. A packet that overlaps an earlier one is left out.
func (v *voice) add(at time.Duration, timestamp uint32, packet []byte) error {
	duration, err := opus.Duration(packet)
	if err != nil {
		return nil
	}
	if v.writer == nil {
		if v.writer, err = opus.NewRecorder(v.path, uint16(v.Description.Codec.Channels)); err != nil {
			return err
		}
		v.begins, v.timestamp = at, timestamp
	}
	position := v.position + int64(int32(timestamp-v.timestamp))
	if arrival := samples(at - v.begins); math.Abs(float64(position-arrival)) > float64(samples(maxDrift)) {
		position = max(v.next, arrival)
	}
	v.position, v.timestamp = position, timestamp
	if position < v.next {
		return nil
	}
	// Code 0 without further bytes is one frame without data (RFC 6716, section 3.2.1).
	silent := []byte{packet[0] &^ 3}
	frame, err := opus.Duration(silent)
	if err != nil {
		return err
	}
	if position-v.next < samples(maxSilence) {
		for v.next+samples(frame) <= position {
			if err := v.write(silent, frame); err != nil {
				return err
			}
		}
	}
	return v.write(packet, duration)
}

// write appends a packet of a duration.
func (v *voice) write(packet []byte, duration time.Duration) error {
	v.sequence++
	v.next += samples(duration)
	return v.writer.Write(&rtp.Packet{
		Header:  rtp.Header{SequenceNumber: v.sequence, Timestamp: uint32(v.next)},
		Payload: packet,
	})
}

// close closes the file.
func (v *voice) close() error { return v.writer.Close() }
