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
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// SenderConfig says how a Sender sends.
type SenderConfig struct {
	Wire Wire
	// Congestion bounds and tunes the estimate; without Estimate nothing is estimated and nothing limited.
	Congestion congestion.Config
	Estimate   bool
	// Pacing is how frames are spread.
	Pacing pacing.Mode
	// Budget is how long a frame waits for those before it. One that has waited longer when a newer one is there is
	// left out whole.
	Budget time.Duration
}

// Frame is one frame to send.
type Frame struct {
	Number  uint32
	Capture time.Time
	// Data begins with the prefix of payload v1. It is copied.
	Data []byte
}

// Departure is what became of a frame: it has left, or it was left out.
type Departure struct {
	Number      uint32
	First, Last time.Time
	Packets     int
	Dropped     bool
}

// Packet is one packet to put on the wire.
type Packet struct {
	Header  rtp.Header
	Payload []byte
}

// Sender sends the frames of one stream.
type Sender struct {
	config  SenderConfig
	started time.Time

	// fragmenter cuts frames, schedule and control say when their packets leave; flow keeps those that wait.
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

	results []feedback.PacketResult
	// padded counts the packets that a probe has repeated since the newest left.
	padded uint16

	ready    []Packet
	departed []Departure
}

// held is a packet of a frame that waits.
type held struct {
	frame *outgoing
	index int
}

// outgoing is a frame under way.
type outgoing struct {
	departure Departure
	timestamp uint32
	queued    time.Time
	// slab are the packets, each of payload.MaxPacketSize but the last.
	slab []byte
	// ordinal counts frames.
	ordinal int
}

func (f *outgoing) packet(index int) []byte {
	begin := index * payload.MaxPacketSize
	return f.slab[begin:min(begin+payload.MaxPacketSize, len(f.slab))]
}

// NewSender makes a Sender. Errors are those of the settings.
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
		estimator = congestion.New(congestion.GCC, config.Congestion, now)
	}
	s.control.Start(sender.NewNumbered(uint16(rand.Uint32())), estimator, now)
	return s, nil
}

// Estimate is what the way carries, 0 where nothing is estimated.
func (s *Sender) Estimate() volumetric.Bitrate { return s.control.Stats().Estimate }

// Stats are what the estimator has come to; the zero value where there is none.
func (s *Sender) Stats() congestion.Stats { return *s.control.Stats() }

// Want says what would be sent if the way carried anything.
func (s *Sender) Want(now time.Time, rate volumetric.Bitrate) { s.control.Want(rate, now) }

// Send takes a frame, whose packets leave with the next steps. Errors are those of payload.Fragmenter.Begin.
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
		offer := pacing.Offer{Arrived: at, Due: s.schedule.Due(place, at), Begins: i == 0}
		if h := (held{f, i}); s.control.Admit(&s.flow, offer, at) {
			s.leave(h, now)
		} else {
			s.control.Hold(&s.flow, h, offer)
		}
	}
	return nil
}

// Step appends the packets that leave now. It is due at Next, and after anything else was told.
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

// Next is when Step is due, the zero time for never.
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

// Departures appends the frames that have left since the last call, and those that were left out.
func (s *Sender) Departures(list []Departure) []Departure {
	list = append(list, s.departed...)
	s.departed = s.departed[:0]
	return list
}

// RTCP takes one RTCP packet of the receiver's. rtt is the round-trip time to it, 0 where it is not known.
func (s *Sender) RTCP(packet []byte, now time.Time, rtt time.Duration) {
	if feedback.IsTransportFeedback(packet) {
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

// asked answers the request for a packet, now or when the rate allows.
func (s *Sender) asked(sequence uint16, now time.Time, rtt time.Duration) {
	sent, ok := s.history.Get(sequence)
	if !ok || !feedback.Answerable(sent.At, now, rtt) {
		return
	}
	if s.control.AdmitRepair(now.Sub(s.started)) {
		s.repeat(sequence, feedback.Retransmission, now)
		return
	}
	// Of those beyond what may wait the receiver will ask again.
	_ = s.control.HoldRepair(sequence)
}
