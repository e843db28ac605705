package peer

import (
	"time"

	"golang.org/x/time/rate"

	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// copyRate and copyBurst limit the messages of a message channel before they are decoded. A client sends two copies
	// of each reliable message and one of each lossy message, at the rates of sfu.Config at most.
	copyRate, copyBurst = 250, 500
	// maxCopy is the maximum length of a message, in bytes: a lossy message of signal.MaxLossyBytes whose payload JSON
	// writes as six bytes each, and its names.
	maxCopy = 8 << 10
)

// messages reads the message channel of a client: data messages as JSON, the same text as over the websocket. The
// goroutines of channels call take.
type messages struct {
	owner   Owner
	limiter *rate.Limiter
}

func newMessages(owner Owner) *messages {
	return &messages{owner, rate.NewLimiter(copyRate, copyBurst)}
}

// take passes a valid data message to the owner. All others are dropped: each reliable message comes over the
// websocket, too, where the client gets an error.
func (c *messages) take(text []byte, now time.Time) {
	if len(text) > maxCopy || !c.limiter.AllowN(now, 1) {
		return
	}
	message, err := signal.DecodeFromClient(text)
	if err != nil {
		return
	}
	if m, ok := message.(*signal.Data); ok && m.Validate() == nil && m.Seq > 0 {
		c.owner.DataCopied(m)
	}
}
