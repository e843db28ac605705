package datamessage

import "github.com/volsfu/volsfu/pkg/signal"

const (
	// KeptMessages and KeptBytes bound the messages that a Sender keeps for a resumed websocket: 5 s at the default
	// rate of a participant.
	KeptMessages = 256
	KeptBytes    = 256 << 10
)

// Sender numbers the data messages of one direction of a session, and keeps the last of them.
type Sender struct {
	reliable, lossy int64
	kept            []*signal.Data
	bytes           int
}

// Begin sets the number of the last reliable message of a session that another Sender has begun.
func (s *Sender) Begin(last int64) { s.reliable = last }

// Last returns the number of the last reliable message, 0 if there is none.
func (s *Sender) Last() int64 { return s.reliable }

// Number numbers a message. The Sender keeps a reliable message and drops the oldest messages above the limits.
func (s *Sender) Number(m *signal.Data) {
	if m.Lossy {
		s.lossy++
		m.Seq = s.lossy
		return
	}
	s.reliable++
	m.Seq = s.reliable
	s.kept = append(s.kept, m)
	s.bytes += m.Size()
	for len(s.kept) > KeptMessages || s.bytes > KeptBytes {
		s.drop()
	}
}

// drop drops the oldest message.
func (s *Sender) drop() {
	s.bytes -= s.kept[0].Size()
	s.kept[0] = nil
	s.kept = s.kept[1:]
}

// Delivered drops the messages up to a number.
func (s *Sender) Delivered(seq int64) {
	for len(s.kept) > 0 && s.kept[0].Seq <= seq {
		s.drop()
	}
}

// After returns the kept messages after a number, in order.
func (s *Sender) After(seq int64) []*signal.Data {
	for i, m := range s.kept {
		if m.Seq > seq {
			return s.kept[i:]
		}
	}
	return nil
}

// Full reports whether another message of the given size would drop a kept message.
func (s *Sender) Full(size int) bool {
	return len(s.kept) >= KeptMessages || s.bytes+size > KeptBytes
}
