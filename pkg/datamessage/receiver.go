package datamessage

import (
	"errors"

	"github.com/volsfu/volsfu/pkg/signal"
)

// maxAhead is the number of messages after the next message of which copies are kept: a second at 50 messages per
// second, longer than a retransmission of the websocket takes. A copy further ahead is dropped, and its message comes
// over the websocket.
const maxAhead = 64

// ErrTopics reports more than signal.MaxTopics topics of lossy messages of one participant.
var ErrTopics = errors.New("too many topics of lossy messages")

// Receiver is the receiving side of the data messages of one session.
type Receiver struct {
	// last is the number of the last delivered reliable message.
	last int64
	// copies are the copies after the next message, by number.
	copies map[int64]*signal.Data
	// newest has the number of the newest lossy message by participant and topic.
	newest map[string]map[string]int64
}

// NewReceiver returns a Receiver that expects message 1.
func NewReceiver() *Receiver {
	return &Receiver{copies: make(map[int64]*signal.Data), newest: make(map[string]map[string]int64)}
}

// Begin sets the number of the last delivered reliable message of a session that another Receiver has begun.
func (r *Receiver) Begin(last int64) { r.last = last }

// Last returns the number of the last delivered reliable message, 0 if there is none.
func (r *Receiver) Last() int64 { return r.last }

// Copied takes a reliable message from the data channel, in any order, and returns the messages that are next, in
// order.
func (r *Receiver) Copied(m *signal.Data) (ready []*signal.Data) {
	if m.Seq <= r.last || m.Seq > r.last+maxAhead {
		return nil
	}
	r.copies[m.Seq] = m
	return r.next(nil)
}

// Ordered takes a reliable message from the websocket and returns the messages that are next, in order. Earlier
// messages do not follow. missed is the number of earlier messages that are lost: the sender no longer had them when
// the websocket was resumed. A message without a number is delivered as it is.
func (r *Receiver) Ordered(m *signal.Data) (ready []*signal.Data, missed int64) {
	if m.Seq == 0 {
		return []*signal.Data{m}, 0
	}
	if m.Seq <= r.last {
		return nil, 0
	}
	if m.Seq > r.last+1 {
		ready, missed = r.skip(m.Seq)
	}
	r.last = m.Seq
	delete(r.copies, m.Seq)
	return r.next(append(ready, m)), missed
}

// skip returns the copies before a number, and the number of messages of which there is no copy.
func (r *Receiver) skip(before int64) (ready []*signal.Data, missed int64) {
	missed = before - 1 - r.last
	for seq := r.last + 1; seq < before && len(r.copies) > 0; seq++ {
		if seq > r.last+maxAhead {
			break
		}
		if c, ok := r.copies[seq]; ok {
			ready = append(ready, c)
			missed--
			delete(r.copies, seq)
		}
	}
	return ready, missed
}

// next appends the copies that follow the last message without a gap.
func (r *Receiver) next(ready []*signal.Data) []*signal.Data {
	for {
		m, ok := r.copies[r.last+1]
		if !ok {
			return ready
		}
		r.last++
		delete(r.copies, r.last)
		ready = append(ready, m)
	}
}

// Newer reports whether a lossy message is newer than all before of its participant and topic. A message without a
// number is newer. The error wraps ErrTopics.
func (r *Receiver) Newer(m *signal.Data) (bool, error) {
	if m.Seq == 0 {
		return true, nil
	}
	topics := r.newest[m.Participant]
	if topics == nil {
		topics = make(map[string]int64)
		r.newest[m.Participant] = topics
	}
	before, known := topics[m.Topic]
	if !known && len(topics) >= signal.MaxTopics {
		return false, ErrTopics
	}
	if m.Seq <= before {
		return false, nil
	}
	topics[m.Topic] = m.Seq
	return true, nil
}

// Forget clears the numbers of a participant's lossy messages, which count from 1 again when the participant returns.
func (r *Receiver) Forget(participant string) { delete(r.newest, participant) }

// ForgetAll clears the numbers of the lossy messages of all participants.
func (r *Receiver) ForgetAll() { clear(r.newest) }
