// Package frames sends the frames of slots over transports other than RTP.
//
// A receiver that cannot receive its frames on media lines, such as a browser that does not expose them to scripts,
// receives the frames over data channels: one per slot, reliable and unordered, in chunks (payload.Chunk). Switchers,
// pacer and allocator decide as for all receivers. An Outlet assembles the packets of its slot to frames. The Sender of
// the receiver converts SCTP acknowledgements into reports of arrivals (RFC 8888). An estimator for acknowledgements
// (congestion.Reliable) derives the receiver's estimate and backlog from the reports. The backlog bounds the bytes that
// SCTP holds, because frames queued in SCTP can no longer be dropped.
//
// The receiver's writer and the goroutine that learns of acknowledgements call outlets. The mutex of the Sender guards
// the state of both.
//
// VR2GatherOutlet sends the packets of a slot in the format of VR2Gather's peers.
package frames

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward/packetlog"
)

// Channel is a reliable and unordered data channel. The methods are safe for any goroutine and do not wait for the
// remote peer.
type Channel interface {
	// Send queues a message and does not keep it. Send fails while the channel is not open.
	Send(message []byte) error
	// Unacknowledged returns the number of message bytes that the remote peer has not acknowledged.
	Unacknowledged() int
}

// Receiver is a receiver whose frames a Sender sends. The methods are safe for any goroutine.
type Receiver interface {
	// SendReliably selects an estimator for acknowledgements of a reliable transport. SendReliably is called before
	// slots are added.
	SendReliably()
	// Backlog returns the maximum number of bytes that the transport to the receiver holds.
	Backlog() int64
	// Memory returns the allotment for the memory of the receiver's frames.
	Memory() *packetlog.Allotment
	// EngineTime returns the time of the clock of the receiver's engine.
	EngineTime() time.Time
}

const (
	// acknowledgementInterval is the interval of reports while more acknowledgements are expected, as for other
	// receivers at 20 Mbit/s.
	acknowledgementInterval = 10 * time.Millisecond
	// reportSSRC is the sender SSRC of the reports, which has no meaning here.
	reportSSRC = 1
)

// Sender sends the frames of the slots of one receiver in chunks over data channels. A frame is sent completely or not
// at all. A complete frame waits until the bytes in flight fit the receiver's backlog; a newer frame of the slot
// replaces the waiting frame. The methods are safe for any goroutine.
type Sender struct {
	receiver Receiver
	limit    int

	mu      sync.Mutex
	outlets []*Outlet
	// padding is the stream of probe packets.
	padding chunkStream
	// outstanding is the number of unacknowledged bytes on all channels as last read.
	outstanding int
	recorder    *feedback.CongestionRecorder
	reported    time.Time
	// first is the index of the outlet to serve first next time.
	first int
	// message and reports are reused buffers.
	message []byte
	reports [][]byte
}

// NewSender returns the sender of a receiver. Frames are at most limit bytes long. Probes are sent on the channel
// padding, whose messages have no meaning.
func NewSender(r Receiver, limit int, padding Channel) *Sender {
	// Reports are made when acknowledgements arrive, so the recorder uses no interval.
	cfg := feedback.TransportFeedbackConfig{MaxBytes: feedback.DefaultConfig().Transport.MaxBytes}
	r.SendReliably()
	return &Sender{receiver: r, limit: limit, padding: chunkStream{channel: padding},
		recorder: feedback.NewCongestionRecorder(cfg, reportSSRC)}
}

// Acknowledged processes new acknowledgements of the remote peer, sends frames that have waited for them, and returns
// reports for Receiver.Arrivals, which are valid until the next call. Acknowledged is called whenever something may
// have been acknowledged.
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

// report returns the pending reports.
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

// room reports whether the backlog has room.
func (s *Sender) room() bool { return int64(s.outstanding) <= s.receiver.Backlog() }

// send sends a message on a channel. A message that cannot be sent is lost with its connection.
func (s *Sender) send(stream *chunkStream, message []byte) bool {
	if stream.channel.Send(message) != nil {
		return false
	}
	stream.written += uint64(len(message))
	s.outstanding += len(message)
	return true
}

// pad sends a packet of a probe if the backlog has room. Without room the path does not carry the probed rate.
func (s *Sender) pad(ssrc uint32, sequence uint16, body []byte) {
	if s.room() && s.send(&s.padding, body) {
		s.padding.expect(sentPart{end: s.padding.written, ssrc: ssrc, sequence: sequence, size: uint16(len(body))})
	}
}

// sentPart is a packet of a slot or a probe. end is its end in the bytes written to the channel. held is the time for
// which the packet waited here, for the rest of its frame and for room: the estimator counts the packet as sent when it
// arrived here, and the wait is not part of the path's queue.
type sentPart struct {
	end      uint64
	held     time.Duration
	ssrc     uint32
	sequence uint16
	size     uint16
}

// chunkStream is one channel and its packets in flight.
type chunkStream struct {
	channel Channel
	// written and acked count bytes since the channel was opened. parts from index next on are not acknowledged.
	written, acked uint64
	parts          []sentPart
	next           int
}

// expect adds a packet in flight.
func (c *chunkStream) expect(p sentPart) {
	if c.next > 0 && len(c.parts) == cap(c.parts) {
		c.parts, c.next = c.parts[:copy(c.parts, c.parts[c.next:])], 0
	}
	c.parts = append(c.parts, p)
}

// acknowledge records the packets that have arrived, and returns the number of unacknowledged bytes.
func (c *chunkStream) acknowledge(recorder *feedback.CongestionRecorder, now time.Time) (outstanding int) {
	if c.acked == c.written {
		return 0
	}
	outstanding = c.channel.Unacknowledged()
	// Initially the messages that open the channel are in flight, too.
	c.acked = max(c.acked, c.written-min(c.written, uint64(max(outstanding, 0))))
	for c.next < len(c.parts) && c.parts[c.next].end <= c.acked {
		p := &c.parts[c.next]
		recorder.Received(p.ssrc, p.sequence, int(p.size), ecn.NotECT, now.Add(-p.held))
		c.next++
	}
	if c.next == len(c.parts) {
		c.parts, c.next = c.parts[:0], 0
	}
	return outstanding
}
