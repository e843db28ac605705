package forward

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/payload"
)

// A receiver that can take no media lines for its frames, as browsers that do not hand them to scripts, takes them over data channels: one for each slot, reliable and
// unordered, in chunks (payload.Chunk). All that decides stays what it is for everybody: switchers, pacer, estimator, allocator. What comes out of a slot is put together
// again here, and what the remote peer acknowledges becomes reports of arrivals (RFC 8888), from which the receiver's estimate is made.

// Channel is a data channel that a peer sends on: reliable, and unordered. Its methods are safe for any goroutine, and do not wait for the remote peer.
type Channel interface {
	// Send queues a message, which it does not keep. It fails while the channel is not open.
	Send(message []byte) error
	// Unacknowledged is how many bytes of messages the remote peer has not acknowledged.
	Unacknowledged() int
}

const (
	// leastOutstanding is what may be under way to a receiver whatever it acknowledges: two chunks, which at 10 Mbit/s are a tenth of a second.
	leastOutstanding = 2 * (payload.ChunkHeaderSize + payload.ChunkSize)
	// outstandingTime is for how long what a receiver acknowledges may be under way: round trips up to that long do not slow it down. The estimator sees to it that it is
	// less as a rule, since it counts what waits as a queue.
	outstandingTime = 500 * time.Millisecond
	// acknowledgementInterval is how far apart reports are while more acknowledgements are to come, as those of other receivers at 20 Mbit/s.
	acknowledgementInterval = 10 * time.Millisecond
	// reportSSRC is whose reports they are; who reads them asks for no name.
	reportSSRC = 1
)

// ChunkSender sends what the slots of one receiver carry in chunks over data channels. A frame is sent whole or not at all: one that is complete waits until less is under way
// than the remote peer acknowledges in half a second, and gives way to a newer one of its slot meanwhile. Its methods are safe for any goroutine.
type ChunkSender struct {
	receiver *Receiver
	limit    int

	mu      sync.Mutex
	outlets []*ChunkOutlet
	// padding takes what probes send in place of media.
	padding chunkStream
	// outstanding are the bytes of all channels that are not acknowledged, as of the last look.
	outstanding int
	delivered   delivered
	recorder    *feedback.CongestionRecorder
	reported    time.Time
	// first is the outlet that is served first next time.
	first int
	// message and reports are used again.
	message []byte
	reports [][]byte
}

// NewChunkSender makes the sender of a receiver whose frames are at most limit bytes long. Probes are sent on a channel of their own, whose messages mean nothing.
func (r *Receiver) NewChunkSender(limit int, padding Channel) *ChunkSender {
	// Reports are made when acknowledgements come, so that no interval of the recorder's is waited for.
	cfg := feedback.TransportFeedbackConfig{MaxBytes: feedback.DefaultConfig().Transport.MaxBytes}
	r.SendBare()
	r.whole = true
	return &ChunkSender{receiver: r, limit: limit, padding: chunkStream{channel: padding}, recorder: feedback.NewCongestionRecorder(cfg, reportSSRC)}
}

// Acknowledged takes note of what the remote peer has acknowledged, sends frames that have waited for that, and gives reports for Receiver.RTCP, which are valid until the next
// call. It is to be called whenever something may have been acknowledged.
func (s *ChunkSender) Acknowledged(now time.Time) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	acknowledged, outstanding := s.padding.acknowledge(s.recorder, now)
	for _, o := range s.outlets {
		more, rest := o.stream.acknowledge(s.recorder, now)
		acknowledged += more
		outstanding += rest
	}
	s.outstanding = outstanding
	s.delivered.add(now, acknowledged)
	for i := range s.outlets {
		s.outlets[(s.first+i)%len(s.outlets)].serve()
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
func (s *ChunkSender) report(now time.Time) [][]byte {
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

// room tells whether another frame may be sent.
func (s *ChunkSender) room() bool {
	return s.outstanding <= max(leastOutstanding, s.delivered.recently())
}

// send sends a message of a channel. What cannot be sent is lost with its connection.
func (s *ChunkSender) send(stream *chunkStream, message []byte) bool {
	if stream.channel.Send(message) != nil {
		return false
	}
	stream.written += uint64(len(message))
	s.outstanding += len(message)
	return true
}

// pad sends a packet of a probe.
func (s *ChunkSender) pad(ssrc uint32, sequence uint16, body []byte) {
	if s.send(&s.padding, body) {
		s.padding.expect(sentPart{end: s.padding.written, ssrc: ssrc, sequence: sequence, size: uint16(len(body))})
	}
}

// sentPart is a packet of a slot, or of a probe, by where it ends in what was written to its channel. held is for how long it had waited here for the rest of its frame:
// the estimator takes it for sent when it came, and what it waited here is no queue of the path's.
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
	// written and acknowledged count bytes since the channel was made; parts are under way, those from next on not acknowledged.
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

// acknowledge has the packets recorded that have arrived, and tells how many bytes were acknowledged and how many are not.
func (c *chunkStream) acknowledge(recorder *feedback.CongestionRecorder, now time.Time) (acknowledged, outstanding int) {
	if c.acked == c.written {
		return 0, 0
	}
	outstanding = c.channel.Unacknowledged()
	before := c.acked
	// What opens a channel is under way on it, too, at first.
	c.acked = max(before, c.written-min(c.written, uint64(max(outstanding, 0))))
	for c.next < len(c.parts) && c.parts[c.next].end <= c.acked {
		p := &c.parts[c.next]
		recorder.Received(p.ssrc, p.sequence, int(p.size), feedback.NotECT, now.Add(-p.held))
		c.next++
	}
	if c.next == len(c.parts) {
		c.parts, c.next = c.parts[:0], 0
	}
	return int(c.acked - before), outstanding
}

// delivered counts what was acknowledged within outstandingTime, in steps of a tenth of that.
type delivered struct {
	steps [10]int
	sum   int
	step  int64
}

func (d *delivered) add(now time.Time, bytes int) {
	step := now.UnixNano() / int64(outstandingTime/time.Duration(len(d.steps)))
	for ahead := min(step-d.step, int64(len(d.steps))); ahead > 0; ahead-- {
		at := &d.steps[(step-ahead+1)%int64(len(d.steps))]
		d.sum -= *at
		*at = 0
	}
	d.step = max(d.step, step)
	d.steps[d.step%int64(len(d.steps))] += bytes
	d.sum += bytes
}

// recently is what was acknowledged lately, in bytes.
func (d *delivered) recently() int { return d.sum }
