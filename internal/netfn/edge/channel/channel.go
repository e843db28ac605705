// Package channel is the control channel between the two edges of a pair: it authenticates messages, drops those that
// were forged, replayed or reflected, and knows whether the other edge lives. It is pure and stepped with now, a time
// on the monotonic clock of the host. One goroutine owns a Channel.
//
// No clock is shared, and no counter outlives a process. Each edge draws a random run at its start. A message is fresh
// if it echoes the run of this edge and a time within the last FreshFor: then the other edge has read a recent message
// of this edge, and its message is no recording. A message of another run than the known one is believed if it is
// fresh. If it is not, the message is answered once, so that the other edge learns what to echo.
package channel

import (
	"errors"
	"fmt"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/wire"
)

const (
	// AliveFor is how long the other edge counts as alive after a valid message.
	AliveFor = time.Second
	// FreshFor is the largest age of an echoed time. The age of an honest echo is at most the round trip (up to 700 ms
	// with a geostationary satellite), the 100 ms between hellos and the 100 ms between reports.
	FreshFor = 2 * time.Second
	// answerEvery limits the answers to messages of unknown runs: a recorded message cannot be turned into a flood.
	answerEvery = 20 * time.Millisecond
)

// Errors of Receive, besides those of package wire.
var (
	ErrReplayed  = errors.New("replayed control message")
	ErrStale     = errors.New("control message of an unknown run that answers no recent message")
	ErrMisplaced = errors.New("control message of another path")
)

// Counts are the control messages received by outcome. Malformed to Misplaced were dropped.
type Counts struct {
	Hellos, Reports                                          uint64
	Malformed, Forged, Reflected, Replayed, Stale, Misplaced uint64
}

// Message is a valid message of the other edge.
type Message struct {
	Kind uint8
	Path uint8
	// Restarted reports whether this is the first message of a run of the other edge.
	Restarted bool
	// Closing reports whether the receiver at the other edge is about to leave.
	Closing bool
	// Body refers to the data of Receive.
	Body []byte
}

// Channel is this edge's side of the control channel.
type Channel struct {
	keys wire.Keys
	run  uint64
	// start is the time of the run's start, from which the times of messages count.
	start time.Duration
	// sent has the counter of the last message on each path.
	sent [wire.MaxPaths]uint32

	// known is the run of the other edge that is believed, and latest the time of its last message. A run of 0 is none.
	known    echo
	latest   time.Duration
	received [wire.MaxPaths]replayWindow
	// lease is the time until which the receiver at the other edge counts as alive, valid if leased. closed reports
	// whether the receiver's run has ended.
	lease          time.Duration
	leased, closed bool
	// unknown is the last message of a run that is not believed, which arrived on unknownPath. It is answered once if
	// answer is true.
	unknown     echo
	unknownPath int
	answer      bool
	answered    time.Duration

	counts Counts
}

// echo contains the fields that a message repeats from the other edge's last message.
type echo struct {
	run  uint64
	time uint32
}

// New returns a channel whose run, a random number other than 0, starts now.
func New(keys wire.Keys, run uint64, now time.Duration) *Channel {
	if run == 0 {
		panic("a run of the control channel is 0, which means none")
	}
	return &Channel{keys: keys, run: run, start: now, answered: now - answerEvery}
}

// Receive decodes a message that arrived on a path. It returns an error if the message must be ignored.
func (c *Channel) Receive(path int, data []byte, now time.Duration) (Message, error) {
	m, err := c.keys.ParseControl(data)
	if err != nil {
		switch {
		case errors.Is(err, wire.ErrControlForged):
			c.counts.Forged++
		case errors.Is(err, wire.ErrControlReflected):
			c.counts.Reflected++
		default:
			c.counts.Malformed++
		}
		return Message{}, err
	}
	if int(m.Path) != path {
		c.counts.Misplaced++
		return Message{}, fmt.Errorf("%w: the other edge sent it on its path %d, it arrived on path %d", ErrMisplaced,
			m.Path, path)
	}
	if m.Run == 0 || m.Counter == 0 {
		c.counts.Malformed++
		return Message{}, fmt.Errorf("%w: run %d, counter %d, expected numbers above 0", wire.ErrControlMalformed,
			m.Run, m.Counter)
	}
	fresh := c.fresh(m, now)
	restarted := m.Run != c.known.run
	if restarted {
		if !fresh {
			c.counts.Stale++
			c.unknown, c.unknownPath, c.answer = echo{m.Run, m.Time}, path, true
			return Message{}, ErrStale
		}
		c.known, c.received, c.closed = echo{run: m.Run}, [wire.MaxPaths]replayWindow{}, false
		c.unknown, c.answer = echo{}, false
	}
	if !c.received[path].accept(m.Counter) {
		c.counts.Replayed++
		return Message{}, ErrReplayed
	}
	if restarted || int32(m.Time-c.known.time) > 0 {
		c.known.time = m.Time
	}
	c.latest = now
	if m.Kind == wire.KindHello {
		c.counts.Hellos++
	} else {
		if !fresh {
			c.counts.Stale++
			return Message{}, ErrStale
		}
		c.counts.Reports++
		c.renew(m, now)
	}
	return Message{Kind: m.Kind, Path: m.Path, Restarted: restarted, Closing: m.Closing, Body: m.Body}, nil
}

