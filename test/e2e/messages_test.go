package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/proxy"
	"github.com/volsfu/volsfu/test/wait"
)

// chatter joins a room for data messages, and leaves with the test.
func chatter(t *testing.T, url, identity string, channel bool) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := client.Join(ctx, client.Config{URL: url, Room: "room", Identity: identity, MessageChannel: channel})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// nextData waits for the next data message.
func nextData(t *testing.T, s *client.Session) client.DataMessage {
	t.Helper()
	select {
	case m, open := <-s.Data():
		if !open {
			t.Fatalf("the session has ended: %v", s.Err())
		}
		return m
	case <-time.After(patience):
		t.Fatal("no data message arrived")
	}
	return client.DataMessage{}
}

// send sends a reliable message.
func send(t *testing.T, s *client.Session, d client.Data) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.SendData(ctx, d); err != nil {
		t.Fatal(err)
	}
}

// TestDataMessagesArriveOnceAndInOrder sends messages with and without message channels.
func TestDataMessagesArriveOnceAndInOrder(t *testing.T) {
	for _, channel := range []bool{false, true} {
		t.Run(fmt.Sprint("message channel ", channel), func(t *testing.T) {
			c := startConference(t, unhurried)
			ada, grace := chatter(t, c.Server.URL(), "ada", channel), chatter(t, c.Server.URL(), "grace", channel)
			if channel {
				awaitConnected(t, ada)
				awaitConnected(t, grace)
			}
			const messages = 50
			for i := range messages {
				text := fmt.Sprint(i)
				if i == messages/2 {
					// A long message has no copies, and must not overtake or delay the others.
					text += strings.Repeat(" ", 10_000)
				}
				send(t, ada, client.Data{Topic: "chat", Text: text})
			}
			for i := range messages {
				m := nextData(t, grace)
				if strings.TrimSpace(m.Text) != fmt.Sprint(i) || m.From != "ada" || m.Topic != "chat" || m.Missed != 0 {
					t.Fatalf("message %d is %.20q of %q on %q with %d missed", i, m.Text, m.From, m.Topic, m.Missed)
				}
			}
			send(t, ada, client.Data{Topic: "bytes", Binary: []byte{0, 255}, To: []string{"grace"}})
			if m := nextData(t, grace); string(m.Binary) != "\x00\xff" {
				t.Errorf("received %v", m.Binary)
			}
		})
	}
}

// awaitConnected waits until media can flow, and so data channels can open.
func awaitConnected(t *testing.T, s *client.Session) {
	t.Helper()
	for {
		select {
		case e := <-s.Events():
			if _, ok := e.(client.Connected); ok {
				return
			}
		case <-time.After(patience):
			t.Fatal("not connected")
		}
	}
}

// TestTheMessageChannelCarriesMessages expects messages while the websocket passes nothing on.
func TestTheMessageChannelCarriesMessages(t *testing.T) {
	c := startConference(t, unhurried)
	ada := chatter(t, c.Server.URL(), "ada", true)
	p := proxy.New(t, strings.TrimPrefix(c.Server.URL(), "ws://"))
	grace := chatter(t, "ws://"+p.Address(), "grace", true)
	awaitConnected(t, ada)
	awaitConnected(t, grace)
	send(t, ada, client.Data{Text: "before"})
	nextData(t, grace)
	p.SetDown(true)
	p.Cut()
	// Before both channels are open, lossy messages take the websocket as well.
	wait.Until(t, "lossy messages pass the channels", func() bool {
		send(t, ada, client.Data{Text: "lossy", Lossy: true})
		select {
		case <-grace.Data():
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})
	send(t, ada, client.Data{Text: "meanwhile"})
	for {
		m := nextData(t, grace)
		if m.Lossy {
			continue
		}
		if m.Text != "meanwhile" {
			t.Errorf("received %q over the message channel", m.Text)
		}
		break
	}
}

// TestDataMessagesAfterResuming sends messages in both directions while a websocket is broken.
func TestDataMessagesAfterResuming(t *testing.T) {
	c := startConference(t, unhurried)
	p := proxy.New(t, strings.TrimPrefix(c.Server.URL(), "ws://"))
	ada, grace := chatter(t, c.Server.URL(), "ada", false), chatter(t, "ws://"+p.Address(), "grace", false)
	send(t, ada, client.Data{Text: "0"})
	send(t, grace, client.Data{Text: "0"})
	for round := range 3 {
		p.SetDown(true)
		p.Cut()
		accepted := make(chan error, 1)
		go func() { accepted <- grace.SendData(context.Background(), client.Data{Text: fmt.Sprint(2*round + 1)}) }()
		send(t, ada, client.Data{Text: fmt.Sprint(2*round + 1)})
		p.SetDown(false)
		if err := <-accepted; err != nil {
			t.Fatal(err)
		}
		send(t, ada, client.Data{Text: fmt.Sprint(2*round + 2)})
		send(t, grace, client.Data{Text: fmt.Sprint(2*round + 2)})
	}
	for name, s := range map[string]*client.Session{"ada": ada, "grace": grace} {
		for i := range 7 {
			if m := nextData(t, s); m.Text != fmt.Sprint(i) || m.Missed != 0 {
				t.Fatalf("%s: message %d is %q with %d missed", name, i, m.Text, m.Missed)
			}
		}
	}
}
