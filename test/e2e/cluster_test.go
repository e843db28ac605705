package e2e

import (
	"fmt"
	"slices"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// startCluster starts the nodes of a cluster, which end with all their clients at the end of the test.
func startCluster(t *testing.T, change func(*config.Config), names ...string) []*testbed.Conference {
	t.Helper()
	nodes, err := testbed.NewCluster(t.TempDir(), zap.NewNop(), change, names...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, node := range nodes {
			node.Close()
		}
		goleak.VerifyNone(t)
	})
	return nodes
}

// others returns the identities that a peer knows in its room, besides its own, in order.
func others(p *testbed.Peer) []string {
	var identities []string
	for _, participant := range p.Session.Participants() {
		if participant.Identity != p.Session.Identity() {
			identities = append(identities, participant.Identity)
		}
	}
	slices.Sort(identities)
	return identities
}

// TestRoomOverThreeNodes: participants at different nodes are in one room.
func TestRoomOverThreeNodes(t *testing.T) {
	nodes := startCluster(t, unhurried, "a", "b", "c")
	var peers []*testbed.Peer
	for i, node := range nodes {
		peers = append(peers, join(t, node, atLeisure(testbed.Part{Room: "room", Identity: fmt.Sprint("p", i),
			Loads: []testbed.Load{body(1, 1)}, Receive: true})))
	}
	join(t, nodes[0], testbed.Part{Room: "another", Identity: "stranger"})
	for i, p := range peers {
		want := slices.Delete([]string{"p0", "p1", "p2"}, i, i+1)
		wait.Until(t, fmt.Sprintf("p%d knows the others", i), func() bool { return slices.Equal(others(p), want) })
		wait.Until(t, fmt.Sprintf("p%d knows their publications", i), func() bool {
			return !slices.ContainsFunc(p.Session.Participants(), func(q signal.Participant) bool {
				return q.Identity != p.Session.Identity() && len(q.Publications) != 1
			})
		})
	}
	for i, p := range peers {
		for j := range peers {
			if i != j {
				wait.Until(t, fmt.Sprintf("p%d has frames of p%d", i, j), func() bool {
					return frames(p, tile(fmt.Sprint("p", j), "body", 0)) > 10
				})
			}
		}
		if err := p.Failure(); err != nil {
			t.Error(err)
		}
	}
	peers[2].Leave()
	for i, p := range peers[:2] {
		wait.Until(t, fmt.Sprintf("p%d is told that p2 has left", i), func() bool { return len(others(p)) == 1 })
	}
}
