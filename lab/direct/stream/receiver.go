package stream

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/payload"
)

// ReceiverConfig configures a Receiver.
type ReceiverConfig struct {
	Wire Wire
	// Sender is the SSRC of the receiver's reports.
	Sender uint32
	// MaxFrameBytes is the largest accepted frame.
	MaxFrameBytes int
}

// Receiver receives the frames of one stream.
type Receiver struct {
	config    ReceiverConfig
	nack      feedback.NACKConfig
	header    rtp.Header
	unwrapper feedback.Unwrapper
	nacks     *feedback.NACKGenerator
	repair    feedback.FrameRepair
	frames    *payload.Reassembler
	lateness  *feedback.Lateness
	arrivals  *feedback.ArrivalRecorder
	stats     ReceiverStats

	ask, lost []int64
	givenUp   []payload.GivenUp
}

// ReceiverStats are the counters of a Receiver.
type ReceiverStats struct {
	// Packets counts the packets of both streams, Malformed those that could not be parsed.
	Packets, Malformed uint64
	NACKs              feedback.NACKStats
	Frames             payload.Stats
}

// NewReceiver returns a Receiver.
func NewReceiver(config ReceiverConfig) *Receiver {
	frames, defaults := payload.DefaultConfig(), feedback.DefaultConfig()
	if config.MaxFrameBytes > 0 {
		frames.MaxFrameBytes = config.MaxFrameBytes
	}
	r := &Receiver{
		config:   config,
		nack:     defaults.NACK,
		nacks:    feedback.NewNACKGenerator(defaults.NACK),
		frames:   payload.NewReassembler(frames),
		lateness: feedback.NewLateness(ClockRate),
		arrivals: feedback.NewArrivalRecorder(defaults.Transport, config.Sender),
	}
	r.arrivals.ReportByStream(config.Wire.ByStream)
	return r
}

// Stats returns the counters.
func (r *Receiver) Stats() ReceiverStats {
	s := r.stats
	s.NACKs, s.Frames = r.nacks.Stats(), r.frames.Stats()
	return s
}

// RTP handles a packet that arrived with a codepoint. It may modify the packet. It returns the frame that the packet
// completes, or nil. The frame belongs to the caller until it is released.
func (r *Receiver) RTP(packet []byte, codepoint ecn.Codepoint, now time.Time) *payload.Frame {
	r.stats.Packets++
	n, err := r.header.Unmarshal(packet)
	if err != nil {
		r.stats.Malformed++
		return nil
	}
	r.arrivals.Received(r.header.SSRC, packet, r.config.Wire.Extension, codepoint, now)
	original := r.header.SSRC == r.config.Wire.SSRC
	if !original {
		if packet, n = r.unpack(packet); packet == nil {
			r.stats.Malformed++
			return nil
		}
	}
	frame, ok := r.take(packet[n:], original, now)
	if !ok {
		r.stats.Malformed++
	}
	return frame
}

// unpack converts a retransmission into the original packet. It returns nil if the packet is not a valid
// retransmission.
func (r *Receiver) unpack(packet []byte) ([]byte, int) {
	if r.header.SSRC != r.config.Wire.RetransmissionSSRC || r.config.Wire.RetransmissionSSRC == 0 {
		return nil, 0
	}
	size, err := feedback.UnpackRTX(packet, packet, r.config.Wire.SSRC, r.config.Wire.PayloadType)
	if err != nil {
		return nil, 0
	}
	n, err := r.header.Unmarshal(packet[:size])
	if err != nil {
		return nil, 0
	}
	return packet[:size], n
}

// take handles the payload of a packet whose header was parsed. It returns false if the payload is malformed.
func (r *Receiver) take(data []byte, original bool, now time.Time) (*payload.Frame, bool) {
	sequence, continuity := r.unwrapper.Unwrap(r.header.SequenceNumber)
	switch continuity {
	case feedback.Stray:
		return nil, true
	case feedback.Reset:
		r.nacks.Forget()
		r.frames.Reset()
		r.lateness = feedback.NewLateness(ClockRate)
	}
	if original {
		r.lateness.Received(sequence, r.header.Timestamp, now)
	}
	r.nacks.Received(sequence, now)
	if r.header.Padding && len(data) > 0 {
		data = data[:max(0, len(data)-int(data[len(data)-1]))]
	}
	var d payload.Descriptor
	rest, err := d.Unmarshal(data)
	if err != nil {
		return nil, false
	}
	place := feedback.FramePacket{
		Sequence: sequence, Frame: d.Frame, Index: int(d.Index), Source: int(d.Source), Packets: d.Packets(),
		Marker: r.header.Marker,
	}
	r.repair.Received(r.nacks, place, now)
	complete, err := r.frames.Push(&d, rest, now)
	if err != nil {
		return nil, false
	}
	if complete != nil {
		r.repair.Complete(r.nacks, place)
	}
	return complete, true
}

// ReportDue returns the time of the next report of arrivals, or the zero time if there is nothing to report.
func (r *Receiver) ReportDue() time.Time { return r.arrivals.Next() }

// Step appends the RTCP compound packets that are due: requests for missing packets and reports of arrivals. It must be
// called every few milliseconds. rtt is the round-trip time to the sender, 0 if it is unknown. A frame is
// repaired until 150 ms after its first packet, or 250 ms on paths with a long round-trip time.
func (r *Receiver) Step(now time.Time, rtt time.Duration, compounds [][]byte) [][]byte {
	late := r.lateness.Longest()
	_, deadline := r.nack.Repair(rtt, late)
	r.frames.SetDeadline(deadline)
	r.givenUp = r.frames.Expire(now, r.givenUp[:0])
	if at := r.nacks.Next(); !at.IsZero() && !now.Before(at) {
		r.nacks.Late(late)
		r.ask, r.lost = r.nacks.Due(now, rtt, r.ask[:0], r.lost[:0])
		if len(r.ask) > 0 {
			requests := feedback.AppendNACKs(nil, r.config.Sender, r.config.Wire.SSRC, r.ask)
			for _, compound := range feedback.Compounds(requests) {
				if data, err := rtcp.Marshal(compound); err == nil {
					compounds = append(compounds, data)
				}
			}
		}
	}
	for {
		report := r.arrivals.AppendReports(nil, now)
		if len(report) == 0 {
			return compounds
		}
		compounds = append(compounds, report)
	}
}
