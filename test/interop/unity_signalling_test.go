package interop

import (
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// startUnityConference starts a server and all its clients, which end with the test. Links count as wide, even if
// reports from a busy machine are late.
func startUnityConference(t *testing.T, adjust ...func(*config.Config)) *testbed.Conference {
	t.Helper()
	settings := testbed.ConferenceConfig()
	settings.Forward.Congestion.Min, settings.Forward.Congestion.Start = testbed.Everything, testbed.Everything
	for _, f := range adjust {
		f(&settings)
	}
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func joinUnityConference(t *testing.T, c *testbed.Conference, part testbed.Part) *testbed.Peer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p, err := c.Join(ctx, part)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unityMedia is a peer connection of a program of the core, which has none: it answers the offers that the program
// passes on, and sends the arrival reports from which the server estimates the link.
type unityMedia struct {
	transport.NoOpSink
	t    *testing.T
	peer *transport.Peer
	// connection is the number of the connection in the program's output.
	connection string

	mu       sync.Mutex
	recorder *feedback.TransportRecorder
	// frames has the numbers of the frames of which a packet has arrived.
	frames map[uint32]bool
}

func newUnityMedia(t *testing.T) *unityMedia { return newUnityConnection(t, "1") }

func newUnityConnection(t *testing.T, number string) *unityMedia {
	t.Helper()
	settings := transport.ClientConfig()
	settings.Address = "127.0.0.1"
	endpoint, err := transport.Listen(settings)
	if err != nil {
		t.Fatal(err)
	}
	m := &unityMedia{
		t: t, connection: number, frames: make(map[uint32]bool),
		recorder: feedback.NewTransportRecorder(feedback.DefaultConfig().Transport),
	}
	if m.peer, err = endpoint.NewPeer(m); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.peer.Close()
		_ = endpoint.Close()
	})
	return m
}

// RTP implements transport.Sink. Only the numbers of frames are read.
func (m *unityMedia) RTP(_ uint32, packet []byte, info *transport.PacketInfo) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if number, ok := feedback.TransportSequence(packet, m.peer.TransportSequenceID()); ok {
		m.recorder.Received(number, len(packet), info.At)
	}
	var p rtp.Packet
	var d payload.Descriptor
	if err := p.Unmarshal(packet); err != nil {
		return
	}
	if _, err := d.Unmarshal(p.Payload); err == nil {
		m.frames[d.Frame] = true
	}
}

// received returns the numbers of the frames of which a packet has arrived.
func (m *unityMedia) received() map[uint32]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.frames)
}

// Flush implements transport.Sink.
func (m *unityMedia) Flush() {
	m.mu.Lock()
	report := m.recorder.AppendReports(nil, 1, 0, time.Now())
	m.mu.Unlock()
	if len(report) == 0 {
		return
	}
	packet := rtcp.RawPacket(report)
	// The next reports make up for a lost one.
	_ = m.peer.WriteRTCP([]rtcp.Packet{&packet})
}

// handle answers offers, adds the candidates in the program's output, and passes on candidates of the connection.
func (m *unityMedia) handle(u *unityPuppet, line string) {
	words := strings.Fields(line)
	kind := words[0]
	if last := words[len(words)-1]; last != m.connection {
		kind = ""
	}
	switch kind {
	case "offer":
		if _, err := m.peer.Offered(unityDecode(words[3])); err != nil {
			m.t.Errorf("offer %s: %v", words[1], err)
			return
		}
		answer, err := m.peer.Answer()
		if err != nil {
			m.t.Errorf("answer %s: %v", words[1], err)
			return
		}
		u.say("answer", words[1], unityEncode(answer), m.connection)
	case "candidate":
		// The server may send candidates that cannot be used.
		_ = m.peer.AddCandidate(transport.Candidate{Candidate: unityDecode(words[1]), MID: unityDecode(words[2])})
	}
	for _, e := range m.peer.Events() {
		if c := e.Candidate; c != nil {
			u.say("candidate", unityEncode(c.Candidate), unityEncode(c.MID), strconv.Itoa(c.LineIndex), m.connection)
		}
	}
}

func unityEncode(text string) string { return "." + base64.StdEncoding.EncodeToString([]byte(text)) }

func unityDecode(word string) string {
	text, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(word, "."))
	return string(text)
}

