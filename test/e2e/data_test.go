package e2e

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// dataPublisher is a client that publishes over a data channel, like web pages.
type dataPublisher struct {
	raw     *raw
	pc      *webrtc.PeerConnection
	channel *webrtc.DataChannel
	open    chan struct{}
}

// publishData joins with one publication and waits until its channel is open.
func publishData(t *testing.T, url, identity string, p volumetric.Publication) *dataPublisher {
	t.Helper()
	d := &dataPublisher{raw: dialRaw(t, url), open: make(chan struct{})}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	var err error
	if d.pc, err = webrtc.NewAPI(webrtc.WithSettingEngine(settings)).NewPeerConnection(webrtc.Configuration{}); err !=
		nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.pc.Close()
		d.raw.close()
	})
	ordered := false
	if d.channel, err = d.pc.CreateDataChannel(p.Name, &webrtc.DataChannelInit{Ordered: &ordered}); err != nil {
		t.Fatal(err)
	}
	d.channel.OnOpen(func() { close(d.open) })
	d.raw.join(&signal.Join{Version: 1, Room: "lab", Identity: identity, DataChannel: true,
		Publications: []volumetric.Publication{p}})
	offer := expectMessage[*signal.Offer](d.raw)
	if len(offer.Media) != 0 {
		t.Errorf("lines are offered for %+v, expected none", offer.Media)
	}
	if err := d.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: offer.SDP}); err !=
		nil {
		t.Fatal(err)
	}
	answer, err := d.pc.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	gathered := webrtc.GatheringCompletePromise(d.pc)
	if err := d.pc.SetLocalDescription(answer); err != nil {
		t.Fatal(err)
	}
	<-gathered
	d.raw.send(&signal.Answer{Offer: offer.Offer, SDP: d.pc.LocalDescription().SDP})
	go d.follow()
	select {
	case <-d.open:
	case <-time.After(patience):
		t.Fatal("the data channel does not open")
	}
	return d
}

// follow adds the server's candidates until the websocket ends.
func (d *dataPublisher) follow() {
	for {
		_, data, err := d.raw.conn.ReadMessage()
		if err != nil {
			return
		}
		if m, err := signal.DecodeFromServer(data); err == nil {
			if c, ok := m.(*signal.Candidate); ok && c.Candidate != "" {
				_ = d.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: c.Candidate, SDPMid: &c.MID})
			}
		}
	}
}

// send sends a frame in its chunks.
func (d *dataPublisher) send(t *testing.T, c payload.Chunk, data []byte) {
	t.Helper()
	c.Length = uint32(len(data))
	for i := range payload.Chunks(len(data)) {
		c.Index, c.Data = uint16(i), data[i*payload.ChunkSize:min((i+1)*payload.ChunkSize, len(data))]
		if err := d.channel.Send(c.Append(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPublishingOverADataChannel checks that frames published over a data channel are received unchanged like all
// others, and that invalid messages have no effect.
func TestPublishingOverADataChannel(t *testing.T) {
	c := startConference(t)
	body := testbed.Load{Name: "body", Tiles: 2, Qualities: 1, FrameBytes: 1000, Rate: 30}.Publication()
	page := publishData(t, c.Server.URL(), "page", body)
	type frame struct {
		number uint32
		tile   int
	}
	got := make(map[frame][]byte)
	watcher := joinAs(t, client.Config{URL: c.Server.URL(), Room: "lab", Identity: "eye", Receive: true})
	random := rand.New(rand.NewPCG(1, 2))
	sizes := []int{100, 70_000, 0, payload.ChunkSize}
	sent := make(map[frame][]byte)
	deadline := time.Now().Add(4 * patience)
	for number := uint32(1); len(got) < 8; number++ {
		if time.Now().After(deadline) {
			t.Fatalf("%d frames arrived", len(got))
		}
		for tile := range 2 {
			data := make([]byte, sizes[random.IntN(len(sizes))])
			for i := range data {
				data[i] = byte(random.Uint32())
			}
			prefix := payload.Prefix{FourCC: volumetric.FourCC{'r', 'a', 'w', '1'},
				Capture: time.Unix(1700000000+int64(number), 0)}
			whole := append(prefix.AppendTo(nil), data...)
			sent[frame{number, tile}] = data
			page.send(t, payload.Chunk{Prefixed: true, Tile: uint16(tile), Frame: number, Timestamp: number * 3000},
				whole)
		}
		if err := page.channel.Send([]byte("nonsense")); err != nil {
			t.Fatal(err)
		}
		for drained := false; !drained; {
			select {
			case f := <-watcher.Frames():
				got[frame{uint32(f.Number), f.Track.Tile}] = bytes.Clone(f.Data)
			case <-time.After(50 * time.Millisecond):
				drained = true
			}
		}
	}
	for f, data := range got {
		if !bytes.Equal(data, sent[f]) {
			t.Errorf("frame %d of tile %d has %d bytes, expected the %d that were sent", f.number, f.tile, len(data),
				len(sent[f]))
		}
	}
}
