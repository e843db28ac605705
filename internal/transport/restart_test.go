package transport

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
)

// dataRecorder is a recorder that takes messages, too.
type dataRecorder struct{ *recorder }

func (dataRecorder) Data(string, []byte, time.Time) {}

func (dataRecorder) Acknowledged(time.Time) {}

// TestChannelsOutliveANewBeginningOfICE sends on a channel between an offer that begins ICE anew and its answer, when there is no way to the remote peer: what was sent
// arrives once there is one again.
func TestChannelsOutliveANewBeginningOfICE(t *testing.T) {
	endpoint, err := Listen(loopbackConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = endpoint.Close() }()
	peer, err := endpoint.NewPeer(dataRecorder{newRecorder()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = peer.Close() }()
	peer.AddData()
	channel := peer.AddChannel("slot")
	foreign := newForeigner(t)
	defer func() { _ = foreign.pc.Close() }()
	var arrived atomic.Int64
	foreign.pc.OnDataChannel(func(c *webrtc.DataChannel) {
		c.OnMessage(func(webrtc.DataChannelMessage) { arrived.Add(1) })
	})
	offer := func(restart bool) string {
		t.Helper()
		text, err := peer.Offer(restart)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	take := func(answer string) {
		t.Helper()
		if _, err := peer.Answered(answer); err != nil {
			t.Fatal(err)
		}
	}
	until := func(want int64, next func()) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); arrived.Load() < want; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d messages arrived, expected %d", arrived.Load(), want)
			}
			next()
		}
	}
	take(foreign.answer(t, offer(false)))
	until(1, func() { _ = channel.Send([]byte("open")) })
	for channel.Unacknowledged() > 0 {
		time.Sleep(time.Millisecond)
	}
	before := arrived.Load()
	again := offer(true)
	for range 5 {
		if err := channel.Send([]byte("meanwhile")); err != nil {
			t.Fatal(err)
		}
	}
	take(foreign.answer(t, again))
	until(before+5, func() {})
}
