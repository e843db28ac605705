package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/test/program"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// startCluster starts the nodes of a cluster, which end with all their clients at the end of the test.
func startCluster(t *testing.T, change func(*config.Config), names ...string) []*testbed.Conference {
	t.Helper()
	return startClusterIn(t, t.TempDir(), change, names...)
}

// startClusterIn is startCluster with the directory of the certificates.
func startClusterIn(
	t *testing.T, directory string, change func(*config.Config), names ...string,
) []*testbed.Conference {
	t.Helper()
	nodes, err := testbed.NewCluster(directory, zap.NewNop(), change, names...)
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

// TestRoomOverThreeNodes: participants in different regions are in one room.
func TestRoomOverThreeNodes(t *testing.T) {
	nodes := startCluster(t, unhurried, "a@eu", "b@us", "c@asia")
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

// destination joins with moves at a node and returns the address of the node of the room, empty if the cluster refuses
// the join. The client leaves at once.
func destination(t *testing.T, node *testbed.Conference, room string) string {
	t.Helper()
	raw := dialRaw(t, node.Server.URL())
	defer raw.close()
	raw.send(&signal.Join{Version: 1, Room: room, Identity: "guest of " + node.Server.URL()[5:], Moves: true})
	switch m := raw.receive().(type) {
	case *signal.Moved:
		return m.URL
	case *signal.Joined:
		raw.send(&signal.Leave{})
		return node.Server.URL()
	}
	return ""
}

// gathered waits until all nodes send clients of a room to one node, and returns the node.
func gathered(t *testing.T, nodes []*testbed.Conference, room string) *testbed.Conference {
	t.Helper()
	var home string
	wait.Until(t, "all nodes name one node for the room", func() bool {
		home = destination(t, nodes[0], room)
		return home != "" && !slices.ContainsFunc(nodes, func(n *testbed.Conference) bool {
			return destination(t, n, room) != home
		})
	})
	return nodes[slices.IndexFunc(nodes, func(n *testbed.Conference) bool { return n.Server.URL() == home })]
}

// without returns the nodes except one.
func without(nodes []*testbed.Conference, node *testbed.Conference) []*testbed.Conference {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *testbed.Conference) bool { return n == node })
}

// TestClientsOfARoomGather: clients that join at any node are on one node. Clients of the SDK follow, old clients are
// passed on, and resume on any node.
func TestClientsOfARoomGather(t *testing.T) {
	nodes := startCluster(t, unhurried, "a", "b", "c")
	alice := join(t, nodes[0], atLeisure(testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{body(1, 1)}, Receive: true}))
	home := gathered(t, nodes, "room")
	entries := without(nodes, home)
	bob := join(t, entries[0], atLeisure(testbed.Part{Room: "room", Identity: "bob",
		Loads: []testbed.Load{body(1, 1)}, Receive: true}))
	wait.Until(t, "media flows both ways", func() bool {
		return frames(alice, tile("bob", "body", 0)) > 5 && frames(bob, tile("alice", "body", 0)) > 5
	})
	old := dialRaw(t, entries[0].Server.URL())
	joined := old.join(&signal.Join{Version: 1, Room: "room", Identity: "old", Receive: true})
	if len(joined.Nodes) != 2 {
		t.Errorf("the alternatives are %v, expected two nodes", joined.Nodes)
	}
	if offer := expectMessage[*signal.Offer](old); len(offer.Media) == 0 {
		t.Error("the proxied client gets no media lines")
	}
	wait.Until(t, "alice sees the proxied client", func() bool {
		return slices.Equal(others(alice), []string{"bob", "old"})
	})
	left := alice.Count("left")
	old.close()
	again := dialRaw(t, entries[1].Server.URL())
	resumed := again.join(&signal.Join{
		Version: 1, Room: "room", Identity: "old", Receive: true,
		Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret, NewConnection: true},
	})
	if !resumed.Resumed || resumed.Session != joined.Session {
		t.Errorf("resumed is %v with session %q, expected %q", resumed.Resumed, resumed.Session, joined.Session)
	}
	// Messages of a room arrive in their order.
	again.send(&signal.Attributes{Attributes: map[string]string{"resumed": "yes"}})
	wait.Until(t, "alice receives a message of the resumed client", func() bool {
		return slices.ContainsFunc(alice.Session.Participants(), func(p signal.Participant) bool {
			return p.Attributes["resumed"] == "yes"
		})
	})
	if alice.Count("left") != left {
		t.Error("alice was told that the proxied client has left")
	}
	again.close()
	if err := errors.Join(alice.Failure(), bob.Failure()); err != nil {
		t.Error(err)
	}
}

