package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// lossyConn drops every tenth received datagram while it is lossy.
type lossyConn struct {
	net.PacketConn
	lossy    atomic.Bool
	received atomic.Uint64
}

func (c *lossyConn) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(p)
		if err != nil || !c.lossy.Load() || c.received.Add(1)%10 != 0 {
			return n, from, err
		}
	}
}

// TestServerOrdersCopies runs a server beside an edge, and a receiver behind the other edge. The receiver loses packets
// behind the edges. The server orders copies while it does, and media goes on without the edge.
func TestServerOrdersCopies(t *testing.T) {
	studio, office := newPair(t)
	text, err := os.ReadFile(studio.config)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "copies: all", "copies: auto", 1))
	if err := os.WriteFile(studio.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	studio.edge()
	office.edge()
	up(t, studio, office)

	core, logs := observer.New(zap.InfoLevel)
	settings := testbed.ConferenceConfig()
	settings.Server.Listen, settings.Admin.Listen = studio.inner+":0", ""
	settings.Server.Edge = "conference@" + filepath.Join(studio.state, "studio.sock")
	settings.Media.Address, settings.Media.Port = studio.inner, 7882
	token, err := testbed.RequireToken(&settings)
	if err != nil {
		t.Fatal(err)
	}
	var conference *testbed.Conference
	studio.Do(func() { conference, err = testbed.NewConference(settings, nil, zap.New(core)) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conference.Close)
	join := func(s *site, part testbed.Part) (peer *testbed.Peer) {
		t.Helper()
		part.Room, part.Token, part.MinUplink = "lab", token, testbed.Everything
		ctx, cancel := context.WithTimeout(t.Context(), wait.Patience)
		defer cancel()
		s.Do(func() { peer, err = conference.Join(ctx, part) })
		if err != nil {
			t.Fatal(err)
		}
		return peer
	}
	media := &lossyConn{}
	office.Do(func() { media.PacketConn, err = net.ListenPacket("udp4", office.inner+":0") })
	if err != nil {
		t.Fatal(err)
	}
	join(studio, testbed.Part{Identity: "alice",
		Loads: []testbed.Load{{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 20_000, Rate: 30}}})
	bob := join(office, testbed.Part{Identity: "bob", Receive: true, Media: media})
	body := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "body"}}
	frames := func(more int) {
		t.Helper()
		until := bob.Tile(body).Frames + more
		wait.Until(t, "frames arrive", func() bool { return bob.Tile(body).Frames >= until })
	}
	// rule returns the state of the rule. It is not triggered while the edge does not answer.
	rule := func() (rule edge.RuleStatus, known bool) {
		if rules := studio.status().Rules; len(rules) == 1 {
			return rules[0], true
		}
		return edge.RuleStatus{}, false
	}
	frames(60)

	media.lossy.Store(true)
	wait.Until(t, "the server orders copies", func() bool {
		r, _ := rule()
		return r.Triggered && len(r.Set) == 2
	})
	media.lossy.Store(false)
	wait.Until(t, "the order expires", func() bool {
		r, known := rule()
		return known && !r.Triggered
	})

	// refused counts the lines about an edge that is absent.
	refused := func() (lines int) {
		for _, line := range logs.FilterMessageSnippet("takes no orders").All() {
			if strings.Contains(fmt.Sprint(line.ContextMap()["error"]), "connection refused") {
				lines++
			}
		}
		return lines
	}
	if n := refused(); n > 0 {
		t.Errorf("the server has logged %d times that the edge is absent: %v", n, logs.All())
	}
	_ = studio.running.Process.Kill()
	<-studio.running.ended
	media.lossy.Store(true)
	wait.Until(t, "the server notices that the edge is gone", func() bool { return refused() == 1 })
	frames(60)
	if n := refused(); n != 1 {
		t.Errorf("the server has logged %d times that the edge is absent, expected once", n)
	}
	studio.edge()
	up(t, studio, office)
	wait.Until(t, "the server orders copies from the next edge", func() bool {
		r, _ := rule()
		return r.Triggered
	})
}
