package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/admin"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// startNodes starts two nodes of a cluster in different regions, and waits until both know each other: a node that
// knows no other one moves no client.
func startNodes(t *testing.T) []*testbed.Conference {
	t.Helper()
	nodes, err := testbed.NewCluster(t.TempDir(), zap.NewNop(), testbed.Unhurried, "a@eu", "b@us")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		t.Cleanup(node.Close)
	}
	for _, node := range nodes {
		wait.Until(t, "the nodes know each other", func() bool {
			response, err := http.Get("http://" + node.Server.AdminAddress() + "/admin/v1/nodes")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			var list struct{ Nodes []admin.NodeState }
			if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
				t.Fatal(err)
			}
			return len(list.Nodes) == len(nodes)
		})
	}
	return nodes
}

// TestUnityNativeMoves drains the node of a program in C# that uses the C library: the program continues on the other
// node. It is not interrupted, no frame comes to it twice, and its own frames go on.
func TestUnityNativeMoves(t *testing.T) {
	long.Test(t)
	core, library := unityCore(t), nativeLibrary(t)
	nodes := startNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bob, err := nodes[1].Join(ctx, testbed.Part{
		Room: "room", Identity: "bob", Receive: true,
		Loads: []testbed.Load{{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 1000, Rate: 10}},
	})
	if err != nil {
		t.Fatal(err)
	}
	command := nativeCommand(t, core, library, "move", nodes[0].Server.URL(), "room")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "receiving" {
		t.Fatalf("the program printed %q, expected receiving", lines.Text())
	}
	nodes[0].Server.Drain(ctx)
	var got struct{ Moved, Interrupted, Repeated int }
	if !lines.Scan() {
		t.Fatal("the program ended before the move")
	}
	if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
		t.Fatalf("%v: %s", err, lines.Bytes())
	}
	if got.Moved != 1 || got.Interrupted != 0 || got.Repeated != 0 {
		t.Errorf("the program has moved %d times, was interrupted %d times, and %d frames came twice, expected 1, 0, 0",
			got.Moved, got.Interrupted, got.Repeated)
	}
	own := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "csharp", Publication: "body"}}
	complete := func() (n int64) {
		for _, s := range bob.Session.Stats() {
			if s.Track.TileRef == own {
				n += s.Complete
			}
		}
		return n
	}
	before := complete()
	wait.Until(t, "frames of the program go on", func() bool { return complete() > before+5 })
	if err := stdin.Close(); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}

// TestUnitySignallingMoves drains the node of a room: a program with SignallingClient continues on the other node, and
// is not interrupted.
func TestUnitySignallingMoves(t *testing.T) {
	long.Test(t)
	core := unityCore(t)
	nodes := startNodes(t)
	ada := startUnity(t, nil, core, "signalling", nodes[0].Server.URL(), "room", "ada", "", "watch")
	if got := ada.await(t, "joined "); got != "room ada new" {
		t.Fatalf("ada joined as %q, expected room ada new", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ada.do("")
	nodes[0].Server.Drain(ctx)
	if got := ada.await(t, "moved "); got != nodes[1].Server.URL() {
		t.Errorf("ada moved to %q, expected %q", got, nodes[1].Server.URL())
	}
	if got := ada.await(t, "joined "); got != "room ada resumed" {
		t.Errorf("ada joined as %q after the move, expected room ada resumed", got)
	}
	if lines := ada.said("interrupted"); len(lines) > 0 {
		t.Errorf("ada was interrupted: %q", lines)
	}
	ada.do("leave")
	ada.await(t, "ended left")
}

// TestUnitySignallingMovesWithTwoConnections drains the node of a program with SignallingClient and a peer connection
// of its own, which has a second one during the move: every frame arrives over one of the two.
func TestUnitySignallingMovesWithTwoConnections(t *testing.T) {
	long.Test(t)
	core := unityCore(t)
	nodes := startNodes(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := nodes[1].Join(ctx, testbed.Part{
		Room: "room", Identity: "bob",
		Loads: []testbed.Load{{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 1000, Rate: 30}},
	}); err != nil {
		t.Fatal(err)
	}
	before, after := newUnityConnection(t, "1"), newUnityConnection(t, "2")
	handle := func(u *unityPuppet, line string) {
		before.handle(u, line)
		after.handle(u, line)
	}
	ada := startUnity(t, handle, core, "signalling", nodes[0].Server.URL(), "room", "ada", "", "both")
	wait.Until(t, "frames arrive", func() bool { return len(before.received()) > 10 })
	ada.do("")
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		nodes[0].Server.Drain(ctx)
	}()
	if got := ada.await(t, "joined "); got != "room ada resumed beside 1" {
		t.Errorf("ada joined as %q, expected room ada resumed beside 1", got)
	}
	wait.Until(t, "frames arrive over the second connection", func() bool { return len(after.received()) > 5 })
	ada.say("leaveformer")
	ada.await(t, "over 1")
	over := len(after.received())
	wait.Until(t, "frames go on", func() bool { return len(after.received()) > over+10 })
	frames := before.received()
	maps.Copy(frames, after.received())
	numbers := slices.Sorted(maps.Keys(frames))
	if first, last := numbers[0], numbers[len(numbers)-1]; int(last-first)+1 != len(numbers) {
		t.Errorf("%d of the frames %d to %d arrived, expected all", len(numbers), first, last)
	}
	for _, line := range []string{"interrupted", "ended", "failed", "unreadable"} {
		if lines := ada.said(line); len(lines) > 0 {
			t.Errorf("ada was told %s %q", line, lines)
		}
	}
	<-drained
	ada.do("leave")
	ada.await(t, "ended left")
}

// TestUnitySignallingOrder cuts the websocket of a program in C# to the node of its session: the session resumes there.
// If that address does not exist any more, the program asks the other node, which knows another address of the first.
func TestUnitySignallingOrder(t *testing.T) {
	core := unityCore(t)
	nodes := startNodes(t)
	wire := newUnityWire(t, strings.TrimPrefix(nodes[0].Server.URL(), "ws://"))
	ada := startUnity(t, nil, core, "signalling", "ws://"+wire.listener.Addr().String(), "room", "ada", "", "watch")
	ada.await(t, "joined room ada new")
	ada.do("")
	wire.cut()
	ada.await(t, "joined room ada resumed")
	if lines := ada.said("moved "); len(lines) > 0 {
		t.Errorf("ada moved to %q, expected the same address", lines)
	}
	ada.do("")
	if err := wire.listener.Close(); err != nil {
		t.Fatal(err)
	}
	wire.cut()
	if got := ada.await(t, "moved "); got != nodes[0].Server.URL() {
		t.Errorf("ada moved to %q, expected %q", got, nodes[0].Server.URL())
	}
	ada.await(t, "joined room ada resumed")
	ada.do("leave")
	ada.await(t, "ended left")
}