// TestForeignTickets resumes with tickets that are not of the cluster, or for others.
func TestForeignTickets(t *testing.T) {
	nodes := startCluster(t, nil, "a", "b")
	raw := dialRaw(t, nodes[0].Server.URL())
	defer raw.close()
	joined := raw.join(&signal.Join{Version: 1, Room: "room", Identity: "alice"})
	for name, join := range map[string]*signal.Join{
		"a secret": {Room: "room", Identity: "alice",
			Resume: &signal.ResumeRequest{Session: joined.Session, Secret: "RZ4LX6TQM2HVKD7NPCWBY3JGEA"}},
		"another identity": {Room: "room", Identity: "bob",
			Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret}},
		"another room": {Room: "attic", Identity: "alice",
			Resume: &signal.ResumeRequest{Session: joined.Session, Secret: joined.Resume.Secret}},
		"another session": {Room: "room", Identity: "alice",
			Resume: &signal.ResumeRequest{Session: "another", Secret: joined.Resume.Secret}},
		"a resume ticket for a join": {Room: "room", Identity: "alice", Ticket: joined.Resume.Secret},
	} {
		other := dialRaw(t, nodes[1].Server.URL())
		join.Version, join.Moves = 1, true
		other.send(join)
		if refused := expectMessage[*signal.Error](other); refused.Code != signal.CodeResume {
			t.Errorf("%s: refused with %q, expected %q", name, refused.Code, signal.CodeResume)
		}
		other.close()
	}
}

// meeting is participants by identity. Each publishes a body and receives those of the others.
type meeting map[string]*testbed.Peer

// attend adds a participant.
func (m meeting) attend(t *testing.T, node *testbed.Conference, name string) {
	m[name] = join(t, node, atLeisure(testbed.Part{Room: "room", Identity: name, Loads: []testbed.Load{body(1, 1)},
		Receive: true, Record: true}))
}

// flow waits until all participants have more frames of all others.
func (m meeting) flow(t *testing.T, what string) {
	t.Helper()
	for name, p := range m {
		for other := range m {
			before := frames(p, tile(other, "body", 0))
			wait.Until(t, fmt.Sprintf("%s has frames of %s %s", name, other, what), func() bool {
				return name == other || frames(p, tile(other, "body", 0)) > before+10
			})
		}
	}
}

