package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/e2e/puppet"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// joinAs joins with settings that a testbed.Peer does not have.
func joinAs(t *testing.T, config client.Config) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	session, err := client.Join(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// nextFrame waits for a frame.
func nextFrame(t *testing.T, s *client.Session) client.Frame {
	t.Helper()
	select {
	case f, open := <-s.Frames():
		if !open {
			t.Fatalf("the session ended: %v", s.Err())
		}
		return f
	case <-time.After(patience):
		t.Fatal("no frame arrived")
		return client.Frame{}
	}
}

// sendFrame sends a frame once that is possible.
func sendFrame(t *testing.T, p *client.Publisher, number uint32, data string) {
	t.Helper()
	wait.Until(t, "a frame is sent", func() bool {
		taken, _ := p.WriteFrame(0, 0, client.OutgoingFrame{Number: number, Capture: time.Now(), Data: []byte(data)})
		return taken
	})
}

// serverCandidates waits until the server has sent a candidate that the test accepts. The identity of the waiting
// client contains the description, since the client of an earlier call may not have left yet.
func serverCandidates(t *testing.T, c *testbed.Conference, what string, accept func(fields []string) bool) {
	t.Helper()
	p, err := puppet.Dial(puppet.Config{URL: c.Server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Join(&signal.Join{Version: 1, Room: "room", Identity: "scout: " + what, Receive: true}); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, what, func() bool {
		for _, candidate := range p.Candidates() {
			// candidate:FOUNDATION COMPONENT TRANSPORT PRIORITY ADDRESS PORT typ TYPE … (RFC 8839 section 5.1)
			if fields := strings.Fields(candidate); len(fields) >= 8 && accept(fields) {
				return true
			}
		}
		return false
	})
}

// TestWithoutUDP has a client publish and receive over TCP, at the port number of the media port.
func TestWithoutUDP(t *testing.T) {
	c := startConference(t, wide)
	udp, tcp := "", ""
	serverCandidates(t, c, "the server offers UDP and TCP on one port", func(fields []string) bool {
		switch strings.ToLower(fields[2]) {
		case "udp":
			udp = fields[5]
		case "tcp":
			tcp = fields[5]
		}
		return udp != "" && udp == tcp
	})
	alice := joinAs(t, client.Config{
		URL: c.Server.URL(), Room: "room", Identity: "alice", Receive: true, TCP: true,
		Publications: []volumetric.Publication{body(1, 1).Publication()},
	})
	bob := join(t, c, testbed.Part{Room: "room", Identity: "bob", Loads: []testbed.Load{body(1, 1)}})
	for range 10 {
		if f := nextFrame(t, alice); f.Track.TileRef != tile("bob", "body", 0) {
			t.Fatalf("frame of %v", f.Track)
		}
	}
	bob.Leave()
	carol := joinAs(t, client.Config{URL: c.Server.URL(), Room: "room", Identity: "carol", Receive: true})
	sent := strings.Repeat("over TCP ", 500)
	arrived := make(chan client.Frame, 1)
	go func() {
		if f, open := <-carol.Frames(); open {
			arrived <- f
		}
	}()
	number := uint32(0)
	wait.Until(t, "carol has a frame received over TCP", func() bool {
		sendFrame(t, alice.Publisher("body"), number, sent)
		number++
		select {
		case f := <-arrived:
			if string(f.Data) != sent {
				t.Errorf("the frame differs from the sent one")
			}
			return true
		default:
			return false
		}
	})
}

func TestTLS(t *testing.T) {
	files := certificate.New(t, "127.0.0.1")
	c := startConference(t, func(c *config.Config) { c.Server.TLSCert, c.Server.TLSKey = files.Certificate, files.Key })
	url := c.Server.URL()
	if !strings.HasPrefix(url, "wss://") {
		t.Fatalf("URL is %s", url)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if session, err := client.Join(ctx, client.Config{URL: url, Room: "room", Identity: "mallory"}); err == nil {
		_ = session.Close()
		t.Error("an untrusted certificate was accepted")
	}
	trusting := &tls.Config{RootCAs: files.Pool}
	alice := joinAs(t, client.Config{
		URL: url, Room: "room", Identity: "alice", TLS: trusting,
		Publications: []volumetric.Publication{body(1, 1).Publication()},
	})
	bob := joinAs(t, client.Config{URL: url, Room: "room", Identity: "bob", TLS: trusting, Receive: true})
	arrived := make(chan client.Frame, 1)
	go func() {
		if f, open := <-bob.Frames(); open {
			arrived <- f
		}
	}()
	number := uint32(0)
	wait.Until(t, "bob has a frame of alice's", func() bool {
		sendFrame(t, alice.Publisher("body"), number, fmt.Sprint(number))
		number++
		select {
		case <-arrived:
			return true
		default:
			return false
		}
	})
}

func TestPublicAddressIsOffered(t *testing.T) {
	// An address for documentation (RFC 5737).
	const public = "203.0.113.7"
	c := startConference(t, func(c *config.Config) { c.Media.PublicIPs = []string{public} })
	for _, transport := range []string{"udp", "tcp"} {
		serverCandidates(t, c, "the public address is offered over "+transport, func(fields []string) bool {
			return strings.EqualFold(fields[2], transport) && fields[4] == public
		})
	}
}
