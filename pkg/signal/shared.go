package signal

import "sync"

// sharedText is the text of a message that several clients are sent.
type sharedText struct {
	once sync.Once
	text []byte
	err  error
}

// Share makes a message one that several clients are sent: the first call of Encode makes the text, further calls give
// the same text, and several goroutines may call Encode at once. Neither the message nor its text may be changed after
// Share.
func Share(m Message) {
	head := m.Head()
	head.Type, head.shared = m.messageType(), new(sharedText)
}
