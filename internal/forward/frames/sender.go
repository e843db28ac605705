// Package frames sends the frames of slots by other transports than RTP.
//
// A receiver that can take no media lines for its frames, as browsers that do not hand them to scripts, takes them over
// data channels: one for each slot, reliable and unordered, in chunks (payload.Chunk). Switchers, pacer and allocator
// decide as for all receivers. An Outlet assembles the packets of its slot to frames. The Sender of the receiver turns
// what the remote peer acknowledges into reports of arrivals (RFC 8888), from which an estimator for acknowledgements
// (congestion.Reliable) makes the receiver's estimate and window. The window bounds how much may be under way: what
// waits in SCTP cannot be left out any more.
//
// Outlets are called by the receiver's writer, and by the goroutine that learns of acknowledgements. The mutex of the
// Sender guards the state of both.
//
// VR2GatherOutlet sends the packets of a slot in the form of VR2Gather's peers.
package frames

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// Channel is a data channel that a peer sends on: reliable, and unordered. Its methods are safe for any goroutine, and
// do not wait for the remote peer.
type Channel interface {
	// Send queues a message, which it does not keep. It fails while the channel is not open.
	Send(message []byte) error
	// Unacknowledged is how many bytes of messages the remote peer has not acknowledged.
	Unacknowledged() int
}

// Receiver is a receiver whose frames a Sender sends. Its methods are safe for any goroutine.
type Receiver interface {
	// SendReliably makes the receiver one that reports what its transport acknowledges. It is called before slots are
	// added.
	SendReliably()
	// Window is how many bytes may be under way to the receiver at once.
	Window() int64
	// Memory is what may be held of the receiver's frames.
	Memory() *packetlog.Allotment
	// EngineTime is the time by the clock of the receiver's engine.
	EngineTime() time.Time
}

const (
	// acknowledgementInterval is how far apart reports are while more acknowledgements are to come, as those of other
	// receivers at 20 Mbit/s.
	acknowledgementInterval = 10 * time.Millisecond
	// reportSSRC is whose reports they are; who reads them asks for no name.
	reportSSRC = 1
)

// Sender sends what the slots of one receiver carry in chunks over data channels. A frame is sent whole or not at all:
// one that is complete waits until no more is under way than the receiver's window has room for, and gives way to a
// newer one of its slot meanwhile. Its methods are safe for any goroutine.
type Sender struct {
	receiver Receiver
	limit    int

	mu      sync.Mutex
	outlets []*Outlet
	// padding takes what probes send in place of media.
	padding chunkStream
	// outstanding are the bytes of all channels that are not acknowledged, as of the last look.
	outstanding int
	recorder    *feedback.CongestionRecorder
	reported    time.Time
	// first is the outlet that is served first next time.
	first int
	// message and reports are used again.
	message []byte
	reports [][]byte
}

// NewSender makes the sender of a receiver whose frames are at most limit bytes long. Probes are sent on a channel of
// their own, whose messages mean nothing.
func NewSender(r Receiver, limit int, padding Channel) *Sender {
	// Reports are made when acknowledgements come, so that no interval of the recorder's is waited for.
	cfg := feedback.TransportFeedbackConfig{MaxBytes: feedback.DefaultConfig().Transport.MaxBytes}
	r.SendReliably()
	return &Sender{receiver: r, limit: limit, padding: chunkStream{channel: padding},
		recorder: feedback.NewCongestionRecorder(cfg, reportSSRC)}
}

// Acknowledged takes note of what the remote peer has acknowledged, sends frames that have waited for that, and gives
// reports for Receiver.RTCP, which are valid until the next call. It is to be called whenever something may have been
// acknowledged.
func (s *Sender) Acknowledged(now time.Time) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outstanding = s.padding.acknowledge(s.recorder, now)
	for _, o := range s.outlets {
		s.outstanding += o.stream.acknowledge(s.recorder, now)
	}
	outstanding := s.outstanding
	for i := range s.outlets {
		s.outlets[(s.first+i)%len(s.outlets)].serve(now)
	}
	if len(s.outlets) > 0 {
		s.first = (s.first + 1) % len(s.outlets)
	}
	if outstanding > 0 && now.Sub(s.reported) < acknowledgementInterval {
		return nil
	}
	s.reported = now
	return s.report(now)
}

// report makes what there is to report.
func (s *Sender) report(now time.Time) [][]byte {
	made := 0
	for {
		if made == len(s.reports) {
			s.reports = append(s.reports, nil)
		}
		s.reports[made] = s.recorder.AppendReports(s.reports[made][:0], now)
		if len(s.reports[made]) == 0 {
			return s.reports[:made]
		}
		made++
	}
}

// room reports whether more may be sent.
func (s *Sender) room() bool { return int64(s.outstanding) <= s.receiver.Window() }

// send sends a message of a channel. What cannot be sent is lost with its connection.
func (s *Sender) send(stream *chunkStream, message []byte) bool {
	if stream.channel.Send(message) != nil {
		return false
	}
	stream.written += uint64(len(message))
	s.outstanding += len(message)
	return true
}

// pad sends a packet of a probe, if there is room: where there is none, the path does not carry what is probed for.
func (s *Sender) pad(ssrc uint32, sequence uint16, body []byte) {
	if s.room() && s.send(&s.padding, body) {
		s.padding.expect(sentPart{end: s.padding.written, ssrc: ssrc, sequence: sequence, size: uint16(len(body))})
	}
}

// sentPart is a packet of a slot, or of a probe, by where it ends in what was written to its channel. held is for how
// long it had waited here, for the rest of its frame and for room: the estimator takes it for sent when it came, and
// what it waited here is no queue of the path's.
type sentPart struct {
	end      uint64
	held     time.Duration
	ssrc     uint32
	sequence uint16
	size     uint16
}

// chunkStream is one channel with what is under way on it.
type chunkStream struct {
	channel Channel
	// written and acknowledged count bytes since the channel was made; parts are under way, those from next on not
	// acknowledged.
	written, acked uint64
	parts          []sentPart
	next           int
}

// expect notes a packet that is under way.
func (c *chunkStream) expect(p sentPart) {
	if c.next > 0 && len(c.parts) == cap(c.parts) {
		c.parts, c.next = c.parts[:copy(c.parts, c.parts[c.next:])], 0
	}
	c.parts = append(c.parts, p)
}

// acknowledge has the packets recorded that have arrived, and returns how many bytes are not acknowledged.
func (c *chunkStream) acknowledge(recorder *feedback.CongestionRecorder, now time.Time) (outstanding int) {
	if c.acked == c.written {
		return 0
	}
	outstanding = c.channel.Unacknowledged()
	// What opens a channel is under way on it, too, at first.
	c.acked = max(c.acked, c.written-min(c.written, uint64(max(outstanding, 0))))
	for c.next < len(c.parts) && c.parts[c.next].end <= c.acked {
		p := &c.parts[c.next]
		recorder.Received(p.ssrc, p.sequence, int(p.size), feedback.NotECT, now.Add(-p.held))
		c.next++
	}
	if c.next == len(c.parts) {
		c.parts, c.next = c.parts[:0], 0
	}
	return outstanding
}