// renew extends the lease for a report, unless the other edge does not believe this edge's run yet: then its receiver
// may not know the epoch of the data. The last report of a run ends the lease for good: reports of the run that other
// paths deliver later do not extend it.
func (c *Channel) renew(m wire.Control, now time.Duration) {
	c.closed = c.closed || m.Closing
	switch {
	case c.closed:
		c.lease, c.leased = 0, true
	case !m.Answer:
		c.lease, c.leased = now+AliveFor, true
	}
}

// fresh reports whether the message answers a message of the last FreshFor.
func (c *Channel) fresh(m wire.Control, now time.Duration) bool {
	// Times modulo 2^32 ms: a time ahead of now has an age of almost 50 days.
	age := c.time(now) - m.EchoTime
	return m.EchoRun == c.run && time.Duration(age)*time.Millisecond <= FreshFor
}

// time returns the time since the start of the run in ms.
func (c *Channel) time(now time.Duration) uint32 { return uint32((now - c.start) / time.Millisecond) }

// Message returns an encoded message for a path. It echoes the known run of the other edge, or the last unknown run if
// the known one has been silent for AliveFor.
func (c *Channel) Message(kind uint8, path int, body []byte, now time.Duration) ([]byte, error) {
	back, answer := c.known, false
	if !c.PeerAlive(now) && c.unknown.run != 0 {
		back, answer = c.unknown, true
	}
	return c.encode(wire.Control{Kind: kind, Path: uint8(path), Answer: answer, Body: body}, back, now)
}

// Closing returns an encoded report for a path which says that this edge's receiver is about to leave.
func (c *Channel) Closing(path int, now time.Duration) ([]byte, error) {
	return c.encode(wire.Control{Kind: wire.KindReport, Path: uint8(path), Closing: true}, c.known, now)
}

// Answer returns a hello without a body that echoes an unknown run, and the path on which that run's message arrived.
// The message is nil if none waits for an answer.
func (c *Channel) Answer(now time.Duration) (path int, message []byte, err error) {
	if !c.answer || now-c.answered < answerEvery {
		return 0, nil, nil
	}
	c.answer, c.answered = false, now
	answer := wire.Control{Kind: wire.KindHello, Path: uint8(c.unknownPath), Answer: true}
	message, err = c.encode(answer, c.unknown, now)
	return c.unknownPath, message, err
}

func (c *Channel) encode(m wire.Control, back echo, now time.Duration) ([]byte, error) {
	c.sent[m.Path]++
	m.Run, m.Counter, m.Time = c.run, c.sent[m.Path], c.time(now)
	m.EchoRun, m.EchoTime = back.run, back.time
	return c.keys.AppendControl(nil, m)
}

// PeerAlive reports whether a message of the known run arrived within the last AliveFor.
func (c *Channel) PeerAlive(now time.Duration) bool {
	return c.known.run != 0 && now-c.latest < AliveFor
}

// Lease returns the time until which the receiver at the other edge counts as alive: AliveFor after its last report, or
// 0 after a closing one. It is not known before the first report.
func (c *Channel) Lease() (lease time.Duration, known bool) { return c.lease, c.leased }

// Counts returns the counts of received messages.
func (c *Channel) Counts() Counts { return c.counts }

// replayWindow remembers which of the latest 64 counters arrived (RFC 4303, section 3.4.3).
type replayWindow struct {
	highest uint32
	// seen has bit i for the counter highest - i.
	seen uint64
}

// accept reports whether a counter is new, and marks it as received. Counters below the window are not new.
func (w *replayWindow) accept(counter uint32) bool {
	if counter > w.highest {
		// A shift by 64 or more leaves 0.
		w.seen = w.seen<<(counter-w.highest) | 1
		w.highest = counter
		return true
	}
	behind := w.highest - counter
	if behind >= 64 || w.seen&(1<<behind) != 0 {
		return false
	}
	w.seen |= 1 << behind
	return true
}
