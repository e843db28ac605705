package signal

import "sync"

// sharedText is the text of a message that is sent to several clients.
type sharedText struct {
	once sync.Once
	text []byte
	err  error
}

// Share prepares a message that is sent to several clients: the first call of Encode makes the
// text, and all calls return the same text. Several goroutines may call Encode concurrently. After
// Share neither the message nor its text may be changed.
func Share(m Message) {
	head := m.Head()
	head.Type, head.shared = m.messageType(), new(sharedText)
}