// TestUnitySignalling has a receiver in C# take part in a conference of a real server: its peer connection is Go's, all
// its messages are its own.
func TestUnitySignalling(t *testing.T) {
	core := unityCore(t)
	c := startUnityConference(t)
	load := testbed.Load{Name: "body", Tiles: 2, Qualities: 3, FrameBytes: 4000, Step: 2, Rate: 30}
	joinUnityConference(t, c, testbed.Part{Room: "room", Identity: "alice", Loads: []testbed.Load{load}})
	ada := startUnity(t, newUnityMedia(t).handle, core, "signalling", c.Server.URL(), "room", "ada", "", "receive")
	if got := ada.await(t, "joined "); got != "room ada new" {
		t.Errorf("joined %q", got)
	}
	ada.await(t, "sending alice body 0 2 auto")
	ada.await(t, "sending alice body 1 2 auto")

	ada.do("choose alice body 1 0")
	ada.await(t, "done "+ada.await(t, "asked "))
	ada.await(t, "sending alice body 1 0 choice")
	ada.do("choose alice body -1 1")
	ada.await(t, "sending alice body 0 1 choice")
	ada.await(t, "sending alice body 1 1 choice")
	ada.do("choose alice body 0 -1")
	ada.await(t, "sending alice body 0 -1 choice")
	ada.do("choose alice body -1 -2")
	ada.await(t, "sending alice body 0 2 auto")
	ada.do("choose alice body 7 0")
	ada.await(t, "failed "+ada.await(t, "asked ")+" not_found")
	ada.do("limits 50000000 0")
	ada.await(t, "done "+ada.await(t, "asked "))

	ada.do("time")
	microseconds, err := strconv.ParseInt(ada.await(t, "time "), 10, 64)
	if skew := time.Since(time.UnixMicro(microseconds)); err != nil || skew.Abs() > patience {
		t.Errorf("the server's clock is %v behind (%v)", skew, err)
	}
	ada.do("participants")
	if got := ada.await(t, "participants "); got != "alice=body:video/volumetric:2x3:0," {
		t.Errorf("participants: %q", got)
	}
}

// TestUnitySignallingCompany has a client in C# that only watches and publishes: it is notified of the others' actions,
// and the others of its.
func TestUnitySignallingCompany(t *testing.T) {
	core := unityCore(t)
	c := startUnityConference(t)
	ada := startUnity(t, newUnityMedia(t).handle, core, "signalling", c.Server.URL(), "room", "ada", "", "none", "desk")
	ada.await(t, "joined room ada new")
	bob := watchUnity(t, c, "bob")
	ada.await(t, "came bob")
	if got := bob.Participants(); len(got) != 1 || got[0].Identity != "ada" || len(got[0].Publications) != 1 ||
		len(got[0].Publications[0].Tiles) != 2 {
		t.Fatalf("bob sees %+v", got)
	}
	if box := bob.Participants()[0].Publications[0].Tiles[1].Box; box.Min != [3]float32{-0.5, 1, -0.25} ||
		box.Max != [3]float32{0.5, 2, 0.25} {
		t.Errorf("bob sees the box %+v", box)
	}
	ada.do("pose desk 2.5")
	awaitUnityEvent(t, bob, func(e client.PoseChanged) bool {
		return e.Pose.Position[0] == 2.5 && e.Pose.Scale == 2 && e.Publication.Publication == "desk"
	})
	ada.do("publish chair 1 2")
	ada.await(t, "done "+ada.await(t, "asked "))
	awaitUnityEvent(t, bob, func(e client.Published) bool {
		return e.Publication.Name == "chair" && len(e.Publication.Qualities) == 2
	})
	ada.do("unpublish desk")
	ada.await(t, "done "+ada.await(t, "asked "))
	awaitUnityEvent(t, bob, func(e client.Unpublished) bool { return e.Publication.Publication == "desk" })

	ada.do("participants")
	load := testbed.Load{Name: "body", Tiles: 1, Qualities: 1, FrameBytes: 1000, Rate: 30}
	publication := load.Publication()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	publisher, err := bob.Publish(ctx, publication)
	if err != nil {
		t.Fatal(err)
	}
	ada.await(t, "published bob body:video/volumetric:1x1:0")
	publisher.SetPose(client.Pose{Position: [3]float64{-3.5, 0, 0}})
	ada.await(t, "pose bob body -3.5")
	if err := bob.Unpublish(ctx, "body"); err != nil {
		t.Fatal(err)
	}
	ada.await(t, "unpublished bob body")
	_ = bob.Close()
	ada.await(t, "left bob")
	ada.do("leave")
	ada.await(t, "ended left")
}

// watchUnity joins a room as a receiver whose media is ignored.
func watchUnity(t *testing.T, c *testbed.Conference, identity string) *client.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := client.Join(ctx, client.Config{URL: c.Server.URL(), Room: "room", Identity: identity, Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// awaitUnityEvent waits for an event of the session, ignoring others.
func awaitUnityEvent[E client.Event](t *testing.T, s *client.Session, match func(E) bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-s.Events():
			if e, ok := event.(E); ok && match(e) {
				return
			}
		case <-timeout:
			var want E
			t.Fatalf("timed out waiting for %T", want)
		}
	}
}