// drain drains a node, from which these participants have to move once, and returns the number of frames that all
// participants miss.
func (m meeting) drain(t *testing.T, node *testbed.Conference, movers ...string) (missed int64) {
	t.Helper()
	m.flow(t, "before the drain")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	node.Server.Drain(ctx)
	m.flow(t, "after the drain")
	for _, name := range movers {
		p := m[name]
		if err := p.Session.Err(); err != nil {
			t.Fatalf("%s's session has ended: %v", name, err)
		}
		wait.Until(t, name+" leaves the node", func() bool { return p.Count("moved") > 0 })
		if moved, broken := p.Count("moved"), p.Count("interrupted"); moved != 1 || broken != 0 {
			t.Errorf("%s has moved %d times and was interrupted %d times, expected 1 and 0", name, moved, broken)
		}
	}
	for name, p := range m {
		lost := repaired(func() (lost int64) {
			arrivals := p.Arrivals()
			for other := range m {
				if other != name {
					lost += missing(arrivals, other)
				}
			}
			for _, c := range p.Session.Stats() {
				lost += int64(c.Undecodable + c.DroppedByServer)
			}
			return lost
		})
		t.Logf("%s has lost %d frames", name, lost)
		missed += lost
		if err := p.Failure(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	return missed
}

// TestDrainMovesOldClients drains the node of a client that knows no other server. The client resumes over the draining
// node, which proxies its websocket. The others miss no frame of each other.
func TestDrainMovesOldClients(t *testing.T) {
	nodes := startCluster(t, unhurried, "a@eu", "b@us", "c@asia")
	stalls := wait.WatchStalls(t)
	relay, err := testbed.NewBeforeMoves(nodes[0].Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	peers := map[string]*testbed.Peer{}
	for name, node := range map[string]int{"bob": 1, "carol": 2, "old": 0} {
		part := atLeisure(testbed.Part{Room: "room", Identity: name, Loads: []testbed.Load{body(1, 1)}, Receive: true,
			Record: true})
		if name == "old" {
			part.URL = relay.URL
		}
		peers[name] = join(t, nodes[node], part)
	}
	t.Cleanup(func() {
		_ = peers["old"].Session.Close()
		relay.Close()
	})
	flow := func(what string) {
		t.Helper()
		for name, p := range peers {
			for other := range peers {
				before := frames(p, tile(other, "body", 0))
				wait.Until(t, fmt.Sprintf("%s has frames of %s %s", name, other, what), func() bool {
					return name == other || frames(p, tile(other, "body", 0)) > before+10
				})
			}
		}
	}
	flow("before the drain")
	for _, p := range peers {
		p.ResetGaps()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	nodes[0].Server.Drain(ctx)
	flow("after the drain")
	old := peers["old"]
	if err := old.Session.Err(); err != nil {
		t.Fatalf("the old client's session has ended: %v", err)
	}
	if n, left := old.Count("moved"), peers["bob"].Count("left"); n != 0 || left != 0 {
		t.Errorf("the old client has moved %d times, %d participants have left", n, left)
	}
	gap := max(old.Tile(tile("bob", "body", 0)).LongestGap, peers["bob"].Tile(tile("old", "body", 0)).LongestGap)
	if gap > time.Second && stalls.Longest() < stalled {
		t.Errorf("the old client is without frames, or sends none, for %v", gap)
	}
	for _, pair := range [][2]string{{"bob", "carol"}, {"carol", "bob"}} {
		lost := repaired(func() int64 { return missing(peers[pair[0]].Arrivals(), pair[1]) })
		if lost != 0 && stalls.Longest() < stalled {
			t.Errorf("%s misses %d frames of %s", pair[0], lost, pair[1])
		}
	}
	t.Logf("the longest time without a frame is %v, the machine stalled for %v", gap, stalls.Longest())
}

// TestDrainMovesClients: the clients of a node that drains continue on another node, their sessions are not
// interrupted, and receivers on the former, the next and a third node miss no frame.
func TestDrainMovesClients(t *testing.T) {
	nodes, m := startCluster(t, unhurried, "a@eu", "b@us", "c@asia"), meeting{}
	for name, node := range map[string]int{"alice": 0, "dave": 0, "bob": 1, "carol": 2} {
		m.attend(t, nodes[node], name)
	}
	if lost := m.drain(t, nodes[0], "alice", "dave"); lost != 0 {
		t.Errorf("%d frames are lost", lost)
	}
	for name, p := range m {
		if n := p.Count("left"); n != 0 {
			t.Errorf("%s was told of %d participants that have left", name, n)
		}
	}
}

// TestDrainOfTheOnlyNode: all clients are on the node that drains, and the room is on no other node. If the room of the
// next node is late, packets arrive on a connection before their tracks are bound, and wait for repairTime.
func TestDrainOfTheOnlyNode(t *testing.T) {
	nodes, m := startCluster(t, unhurried, "a", "b", "c"), meeting{}
	m.attend(t, nodes[0], "alice")
	home := gathered(t, nodes, "room")
	for _, name := range []string{"bob", "carol"} {
		m.attend(t, home, name)
	}
	if lost := m.drain(t, home, "alice", "bob", "carol"); lost != 0 {
		t.Errorf("%d frames are lost", lost)
	}
}

// repaired waits until no frame is missing, for the time in which frames are repaired, and returns the number of those
// that are missing.
func repaired(missing func() int64) (n int64) {
	wait.For(2*repairTime, func() bool {
		n = missing()
		return n == 0
	})
	return n
}

// missing returns the number of frames of a publisher without an arrival between the first and the last one, except for
// the last few, which may be under way.
func missing(arrivals []testbed.Arrival, of string) int64 {
	var numbers []int64
	for _, a := range arrivals {
		if a.Track.Participant == of {
			numbers = append(numbers, a.Number)
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	numbers = numbers[:max(1, len(numbers)-5)]
	return numbers[len(numbers)-1] - numbers[0] + 1 - int64(len(numbers))
}

// nodeProcess is a node of a cluster in a process of its own.
type nodeProcess struct {
	command *exec.Cmd
	ended   chan struct{}
	url     string
}

// startNode starts a node that joins the cluster of the given nodes. The process ends with the test.
func startNode(t *testing.T, directory string, nodes []*testbed.Conference) *nodeProcess {
	t.Helper()
	url := "embedded://:0"
	for _, n := range nodes {
		url += fmt.Sprintf(",127.0.0.1:%d", n.Server.RoutePort())
	}
	log := filepath.Join(t.TempDir(), "log")
	p := &nodeProcess{ended: make(chan struct{})}
	p.command = exec.Command(filepath.Join(program.Static().Folder(t, "volsfu"), "volsfu"), "serve", "--dev",
		"--listen", "127.0.0.1:0", "--admin-listen", "", "--media-address", "127.0.0.1", "--media-port", "0",
		"--cluster", url, "--cluster-port", "0", "--cluster-directory", directory,
		"--log-file", log, "--log-format", "json", "--server-nice", "0",
		"--forward-congestion-min-bps", "100000000", "--forward-congestion-start-bps", "100000000",
		"--forward-queue-budget", signal.MaxDeadline.String())
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if text, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("log of the node in %s:\n%s", directory, text)
		}
	})
	wait.Until(t, "the node is ready", func() bool {
		text, _ := os.ReadFile(log)
		address := regexp.MustCompile(`"(ws://127\.0\.0\.1:\d+)`).FindSubmatch(text)
		if address == nil || !bytes.Contains(text, []byte("volsfu is ready")) {
			return false
		}
		p.url = string(address[1])
		return true
	})
	return p
}

// kill ends the process at once.
func (p *nodeProcess) kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// TestClientsOfAKilledNodeResume: a node is killed. Its client resumes on another node, and the others notice nothing
// but a gap.
func TestClientsOfAKilledNodeResume(t *testing.T) {
	directory := t.TempDir()
	nodes := startClusterIn(t, directory, unhurried, "a@eu", "b@us")
	authority, err := certificate.OpenAuthority(directory, "testbed", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(directory, "c")
	if err := authority.Issue(at, "c", "asia", time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	killed := startNode(t, at, nodes)
	there := testbed.Attend(killed.url)
	defer there.Close()
	wait.Until(t, "the node knows the others", func() bool {
		raw := dialRaw(t, killed.url)
		defer raw.close()
		joined := raw.join(&signal.Join{Version: 1, Room: "hall", Identity: "visitor"})
		raw.send(&signal.Leave{})
		return len(joined.Nodes) == 2
	})
	carol := observe(t, nodes[0], "carol")
	bob := join(t, nodes[1], atLeisure(testbed.Part{Room: "room", Identity: "bob",
		Loads: []testbed.Load{body(1, 1)}, Receive: true}))
	alice := join(t, there, atLeisure(testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{body(1, 1)}, Receive: true}))
	wait.Until(t, "media flows both ways", func() bool {
		return frames(alice, tile("bob", "body", 0)) > 5 && frames(bob, tile("alice", "body", 0)) > 5
	})
	carol.flow("alice", "body", 1)
	carol.flow("bob", "body", 1)
	offers := carol.offers()
	killed.kill()
	wait.Until(t, "alice resumes", func() bool {
		if err := alice.Session.Err(); err != nil {
			t.Fatal(err)
		}
		return alice.Count("resumed") > 0
	})
	toBob, toAlice := frames(bob, tile("alice", "body", 0)), frames(alice, tile("bob", "body", 0))
	wait.Until(t, "media flows both ways again", func() bool {
		return frames(bob, tile("alice", "body", 0)) > toBob+10 && frames(alice, tile("bob", "body", 0)) > toAlice+10
	})
	carol.flow("alice", "body", 1)
	if n := carol.offers() - offers; n != 0 {
		t.Errorf("carol gets %d offers", n)
	}
	if n := bob.Count("left") + carol.Count(signal.TypeParticipantLeft); n != 0 {
		t.Errorf("bob and carol were told %d times that a participant has left", n)
	}
	if err := errors.Join(alice.Failure(), bob.Failure()); err != nil {
		t.Error(err)
	}
}
