package transport

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/test/wait"
)

// shortMessage is the length up to which messages are read into the channel's own buffer (package datachannels).
const shortMessage = 2 << 10

// messageRecorder is a sink that sends messages to a channel.
type messageRecorder struct {
	*recorder
	messages chan []byte
}

func (r messageRecorder) Data(_ string, message []byte, _ time.Time) {
	r.messages <- bytes.Clone(message)
}

func (messageRecorder) Acknowledged(time.Time) {}

// TestMessagesOfAllLengths sends messages of lengths around shortMessage. Longer messages use shared buffers.
func TestMessagesOfAllLengths(t *testing.T) {
	endpoint, err := Listen(loopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	sink := messageRecorder{newRecorder(), make(chan []byte, 1)}
	_, channel := openData(t, endpoint, sink)
	for n, length := range []int{
		1, 100, shortMessage - 1, shortMessage, shortMessage + 1, 10, description.MaxDataMessage - 1, 1,
		2 * shortMessage,
	} {
		message := bytes.Repeat([]byte{byte(n + 1)}, length)
		if err := channel.Send(message); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-sink.messages:
			if !bytes.Equal(got, message) {
				t.Errorf("message %d of %d bytes came with %d bytes, or changed", n, length, len(got))
			}
		case <-time.After(wait.Patience):
			t.Fatalf("timed out waiting for message %d of %d bytes", n, length)
		}
	}
}

// TestReplies sends messages on the channel that the remote peer opened.
func TestReplies(t *testing.T) {
	endpoint, err := Listen(loopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	sink := messageRecorder{newRecorder(), make(chan []byte, 1)}
	peer, channel := openData(t, endpoint, sink)
	replies := make(chan []byte, 1)
	channel.OnMessage(func(m webrtc.DataChannelMessage) { replies <- m.Data })
	// A message of the remote peer shows that the channel is known.
	if err := channel.Send([]byte{1}); err != nil {
		t.Fatal(err)
	}
	<-sink.messages
	peer.Reply("another", []byte{2})
	peer.Reply("channel", []byte{3, 4})
	select {
	case got := <-replies:
		if !bytes.Equal(got, []byte{3, 4}) {
			t.Errorf("the reply is % x", got)
		}
	case <-time.After(wait.Patience):
		t.Fatal("timed out waiting for the reply")
	}
}
