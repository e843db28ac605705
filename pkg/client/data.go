package client

import "github.com/volsfu/volsfu/pkg/client/internal/messages"

// dataBacklog is the size of the channel of data messages. If the channel is full, new messages are lost.
const dataBacklog = 1024

// ErrDataBacklog means that too many reliable data messages wait for the server's reply: datamessage.KeptMessages, or
// datamessage.KeptBytes.
var ErrDataBacklog = messages.ErrBacklog

// Data is a data message to send.
type Data struct {
	// To names the recipients. An empty list stands for all other participants.
	To []string
	// Topic is a name by which the application distinguishes messages.
	Topic string
	// Lossy messages may be lost. Of the lossy messages of one topic, a receiver gets only messages newer than all
	// before.
	Lossy bool
	// Text or Binary is the payload, signal.MaxDataBytes at most, or signal.MaxLossyBytes.
	Text   string
	Binary []byte
}

// DataMessage is a received data message.
type DataMessage struct {
	// From is the sender, empty for the server's operator.
	From  string
	Topic string
	Lossy bool
	// Text or Binary is the payload.
	Text   string
	Binary []byte
	// Missed is the number of reliable messages before this one that are lost: the session was interrupted for longer
	// than the server keeps messages, or the program did not read the channel in time.
	Missed int64
}

// inbox is the channel of the data messages for the program.
type inbox chan DataMessage

// Deliver implements messages.Program. It reports whether the channel was not full.
func (b inbox) Deliver(m messages.Message) bool {
	select {
	case b <- DataMessage(m):
		return true
	default:
		return false
	}
}
