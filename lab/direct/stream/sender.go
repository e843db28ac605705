package stream

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/congestion/sender"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// SenderConfig configures a Sender.
type SenderConfig struct {
	Wire Wire
	// Congestion configures the bandwidth estimate, with the algorithm for the reports of the Wire. Without Estimate,
	// there is no estimate and no rate limit.
	Congestion congestion.Config
	Estimate   bool
	// Pacing is the spreading of frames.
	Pacing pacing.Mode
	// Budget is the time for which a frame may wait for earlier ones. When a newer frame arrives, a frame that has
	// waited longer and has not begun is dropped completely.
	Budget time.Duration
}

// Frame is one frame to send.
type Frame struct {
	Number  uint32
	Capture time.Time
	// Data begins with the prefix of payload v1. It is copied.
	Data []byte
}

// Departure is the result of a frame: sent or dropped.
type Departure struct {
	Number      uint32
	First, Last time.Time
	Packets     int
	Dropped     bool
}

// Packet is one packet to send.
type Packet struct {
	Header  rtp.Header
	Payload []byte
	// ECN is the codepoint with which the packet leaves.
	ECN ecn.Codepoint
}

// Sender sends the frames of one stream.
type Sender struct {
	config  SenderConfig
	started time.Time

	// fragmenter splits frames into packets, schedule and control determine when they are sent, and flow has the
	// waiting packets.
	fragmenter payload.Fragmenter
	schedule   pacing.Schedule
	control    *sender.Sender[held, uint16]
	flow       pacing.Flow[held]
	newest     int64
	frames     int

	sequence  uint16
	timestamp uint32
	history   *feedback.SendHistory
	repeats   feedback.RTX

	results     []feedback.PacketResult
	reportLimit feedback.ReportLimit
	// padded is the number of packets that a probe has repeated since the newest packet was sent.
	padded uint16

	ready    []Packet
	departed []Departure
}

// held is a waiting packet of a frame.
type held struct {
	frame *outgoing
	index int
}

// outgoing is a frame that is being sent.
type outgoing struct {
	departure Departure
	timestamp uint32
	queued    time.Time
	// slab has the packets, each of payload.MaxPacketSize bytes except the last.
	slab []byte
	// ordinal is the number of the frame, counted from 1.
	ordinal int
}

func (f *outgoing) packet(index int) []byte {
	begin := index * payload.MaxPacketSize
	return f.slab[begin:min(begin+payload.MaxPacketSize, len(f.slab))]
}

// NewSender returns a Sender. Errors are those of the configuration.
func NewSender(config SenderConfig, now time.Time) (*Sender, error) {
	plan, err := config.Pacing.Plan()
	if err != nil {
		return nil, err
	}
	if err := config.Congestion.Validate(); err != nil {
		return nil, err
	}
	s := &Sender{
		config:   config,
		started:  now,
		schedule: pacing.NewSchedule(plan, ClockRate),
		control: sender.New[held, uint16](sender.Options{Plan: plan, Grace: sender.UsualGrace, Idle: sender.UsualIdle,
			Look: sender.LookInterval}, now),
		// A receiver that missed the packets before an early wrap would have the wrong rollover counter (RFC 3711
		// section 3.3.1).
		sequence:  uint16(rand.Uint32N(1 << 15)),
		timestamp: rand.Uint32(),
		history:   feedback.NewSendHistory(feedback.DefaultConfig().History),
		repeats: feedback.RTX{
			SSRC: config.Wire.RetransmissionSSRC, PayloadType: config.Wire.RetransmissionPayloadType,
			Next: uint16(rand.Uint32N(1 << 15)),
		},
	}
	var estimator congestion.Estimator
	if config.Estimate {
		estimator = congestion.New(config.Congestion.Algorithm(config.Wire.ByStream), config.Congestion, now)
	}
	history := sender.NewNumbered(uint16(rand.Uint32()))
	if config.Wire.ByStream {
		history = sender.NewByStream()
	}
	s.control.Start(history, estimator, now)
	return s, nil
}

// Estimate returns the bandwidth estimate, 0 without an estimator.
func (s *Sender) Estimate() volumetric.Bitrate { return s.control.Stats().Estimate }

// Stats returns the statistics of the estimator; the zero value without an estimator.
func (s *Sender) Stats() congestion.Stats { return *s.control.Stats() }

// Want sets the rate that would be sent without a bandwidth limit.
func (s *Sender) Want(now time.Time, rate volumetric.Bitrate) { s.control.Want(rate, now) }

