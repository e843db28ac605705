package guest

import (
	"context"
	"errors"
	"time"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

const (
	// messageLimit and messageBytes limit the messages that the program holds. The session bounds the waiting ones.
	messageLimit = 1024
	messageBytes = messageLimit * signal.MaxDataBytes
)

// SendData sends a data message. It waits until the server has accepted a reliable message.
func (g *Guest) SendData(d client.Data) error {
	m := &signal.Data{To: d.To, Topic: d.Topic, Lossy: d.Lossy, Text: d.Text, Binary: d.Binary}
	if err := check(m); err != nil {
		return err
	}
	return g.ask("send data", func(ctx context.Context) error { return g.session.SendData(ctx, d) })
}

// NextMessage waits for a data message, as NextFrame does for a frame. The session keeps the messages until then, so
// that DataMessage.Missed counts all that are lost.
func (g *Guest) NextMessage(wait time.Duration) (client.DataMessage, error) {
	var none client.DataMessage
	if err := g.messages.reserve(); err != nil {
		return none, err
	}
	m, err := receive(g.session.Data(), wait)
	if err != nil {
		g.messages.release(0)
		if errors.Is(err, queue.ErrEnded) {
			err = g.ended()
		}
		return none, err
	}
	g.messages.add(messageSize(m))
	return m, nil
}

// receive takes the next message of a channel, and waits as long as queue.Queue.Pop.
func receive(from <-chan client.DataMessage, wait time.Duration) (m client.DataMessage, err error) {
	open := true
	select {
	case m, open = <-from:
	default:
		if wait == 0 {
			return m, queue.ErrEmpty
		}
		var late <-chan time.Time
		if wait > 0 {
			timer := time.NewTimer(wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case m, open = <-from:
		case <-late:
			return m, queue.ErrEmpty
		}
	}
	if !open {
		return m, queue.ErrEnded
	}
	return m, nil
}

// ReleaseMessage records that the program has released a message.
func (g *Guest) ReleaseMessage(size int) { g.messages.release(size) }

func messageSize(m client.DataMessage) int { return len(m.Text) + len(m.Binary) }

// SetAttributes changes attributes of a participant, of this one if the name is empty, and waits until the server has
// accepted the change.
func (g *Guest) SetAttributes(participant string, attributes map[string]string) error {
	if err := check(&signal.Attributes{Participant: participant, Attributes: attributes}); err != nil {
		return err
	}
	return g.ask("set attributes", func(ctx context.Context) error {
		return g.session.SetAttributes(ctx, participant, attributes)
	})
}
