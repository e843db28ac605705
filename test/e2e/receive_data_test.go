package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// dataWatcher is a client that receives frames over data channels, like pages in browsers without access to encoded
// frames. Pion's peer connection replaces the browser's.
type dataWatcher struct {
	t       *testing.T
	raw     *raw
	pc      *webrtc.PeerConnection
	writing sync.Mutex

	mu sync.Mutex
	// tiles are the assignments by label, frames the newest frames by tile. released has the labels that had an
	// assignment and have none: a frame that was under way may still arrive.
	tiles     map[string]volumetric.TileRef
	released  map[string]bool
	frames    map[volumetric.TileRef][]payload.Chunk
	bandwidth *signal.Bandwidth
	// dropped is the number of frames that the server reports as dropped.
	dropped int
	// highest is the highest estimate that the server has sent, and least the lowest of the reported total rates.
	highest, least volumetric.Bitrate
	media          []signal.Media
	// stopped blocks the reading of all channels while it is locked.
	stopped sync.RWMutex
}

// watchData joins and handles the server's messages. Its media uses a network of the test if conn is not nil.
func watchData(t *testing.T, url, identity string, conn net.PacketConn) *dataWatcher {
	t.Helper()
	w := &dataWatcher{
		t: t, raw: dialRaw(t, url), tiles: make(map[string]volumetric.TileRef),
		released: make(map[string]bool), frames: make(map[volumetric.TileRef][]payload.Chunk),
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.LoggerFactory = &logging.DefaultLoggerFactory{DefaultLogLevel: logging.LogLevelDisabled}
	if conn != nil {
		settings.SetICEUDPMux(webrtc.NewICEUDPMux(nil, conn))
	}
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.pc, err = webrtc.NewAPI(webrtc.WithSettingEngine(settings), webrtc.WithMediaEngine(engine)).NewPeerConnection(
		webrtc.Configuration{}); err != nil {
		t.Fatal(err)
	}
	followed := make(chan struct{})
	t.Cleanup(func() {
		w.raw.close()
		<-followed
		_ = w.pc.Close()
	})
	w.pc.OnDataChannel(func(c *webrtc.DataChannel) {
		assembler := payload.NewChunkAssembler(1 << 24)
		c.OnMessage(func(m webrtc.DataChannelMessage) { w.take(c.Label(), assembler, m.Data) })
	})
	w.pc.OnICECandidate(func(c *webrtc.ICECandidate) {
		if c != nil {
			w.say(&signal.Candidate{Candidate: c.ToJSON().Candidate, MID: "0"})
		}
	})
	w.raw.join(&signal.Join{Version: 1, Room: "lab", Identity: identity, Receive: true, ReceiveData: true})
	go func() {
		defer close(followed)
		w.follow()
	}()
	return w
}

// say sends a message, which is lost if the websocket has ended.
func (w *dataWatcher) say(m signal.Message) {
	data, err := signal.Encode(m)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.writing.Lock()
	defer w.writing.Unlock()
	_ = w.raw.conn.WriteMessage(1, data)
}

// follow handles the server's messages until the websocket ends.
func (w *dataWatcher) follow() {
	for {
		_, data, err := w.raw.conn.ReadMessage()
		if err != nil {
			return
		}
		m, err := signal.DecodeFromServer(data)
		if err != nil {
			w.t.Error(err)
			return
		}
		switch m := m.(type) {
		case *signal.Offer:
			w.answer(m)
		case *signal.Candidate:
			if m.Candidate != "" {
				_ = w.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: m.Candidate, SDPMid: &m.MID})
			}
		case *signal.Assignments:
			w.assigned(m)
		case *signal.Delivery:
			w.mu.Lock()
			for _, d := range m.Dropped {
				w.dropped += d.Frames
			}
			w.mu.Unlock()
		case *signal.Bandwidth:
			w.mu.Lock()
			if w.bandwidth == nil || m.Wanted < w.least {
				w.least = m.Wanted
			}
			w.bandwidth, w.highest = m, max(w.highest, m.Estimate)
			w.mu.Unlock()
		}
	}
}

func (w *dataWatcher) answer(m *signal.Offer) {
	w.mu.Lock()
	w.media = m.Media
	w.mu.Unlock()
	if err := w.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: m.SDP}); err != nil {
		w.t.Error(err)
		return
	}
	answer, err := w.pc.CreateAnswer(nil)
	if err == nil {
		err = w.pc.SetLocalDescription(answer)
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	w.say(&signal.Answer{Offer: m.Offer, SDP: answer.SDP})
}