// TestUnityViewpointsCount has a receiver in C# look at one of two tiles, on a link that cannot carry both, and step
// back until it sees both.
func TestUnityViewpointsCount(t *testing.T) {
	core := unityCore(t)
	c := startUnityConference(t, func(c *config.Config) {
		c.Forward.Congestion = config.DefaultConfig().Forward.Congestion
	})
	near := volumetric.BoundingBox{Min: [3]float32{-0.5, -0.5, -0.5}, Max: [3]float32{0.5, 0.5, 0.5}}
	behind := volumetric.BoundingBox{Min: [3]float32{-0.5, -0.5, 5}, Max: [3]float32{0.5, 0.5, 6}}
	newUnityPublisher(t, c, near, behind)
	ada := startUnity(t, newUnityMedia(t).handle, core, "signalling", c.Server.URL(), unityRoom, "ada", "", "receive")
	ada.await(t, "sending gopher-7 body 0 ")
	// A tile needs 3.7 and 7.5 Mbit/s at the two qualities.
	ada.do("limits 9000000 0")
	ada.say("viewpoint 0 0 2.5")
	ada.await(t, "done ")
	ada.await(t, "sending gopher-7 body 1 -1 unseen")
	ada.do("viewpoint 0 0 12")
	eventually(t, "the other tile is sent, at either quality", func() bool {
		return len(ada.said("sending gopher-7 body 1 0 ")) > 0 || len(ada.said("sending gopher-7 body 1 1 ")) > 0
	})
	ada.do("viewpoint 0 0 2.5")
	ada.await(t, "sending gopher-7 body 1 -1 unseen")
	if failed := ada.said("failed "); len(failed) > 0 {
		t.Errorf("the server refuses: %q", failed)
	}
}

// TestUnitySignallingResumes cuts the websocket of a client in C#: the others do not see it leave, and its choices
// persist.
func TestUnitySignallingResumes(t *testing.T) {
	core := unityCore(t)
	c := startUnityConference(t)
	joinUnityConference(t, c, testbed.Part{Room: "room", Identity: "alice",
		Loads: []testbed.Load{{Name: "body", Tiles: 1, Qualities: 2, FrameBytes: 2000, Rate: 30}}})
	bob := joinUnityConference(t, c, testbed.Part{Room: "room", Identity: "bob"})
	wire := newUnityWire(t, strings.TrimPrefix(c.Server.URL(), "ws://"))
	ada := startUnity(t, newUnityMedia(t).handle, core, "signalling", "ws://"+wire.listener.Addr().String(), "room",
		"ada", "", "receive")
	ada.await(t, "sending alice body 0 1 auto")
	ada.do("choose alice body 0 0")
	ada.await(t, "sending alice body 0 0 choice")
	for range 3 {
		ada.do("participants")
		wire.cut()
		ada.await(t, "interrupted ")
		ada.await(t, "joined room ada resumed")
	}
	ada.do("choose alice body 0 1")
	ada.await(t, "sending alice body 0 1 choice")
	if left := bob.Count("left"); left != 0 {
		t.Errorf("bob saw %d departures", left)
	}
}

// unityWire relays TCP connections to a server, and can be cut.
type unityWire struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newUnityWire(t *testing.T, target string) *unityWire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &unityWire{listener: listener, target: target, conns: make(map[net.Conn]bool)}
	w.running.Add(1)
	go w.accept()
	t.Cleanup(func() {
		_ = listener.Close()
		w.cut()
		w.running.Wait()
	})
	return w
}

func (w *unityWire) accept() {
	defer w.running.Done()
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns[near], w.conns[far] = true, true
		w.mu.Unlock()
		w.running.Add(2)
		go w.carry(near, far)
		go w.carry(far, near)
	}
}

// carry copies in one direction, and closes both connections when either one ends.
func (w *unityWire) carry(to, from net.Conn) {
	defer w.running.Done()
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, to)
	delete(w.conns, from)
}

func (w *unityWire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// TestUnitySignallingTokens checks that a token admits its identity, and that a client without one does not retry.
func TestUnitySignallingTokens(t *testing.T) {
	core := unityCore(t)
	var keys auth.Config
	c := startUnityConference(t, func(c *config.Config) {
		c.Server.Dev = false
		c.Auth.Keys = []string{"test:" + strings.Repeat("k", auth.MinSecretBytes)}
		keys = c.Auth
	})
	ring, err := auth.NewKeyring(keys)
	if err != nil {
		t.Fatal(err)
	}
	token, err := ring.Mint("test", auth.Claims{Identity: "ada", Room: "lab", Publish: true, Subscribe: true,
		Expires: time.Now().Add(time.Hour)}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	startUnity(t, nil, core, "signalling", c.Server.URL(), "", "", token, "none").await(t, "joined lab ada new")
	startUnity(t, nil, core, "signalling", c.Server.URL(), "", "", "", "none").await(t, "ended unauthorized")
	startUnity(t, nil, core, "signalling", c.Server.URL(), "other", "", token, "none").await(t, "ended forbidden")
}
