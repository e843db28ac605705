package interop

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/interop/oldpeer"
	"github.com/volsfu/volsfu/test/interop/standin"
	"github.com/volsfu/volsfu/test/namespace"
)

// Both ends of the cable have addresses that the shipped peer accepts.
const (
	serverAddress = "10.8.0.1"
	peerAddress   = "10.8.0.2"
)

// cabled creates the network of a server and that of a peer.
func cabled(t *testing.T) (server, peer network) {
	t.Helper()
	t.Cleanup(func() { goleak.VerifyNone(t) })
	server, peer = network{namespace.New(t)}, network{namespace.New(t)}
	connectNamespaces(t, server, peer, serverAddress+"/16", peerAddress+"/16")
	return server, peer
}

// connectTwentyTimes lets a shipped peer connect 20 times in a row, without loopback and without STUN, and receive
// frames of an existing peer. expired returns the number of frames that the server has ended because they were late.
func connectTwentyTimes(t *testing.T, from network, server string, expired func() int) {
	t.Helper()
	network := from.pion(t)
	shipped := func(client int) *oldpeer.Peer {
		t.Helper()
		return connect(t, oldpeer.Config{
			Server: server, Client: client, Tiles: 9, Qualities: 3, Addresses: oldpeer.OriginalAddresses, Net: network,
			Dial: from.dial,
		})
	}
	resident := conversation(99)
	resident.publish(t, shipped(resident.Client))
	const attempts = 20
	reached, longest := 0, time.Duration(0)
	defer func() {
		measured(t, claim.Exactly(fmt.Sprintf("connections with frames of all tiles and sound, of %d", attempts),
			int64(reached), "", attempts))
		measured(t, claim.Information("from the websocket to four frames of each tile and of sound, longest",
			milliseconds(longest), "ms"))
	}()
	for i := range attempts {
		began := time.Now()
		a := attend(t, shipped(1+i))
		goOn(t, a.flows(resident.Client, resident.Tiles)...)
		reached, longest = reached+1, max(longest, time.Since(began))
		a.whole(t, expired())
		if counts := a.peer.Counts(); counts.LostCandidates > 0 || counts.Gathered == 0 {
			t.Errorf("connection %d: %+v", i, counts)
		}
		a.peer.Close()
	}
}

func TestShippedPeersReachTheStandIn(t *testing.T) {
	there, here := cabled(t)
	s := standin.Start(standin.Config{Listener: there.listen(t, serverAddress+":0"),
		Addresses: oldpeer.OriginalAddresses, Net: there.pion(t)})
	t.Cleanup(s.Close)
	connectTwentyTimes(t, here, s.Address(), func() int { return 0 })
}

func TestShippedPeersReachTheServer(t *testing.T) {
	there, here := cabled(t)
	settings := serverSettings()
	patient(&settings)
	settings.Server.Dev, settings.Server.Listen, settings.Admin.Listen = false, serverAddress+":0", ""
	settings.Media.Address = serverAddress
	var s *server.Server
	var err error
	there.Do(func() {
		s, err = server.Start(server.Options{Config: settings, Log: zap.NewNop(), VR2GatherOnly: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	connectTwentyTimes(t, here, strings.TrimPrefix(s.URL(), "ws://"), func() int {
		return int(s.Stats().DroppedExpired)
	})
}
