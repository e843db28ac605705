// Package interop tests servers with VR2Gather's clients as shipped: first a stand-in for the server for which they
// were made, which verifies the clients' behaviour, then this server.
package interop

import (
	"context"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/interop/standin"
	"github.com/volsfu/volsfu/test/wait"
)

// patience and eventually are the time limits of all tests.
const patience = wait.Patience

var eventually = wait.Until

// loopback is the address prefix of most tests.
const loopback = "127."

// lastFreePort is below the range of ports that systems assign automatically, which begins at 32768 on Linux: so no
// other socket gets a port of the pair between the moments when it is found and used.
const firstFreePort, lastFreePort = 20_000, 32_000

// portPair finds a UDP port for a bridge, followed by a free one for its connector.
func portPair(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := firstFreePort + rand.IntN(lastFreePort-firstFreePort)
		if portFree(port) && portFree(port+1) {
			return port
		}
	}
	t.Fatal("no two UDP ports side by side are free")
	return 0
}

func portFree(port int) bool {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{Port: port})
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// startStandIn starts a stand-in for the original server that ends with the test.
func startStandIn(t *testing.T, faults standin.Faults) *standin.SFU {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := standin.Start(standin.Config{Listener: listener, Addresses: loopback, Faults: faults})
	t.Cleanup(func() {
		s.Close()
		goleak.VerifyNone(t)
	})
	return s
}

// dial joins as an old peer that ends with the test.
func dial(t *testing.T, config oldpeer.Config) *oldpeer.Peer {
	t.Helper()
	if config.Addresses == "" {
		config.Addresses = loopback
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := oldpeer.Dial(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// connect joins as an old peer, and waits until media flows.
func connect(t *testing.T, config oldpeer.Config) *oldpeer.Peer {
	t.Helper()
	p := dial(t, config)
	select {
	case <-p.Connected():
	case <-p.Dead():
		t.Fatalf("the peer is dead: %v", p.Fault())
	case <-p.Ended():
		t.Fatal("the server has ended the websocket")
	case <-time.After(patience):
		t.Fatalf("not connected: %+v, %v", p.Counts(), p.Fault())
	}
	return p
}

// old joins as an old peer that publishes a programme, and has an audience.
func old(t *testing.T, server string, p programme) *audience {
	t.Helper()
	peer := connect(t, oldpeer.Config{Server: server, Client: p.Client, Tiles: p.Tiles, Qualities: p.Qualities})
	a := attend(t, peer)
	p.publish(t, peer)
	return a
}