// Send queues a frame. Step returns its packets. Errors are those of payload.Fragmenter.Begin.
func (s *Sender) Send(frame Frame, now time.Time) error {
	err := s.fragmenter.Begin(payload.Descriptor{Prefixed: true, Frame: frame.Number}, frame.Data)
	if err != nil {
		return fmt.Errorf("frame %d: %w", frame.Number, err)
	}
	packets := s.fragmenter.Packets()
	f := &outgoing{
		departure: Departure{Number: frame.Number, Packets: packets},
		timestamp: s.timestamp + uint32(frame.Capture.Sub(s.started)*ClockRate/time.Second),
		queued:    now,
		slab:      make([]byte, 0, len(frame.Data)+packets*payload.DescriptorSize),
	}
	for i := range packets {
		if f.slab, err = s.fragmenter.AppendPacket(f.slab, i); err != nil {
			return fmt.Errorf("frame %d: %w", frame.Number, err)
		}
	}
	s.leaveOut(now)
	s.frames++
	f.ordinal = s.frames
	s.newest = payload.ExtendFrame(s.newest, frame.Number)
	at := now.Sub(s.started)
	for i := range packets {
		place := pacing.Packet{Framed: true, Frame: s.newest, Index: i, Packets: packets, Timestamp: f.timestamp}
		offer := pacing.Offer{Arrived: at, Due: s.schedule.Due(place, at), Begins: i == 0,
			Frame: len(f.slab) + packets*congestion.PacketOverhead}
		if h := (held{f, i}); s.control.Admit(&s.flow, offer, at) {
			s.leave(h, now)
		} else {
			s.control.Hold(&s.flow, h, offer)
		}
	}
	return nil
}

// Step appends the packets that are to be sent now. It must be called at Next and after every other call.
func (s *Sender) Step(now time.Time, packets []Packet) []Packet {
	at := now.Sub(s.started)
	if s.control.StepDue() <= at {
		s.control.Step(now)
	}
	if next, ok := s.control.Next(); ok && next <= at {
		s.control.Tick(at)
		for {
			sequence, ok := s.control.PopRepair()
			if !ok {
				break
			}
			s.repeat(sequence, feedback.Retransmission, now)
		}
		for {
			h, ok := s.control.Pop(at)
			if !ok {
				break
			}
			s.leave(h, now)
		}
		s.pad(now)
	}
	packets = append(packets, s.ready...)
	clear(s.ready)
	s.ready = s.ready[:0]
	return packets
}

// Next returns the time at which Step is due, the zero time for never.
func (s *Sender) Next() (at time.Time) {
	if len(s.ready) > 0 {
		return s.started
	}
	next := s.control.StepDue()
	if tick, ok := s.control.Next(); ok {
		next = min(next, tick)
	}
	if next == sender.Never {
		return time.Time{}
	}
	return s.started.Add(next)
}

// Departures appends the frames that were sent or dropped since the last call.
func (s *Sender) Departures(list []Departure) []Departure {
	list = append(list, s.departed...)
	s.departed = s.departed[:0]
	return list
}

// RTCP handles one RTCP packet of the receiver. rtt is the round-trip time to the receiver, 0 if it is unknown. Reports
// of arrivals in another form than that of the Wire, and beyond feedback.MaxReportRate per second, are ignored.
func (s *Sender) RTCP(packet []byte, now time.Time, rtt time.Duration) {
	byStream := feedback.IsCongestionReport(packet)
	if byStream || feedback.IsTransportFeedback(packet) {
		if byStream != s.config.Wire.ByStream || !s.reportLimit.Take(now) {
			return
		}
		s.results = s.control.Report(packet, now, now, s.results[:0])
		s.control.Consult(now)
		return
	}
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return
	}
	for _, p := range packets {
		nack, ok := p.(*rtcp.TransportLayerNack)
		if !ok || nack.MediaSSRC != s.config.Wire.SSRC {
			continue
		}
		for _, pair := range nack.Nacks {
			pair.Range(func(sequence uint16) bool {
				s.asked(sequence, now, rtt)
				return true
			})
		}
	}
}

// asked answers the request for a packet, immediately or when the rate allows.
func (s *Sender) asked(sequence uint16, now time.Time, rtt time.Duration) {
	sent, ok := s.history.Get(sequence)
	if !ok || !feedback.Answerable(sent.At, now, rtt) {
		return
	}
	if s.control.AdmitRepair(now.Sub(s.started)) {
		s.repeat(sequence, feedback.Retransmission, now)
		return
	}
	// If the queue of repairs is full, the receiver will request the packet again.
	_ = s.control.HoldRepair(sequence)
}
