package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/test/exposition"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// homes returns the participants of a room in the view of a node, each with its home, and the publications that an
// operator has muted.
func homes(t *testing.T, node *testbed.Conference, room string) (participants, muted []string) {
	t.Helper()
	status, text := operate(t, node.Server.AdminAddress(), "GET", "rooms/"+room)
	var state admin.Room
	if status == http.StatusOK {
		if err := json.Unmarshal(text, &state); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range state.Participants {
		participants = append(participants, p.Identity+"@"+p.Node)
		for _, publication := range p.Publications {
			if publication.Muted != nil && publication.Muted.Operator {
				muted = append(muted, p.Identity)
			}
		}
	}
	return participants, muted
}

// TestOperatorsOfACluster: one node shows and changes the rooms of all nodes.
func TestOperatorsOfACluster(t *testing.T) {
	nodes := startCluster(t, unhurried, "a@eu", "b@us", "c@asia")
	var peers []*testbed.Peer
	for i, node := range nodes {
		peers = append(peers, join(t, node, atLeisure(testbed.Part{Room: "room", Identity: fmt.Sprint("p", i),
			Loads: []testbed.Load{body(1, 1)}, Receive: true})))
	}
	wait.Until(t, "node a shows the participants of all nodes", func() bool {
		participants, _ := homes(t, nodes[0], "room")
		return slices.Equal(participants, []string{"p0@a", "p1@b", "p2@c"})
	})
	var list struct{ Nodes []admin.NodeState }
	wait.Until(t, "node a has trunks to all nodes", func() bool {
		_, text := operate(t, nodes[0].Server.AdminAddress(), "GET", "nodes")
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		return len(list.Nodes) == 3 && list.Nodes[1].Trunk != nil && list.Nodes[2].Trunk != nil &&
			list.Nodes[1].Participants == 1
	})
	if n := list.Nodes[1]; !list.Nodes[0].Self || n.Self || n.Name != "b" || n.Region != "us" ||
		n.State != admin.NodeAlive || n.URL != nodes[1].Server.URL() {
		t.Errorf("the nodes are %+v", list.Nodes)
	}
	wait.Until(t, "node a has packets of trunks", func() bool {
		series, err := exposition.Scrape(t.Context(), "http://"+nodes[0].Server.AdminAddress()+"/metrics")
		if err != nil {
			t.Fatal(err)
		}
		return series[`volsfu_cluster_nodes{state="alive"}`] == 2 && series["volsfu_trunks"] == 2 &&
			series[`volsfu_trunk_packets_total{direction="in"}`] > 0 &&
			series[`volsfu_cluster_heartbeats_total{result="on_time"}`]+
				series[`volsfu_cluster_heartbeats_total{result="late"}`] > 0
	})
	for _, test := range []struct {
		method, path, body string
		status             int
	}{
		{"PATCH", "rooms/room/participants/p2", `{"muted": {"body": true}}`, http.StatusNoContent},
		{"DELETE", "rooms/room/participants/p1", "", http.StatusNoContent},
		{"DELETE", "rooms/room/participants/nobody", "", http.StatusNotFound},
		{"PUT", "revocations/stolen", "", http.StatusNoContent},
		{"POST", "nodes/b/drain", "", http.StatusNoContent},
		{"POST", "nodes/z/drain", "", http.StatusNotFound},
		{"POST", "rooms/attic/move", `{"node": "b"}`, http.StatusNotFound},
	} {
		if status, text := operateWith(t, nodes[0].Server.AdminAddress(), test.method, test.path,
			test.body); status != test.status {
			t.Errorf("%s %s: %d %s, expected %d", test.method, test.path, status, text, test.status)
		}
	}
	wait.Until(t, "p1 is removed and p2 is muted", func() bool {
		participants, muted := homes(t, nodes[1], "room")
		return slices.Equal(participants, []string{"p0@a", "p2@c"}) && slices.Equal(muted, []string{"p2"})
	})
	wait.Until(t, "the session of p1 ends", func() bool { return peers[1].Session.Err() != nil })
	if _, text := operate(t, nodes[2].Server.AdminAddress(), "GET", "revocations"); strings.Count(
		string(text), `"id":"stolen"`) != 1 {
		t.Errorf("the revocations are %s", text)
	}
	select {
	case <-nodes[1].Server.DrainRequested():
	default:
		t.Error("no drain of node b was requested")
	}
	status, text := operate(t, nodes[1].Server.AdminAddress(), "DELETE", "rooms/room")
	if status != http.StatusNoContent {
		t.Errorf("the end of the room: %d %s", status, text)
	}
	for _, i := range []int{0, 2} {
		wait.Until(t, fmt.Sprintf("the session of p%d ends", i), func() bool { return peers[i].Session.Err() != nil })
	}
}
