package signal

import (
	"unicode/utf8"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	// MaxDataBytes is the maximum size of the payload of a data message, in bytes: text and small objects. Frames and
	// files have other ways.
	MaxDataBytes = 16 << 10
	// MaxLossyBytes is the maximum size of the payload of a lossy data message, in bytes. With the message's other
	// fields, most payloads of this size fit in one packet.
	MaxLossyBytes = 1000
	// MaxRecipients is the maximum number of participants that a data message names.
	MaxRecipients = 64
	// MaxSeq is the maximum number of a data message: the largest integer that JavaScript represents exactly.
	MaxSeq = 1<<53 - 1
	// MaxTopics is the maximum number of topics of a participant's lossy messages. A receiver stores a number for each.
	MaxTopics = 64
	// MessageChannel is the label of the data channels for data messages, one in each direction: unordered, without
	// retransmissions. A client with Join.MessageChannel has no publication of this name over data channels.
	MessageChannel = "data-messages"
	// MaxCopyBytes is the maximum length of the JSON text of a reliable message that is copied to the message channel:
	// a packet of 1,200 bytes less the headers of DTLS and SCTP.
	MaxCopyBytes = 1100
)

// Data is a message of one participant to others. A message with neither Text nor Binary has an empty payload.
type Data struct {
	Header
	// Seq numbers the messages of one direction of a session from 1: the reliable messages by one sequence, the lossy
	// messages of a participant by another. A client that does not number its messages sets 0.
	Seq int64 `json:"seq,omitempty"`
	// Participant is the sender, empty for a message of the server's operator. Only the server sets this field.
	Participant string `json:"participant,omitempty"`
	// To names the recipients. An empty list stands for all other participants. Only clients set this field.
	To []string `json:"to,omitempty"`
	// Topic is a name by which applications distinguish messages.
	Topic string `json:"topic,omitempty"`
	// Lossy messages may be lost. Of the lossy messages of one participant and topic, a receiver takes only messages
	// newer than all before.
	Lossy bool `json:"lossy,omitempty"`
	// Text and Binary are the payload. At most one of them is set.
	Text   string `json:"text,omitempty"`
	Binary []byte `json:"binary,omitempty"`
}

// Size returns the size of the payload in bytes.
func (m *Data) Size() int { return len(m.Text) + len(m.Binary) }

func (*Data) messageType() Type { return TypeData }

// Validate implements Request. The recipients need not be in the room.
func (m *Data) Validate() error { return m.reply(m.check()) }

func (m *Data) check() error {
	if m.Seq < 0 || m.Seq > MaxSeq {
		return invalid("seq is %d, expected 0 to %d", m.Seq, int64(MaxSeq))
	}
	if err := optionalName("topic", m.Topic); err != nil {
		return err
	}
	if m.Text != "" && len(m.Binary) > 0 {
		return invalid("the message has text and binary, expected at most one of them")
	}
	if !utf8.ValidString(m.Text) {
		return invalid("text is not UTF-8")
	}
	limit := MaxDataBytes
	if m.Lossy {
		limit = MaxLossyBytes
	}
	if size := m.Size(); size > limit {
		return invalid("the payload has %d bytes, expected at most %d", size, limit)
	}
	if len(m.To) > MaxRecipients {
		return invalid("to names %d participants, expected at most %d", len(m.To), MaxRecipients)
	}
	for _, name := range m.To {
		if err := volumetric.ValidateName("to", name); err != nil {
			return err
		}
	}
	return nil
}
