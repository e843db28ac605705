package peer

import (
	"encoding/binary"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/pkg/payload"
)

const (
	// maxRequested is the maximum number of chunks in one message of requests, of 1,024 bytes.
	maxRequested = 512
	// missingRate and missingBurst limit the chunks per second that count as missing, in addition to one for each
	// chunk that arrives. A burst is a frame of half a megabyte.
	missingRate, missingBurst = 1000, 512
	// requestStep is the minimum time between two messages of requests, so that one message requests a burst of losses.
	requestStep = 2 * time.Millisecond
)

// missingChunks decides which numbered chunks of a channel to request. The methods are stepped with the time.
type missingChunks struct {
	numbers feedback.Unwrapper
	missing *feedback.NACKGenerator
	budget  *feedback.MissingBudget
}

func newMissingChunks() *missingChunks {
	cfg := feedback.DefaultConfig().NACK
	// Receivers count their deadline from the arrival of a frame's first packet, and frames are forwarded when they are
	// complete. So the uplink has the long deadline at any round trip.
	cfg.Deadline = cfg.LongDeadline
	m := &missingChunks{
		missing: feedback.NewNACKGenerator(cfg),
		budget:  feedback.NewMissingBudget(missingRate, missingBurst),
	}
	m.missing.Share(m.budget)
	return m
}

// received records a numbered chunk. The chunks of a frame have consecutive numbers.
func (m *missingChunks) received(c *payload.Chunk, now time.Time) {
	number, continuity := m.numbers.Unwrap(c.Number)
	switch continuity {
	case feedback.Stray:
		return
	case feedback.Reset:
		m.missing.Forget()
	}
	m.budget.Earn()
	m.missing.Received(number, now)
	m.missing.Expect(number+int64(c.Count()-1-int(c.Index)), now)
}

// due returns the numbers to request now, and the time of the next call, zero if nothing is missing.
func (m *missingChunks) due(now time.Time, rtt time.Duration) (ask []uint16, next time.Time) {
	numbers, _ := m.missing.Due(now, rtt, nil, nil)
	for _, number := range numbers[:min(len(numbers), maxRequested)] {
		ask = append(ask, uint16(number))
	}
	if next = m.missing.Next(); !next.IsZero() && next.Before(now.Add(requestStep)) {
		next = now.Add(requestStep)
	}
	return ask, next
}

// appendRequests appends a message that requests chunks: their numbers in network byte order.
func appendRequests(dst []byte, numbers []uint16) []byte {
	for _, number := range numbers {
		dst = binary.BigEndian.AppendUint16(dst, number)
	}
	return dst
}

// chunkRequests requests the missing chunks of a channel from the publisher. The methods are safe for any goroutine.
type chunkRequests struct {
	// rtt returns the round-trip time to the publisher, 0 if it is unknown. send sends a message of requests, which
	// may be lost.
	rtt  func() time.Duration
	send func(message []byte)
	// guard confines a panic of the timer's goroutine to the connection, which failed ends.
	guard  *panics.Guard
	failed func()

	mu      sync.Mutex
	missing *missingChunks
	timer   *time.Timer
	due     time.Time
	ended   bool
}

// received records a chunk, and schedules the next requests.
func (r *chunkRequests) received(c *payload.Chunk, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing.received(c, now)
	if next := r.missing.missing.Next(); !next.IsZero() {
		r.schedule(next, now)
	}
}

// schedule sets the timer, unless it is set to an earlier time. The caller holds the mutex.
func (r *chunkRequests) schedule(at, now time.Time) {
	if r.ended || !r.due.IsZero() && !at.Before(r.due) {
		return
	}
	r.due = at
	if r.timer == nil {
		r.timer = time.AfterFunc(at.Sub(now), r.step)
	} else {
		r.timer.Reset(at.Sub(now))
	}
}

// step sends the requests that are due.
func (r *chunkRequests) step() {
	defer r.guard.Recover(PanicPlace, r.failed)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	now := time.Now()
	r.due = time.Time{}
	ask, next := r.missing.due(now, r.rtt())
	if len(ask) > 0 {
		r.send(appendRequests(nil, ask))
	}
	if !next.IsZero() {
		r.schedule(next, now)
	}
}

// end ends the requests.
func (r *chunkRequests) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.timer != nil {
		r.timer.Stop()
	}
}