func (w *dataWatcher) assigned(m *signal.Assignments) {
	acknowledged := &signal.Acknowledge{}
	w.mu.Lock()
	for _, a := range m.Assignments {
		if _, assigned := w.tiles[a.MID]; assigned {
			w.released[a.MID] = a.Track == nil
		}
		delete(w.tiles, a.MID)
		if a.Track != nil {
			w.tiles[a.MID] = *a.Track
			acknowledged.Slots = append(acknowledged.Slots, signal.SlotGeneration{MID: a.MID, Generation: a.Generation})
		}
	}
	w.mu.Unlock()
	if len(acknowledged.Slots) > 0 {
		w.say(acknowledged)
	}
}

// take processes a message of a channel.
func (w *dataWatcher) take(label string, assembler *payload.ChunkAssembler, message []byte) {
	w.stopped.RLock()
	defer w.stopped.RUnlock()
	if label == "padding" {
		return
	}
	var c payload.Chunk
	if err := c.Unmarshal(message); err != nil {
		w.t.Errorf("on %s: %v", label, err)
		return
	}
	frame, whole, err := assembler.Take(&c)
	if err != nil {
		w.t.Errorf("on %s: %v", label, err)
	}
	if !whole {
		return
	}
	frame.Data = bytes.Clone(frame.Data)
	w.mu.Lock()
	defer w.mu.Unlock()
	tile, assigned := w.tiles[label]
	if !assigned {
		if !w.released[label] {
			w.t.Errorf("a frame arrived on %s, which has never carried anything", label)
		}
		return
	}
	w.frames[tile] = append(w.frames[tile], frame)
}

// count returns the number of received frames of a tile.
func (w *dataWatcher) count(tile volumetric.TileRef) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.frames[tile])
}

// noiseRate is the frame rate of each tile that noise publishes: the largest publication here, of two tiles, is
// declared with 11 Mbit/s.
const noiseRate = 10

// noise publishes different frames with these sizes, in turn, until the test ends. It returns the sent frames.
func noise(t *testing.T, url, identity string, tiles int, sizes ...int) (sent func(number uint32, tile int) []byte) {
	t.Helper()
	body := testbed.Load{Name: "body", Tiles: tiles, Qualities: 1, FrameBytes: slices.Max(sizes),
		Rate: noiseRate}.Publication()
	session := joinAs(t, client.Config{URL: url, Room: "lab", Identity: identity,
		Publications: []volumetric.Publication{body}, MinUplink: testbed.Everything})
	content := func(number uint32, tile int) []byte {
		data := make([]byte, sizes[int(number)%len(sizes)])
		source := rand.NewChaCha8([32]byte{byte(number), byte(number >> 8), byte(tile)})
		_, _ = source.Read(data)
		return data
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		camera := time.NewTicker(time.Second / noiseRate)
		defer camera.Stop()
		for number := uint32(1); ; number++ {
			select {
			case <-stop:
				return
			case at := <-camera.C:
				for tile := range tiles {
					_, _ = session.Publisher("body").WriteFrame(tile, 0, client.OutgoingFrame{
						Number: number, Capture: at, Codec: volumetric.FourCC{'r', 'a', 'w', '1'},
						Data: content(number, tile),
					})
				}
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	return content
}

// TestReceivingOverDataChannels checks that frames arrive unchanged over channels, of an existing publication and of
// one that is added later without another offer.
func TestReceivingOverDataChannels(t *testing.T) {
	c := startConference(t, wide)
	ada := noise(t, c.Server.URL(), "ada", 2, 100, 40_000, 0, payload.ChunkSize, 70_000)
	w := watchData(t, c.Server.URL(), "page", nil)
	tileOf := func(who string, tile int) volumetric.TileRef {
		return volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: who, Publication: "body"},
			Tile: tile}
	}
	wait.Until(t, "twenty frames of both tiles have arrived",
		func() bool { return w.count(tileOf("ada", 0)) >= 20 && w.count(tileOf("ada", 1)) >= 20 })
	grace := noise(t, c.Server.URL(), "grace", 1, 5000)
	wait.Until(t, "ten frames of the later peer have arrived", func() bool { return w.count(tileOf("grace", 0)) >= 10 })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.media {
		if m.Role == signal.RoleSlot {
			t.Errorf("a line is offered for a slot: %+v", m)
		}
	}
	for tile, frames := range w.frames {
		content := map[string]func(uint32, int) []byte{"ada": ada, "grace": grace}[tile.Participant]
		for i, f := range frames {
			var prefix payload.Prefix
			data, err := prefix.Unmarshal(f.Data)
			if err != nil || !f.Prefixed || !bytes.Equal(data, content(f.Frame, tile.Tile)) {
				t.Fatalf("frame %d of %v differs from the sent one: %v", f.Frame, tile, err)
			}
			if i > 0 && int32(f.Timestamp-frames[i-1].Timestamp) == 0 {
				t.Errorf("frame %d of %v arrived twice", f.Frame, tile)
			}
		}
	}
	for label := range w.tiles {
		if !strings.HasPrefix(label, "slot-") {
			t.Errorf("a slot is called %q", label)
		}
	}
}

// TestASlowPageDoesNotDelayOthers stops reading in one of two pages for a while: the other one, and a client on media
// lines, continue, and the slow one continues with new frames when it reads again.
func TestASlowPageDoesNotDelayOthers(t *testing.T) {
	// Enough for the publisher's 5 Mbit/s on a stalled machine, and little enough for full queues after a second.
	c := startConference(t, func(c *config.Config) {
		c.Forward.Congestion.Min, c.Forward.Congestion.Start = 20e6, 20e6
	})
	noise(t, c.Server.URL(), "ada", 1, 60_000)
	tile := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: "body"}}
	slow, quick := watchData(t, c.Server.URL(), "slow", nil), watchData(t, c.Server.URL(), "quick", nil)
	wait.Until(t, "five frames have arrived on both pages",
		func() bool { return slow.count(tile) >= 5 && quick.count(tile) >= 5 })
	slow.stopped.Lock()
	reads := sync.OnceFunc(slow.stopped.Unlock)
	defer reads()
	before, at := slow.count(tile), quick.count(tile)
	slow.mu.Lock()
	already := slow.dropped
	slow.mu.Unlock()
	const missed = 20
	wait.Until(t, "frames are left out on the slow page", func() bool {
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return slow.dropped >= already+missed
	})
	wait.Until(t, "as many arrive on the other page", func() bool { return quick.count(tile) >= at+missed })
	reads()
	wait.Until(t, "frames arrive once it reads again", func() bool { return slow.count(tile) >= before+15 })
}

// TestALinkOverDataChannels has a page behind 5 Mbit/s, with a publisher of up to 14: it is sent all tiles in
// qualities that the link carries, like a client on media lines. On a stalled machine, acknowledgements that have
// waited are processed together, and a probe seems to arrive faster than the link carries it: the estimate may be too
// high for a while.
func TestALinkOverDataChannels(t *testing.T) {
	e := emulate(t, 1)
	stalls := wait.WatchStalls(t)
	const tiles, link = 4, 5e6
	load := testbed.Load{Name: "body", Tiles: tiles, Qualities: 4, FrameBytes: 15_000, Rate: 30, Step: 2.5}
	e.join(t, "delay=5ms", "delay=5ms", testbed.Part{Room: "lab", Identity: "ada", Loads: []testbed.Load{load},
		MinUplink: testbed.Everything})
	_, conn := e.link(t, "delay=10ms", "rate=5Mbit,delay=10ms")
	w := watchData(t, e.Server.URL(), "page", conn)
	// A machine that is too busy for so many packets sends some frames per second.
	for n := 10; n <= 40; n += 10 {
		for i := range tiles {
			wait.Until(t, fmt.Sprintf("%d frames of tile %d have arrived", n, i),
				func() bool { return w.count(tile("ada", "body", i)) >= n })
		}
	}
	wait.Until(t, "the link is estimated to carry at most twice its rate", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.bandwidth != nil && w.bandwidth.Estimate > 0 && w.bandwidth.Estimate <= 2*link
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	t.Logf("the highest estimate is %v, the longest stall of this machine %v", w.highest, stalls.Longest())
	if w.highest > 2*link && stalls.Longest() <= stalled {
		t.Errorf("the server has taken the link for one of up to %v", w.highest)
	}
	best, all := 0, 0
	for _, frames := range w.frames {
		for _, f := range frames {
			all++
			if f.Quality == 3 {
				best++
			}
		}
	}
	// A machine that is too busy to publish everything needs less than the link carries.
	if w.least > 2*link && best > all/4 {
		t.Errorf("%d of %d frames have the highest quality, three times the capacity of the link", best, all)
	}
}
