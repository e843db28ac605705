package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/clients/c/internal/queue"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/testbed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous is a time limit beyond any duration here.
const generous = 30 * time.Second

// open starts a server that ends with the test.
func open(t *testing.T) *testbed.Conference {
	t.Helper()
	c, err := testbed.NewConference(testbed.ConferenceConfig(), nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func enter(t *testing.T, c *testbed.Conference, identity string, limits queue.Limits) *Guest {
	t.Helper()
	g, err := Enter(
		Config{
			Config: client.Config{URL: c.Server.URL(), Room: "room", Identity: identity, Receive: true},
			Frames: limits,
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func object(tiles, qualities int) volumetric.Publication {
	return volumetric.Publication{
		Name: "object", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, FrameRate: 30,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, qualities),
	}
}

// publish writes frames of the object at 50 frames per second until the test ends, each with its
// number as its data.
func publish(t *testing.T, g *Guest) *Publisher {
	t.Helper()
	p, err := g.Publish(object(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for number := uint32(0); ; {
			err := p.Write(
				0,
				0,
				client.OutgoingFrame{
					Number:  number,
					Capture: time.Now(),
					Data:    bytes.Repeat([]byte{byte(number)}, 3000),
				},
			)
			switch {
			case err == nil:
				number++
			case !errors.Is(err, client.ErrNotConnected):
				t.Errorf("write: %v", err)
				return
			}
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		writing.Wait()
	})
	return p
}

func TestFramesAndBounds(t *testing.T) {
	c := open(t)
	publish(t, enter(t, c, "alice", queue.Limits{}))
	bob := enter(t, c, "bob", queue.Limits{Things: 4, Bytes: 1 << 20})
	newest := int64(-1)
	for range 4 {
		frame, err := bob.NextFrame(generous)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(frame.Data, bytes.Repeat([]byte{byte(frame.Number)}, 3000)) || frame.Number <= newest {
			t.Errorf("frame %d after %d has other bytes than were written, or is out of order", frame.Number, newest)
		}
		newest = frame.Number
	}
	if _, err := bob.NextFrame(generous); !errors.Is(err, ErrTooMuchHeld) {
		t.Errorf("a fifth frame: %v, expected %v", err, ErrTooMuchHeld)
	}
	// No frame is read for a while: the oldest are dropped.
	deadline := time.Now().Add(generous)
	for bob.Totals().FramesDropped < 3 {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is dropped: %+v", bob.Totals())
		}
		time.Sleep(time.Millisecond)
	}
	bob.ReleaseFrame(3000)
	frame, err := bob.NextFrame(generous)
	if err != nil || frame.Number < newest+4 {
		t.Errorf("frame %d, %v, expected one of at least %d", frame.Number, err, newest+4)
	}
	totals := bob.Totals()
	if totals.FramesTaken != 5 || totals.FramesHeld != 4 ||
		totals.FramesComplete != totals.FramesTaken+totals.FramesQueued+totals.FramesDropped {
		t.Errorf("%+v: expected 5 frames taken, 4 held, and a sum that is right", totals)
	}
}

// TestAPanicEndsOneGuest causes a panic in a goroutine that reads a channel of the session. Waiting
// calls receive the reason, and another guest continues.
func TestAPanicEndsOneGuest(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	bob := enter(t, c, "bob", queue.Limits{})
	for _, g := range []*Guest{alice, bob} {
		for event := (Event{}); event.Kind != Connected; {
			var err error
			if event, err = g.NextEvent(generous); err != nil {
				t.Fatal(err)
			}
			g.ReleaseEvent()
		}
	}
	alice.pump(func() { panic("test") })
	if _, err := alice.NextFrame(-1); !errors.Is(err, client.ErrPanicked) {
		t.Errorf("a frame: %v, expected %v", err, client.ErrPanicked)
	}
	if err := alice.SetLimits(0, 0); !errors.Is(err, client.ErrPanicked) {
		t.Errorf("limits: %v, expected %v", err, client.ErrPanicked)
	}
	alice.Close()
	publish(t, enter(t, c, "carol", queue.Limits{}))
	if _, err := bob.NextFrame(generous); err != nil {
		t.Errorf("a frame of the other guest: %v", err)
	}
}

// brokenConn is a socket with failing reads after it was broken.
type brokenConn struct {
	net.PacketConn
	broken atomic.Bool
}

func (c *brokenConn) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.PacketConn.ReadFrom(b)
	if c.broken.Load() {
		panic("test")
	}
	return n, from, err
}

// TestAPanicOfASessionIsNoLoss causes a panic in a goroutine of the session itself. Waiting calls
// must not receive a loss of the session, after which programs would reconnect.
func TestAPanicOfASessionIsNoLoss(t *testing.T) {
	c := open(t)
	socket, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn := &brokenConn{PacketConn: socket}
	g, err := Enter(
		Config{Config: client.Config{URL: c.Server.URL(), Room: "room", Identity: "alice", PacketConn: conn}},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	conn.broken.Store(true)
	if _, err := conn.WriteTo([]byte("datagram"), conn.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.NextFrame(-1); !errors.Is(err, client.ErrPanicked) || errors.Is(err, client.ErrLost) {
		t.Errorf("a frame: %v, expected %v", err, client.ErrPanicked)
	}
}

func TestStatisticsAndRoom(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	publish(t, alice)
	bob := enter(t, c, "bob", queue.Limits{})
	if _, err := bob.NextFrame(generous); err != nil {
		t.Fatal(err)
	}
	text, err := bob.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	var read statistics
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	want := volumetric.TrackRef{
		TileRef: volumetric.TileRef{
			PublicationRef: volumetric.PublicationRef{Participant: "alice", Publication: "object"},
		},
		Quality: volumetric.QualityOff,
	}
	if len(read.Tiles) != 1 || read.Tiles[0].TrackRef != want || read.Tiles[0].Packets == 0 ||
		read.Totals.Packets < read.Tiles[0].Packets {
		t.Errorf("%s: expected the packets of %v", text, want)
	}
	if written := alice.Totals().FramesWritten; written == 0 {
		t.Errorf("%d frames written, expected some", written)
	}
	text, err = bob.Room()
	if err != nil {
		t.Fatal(err)
	}
	var there room
	if err := json.Unmarshal(text, &there); err != nil {
		t.Fatal(err)
	}
	if there.Room != "room" || there.Identity != "bob" || len(there.Participants) != 1 ||
		len(there.Participants[0].Publications) != 1 {
		t.Errorf("%s: expected alice and her object", text)
	}
}

func TestOrder(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	p, err := alice.Publish(object(2, 2))
	if err != nil {
		t.Fatal(err)
	}
	write := func(tile int, quality volumetric.Quality, number uint32) error {
		return p.Write(tile, quality, client.OutgoingFrame{Number: number, Capture: time.Now()})
	}
	deadline := time.Now().Add(generous)
	for err = write(0, 0, 1<<32-1); errors.Is(err, client.ErrNotConnected) &&
		time.Now().Before(deadline); err = write(0, 0, 1<<32-1) {
		time.Sleep(time.Millisecond)
	}
	for i, step := range []struct {
		tile    int
		quality volumetric.Quality
		number  uint32
		want    error
	}{
		{0, 0, 1<<32 - 1, ErrOrder},
		{0, 0, 1<<32 - 2, ErrOrder},
		{0, 1, 7, nil}, // each track has its own order
		{1, 1, 5, nil},
		{0, 0, 2, nil}, // numbers wrap around
		{0, 0, 2, ErrOrder},
		{0, 0, 3, nil},
		{2, 0, 4, client.ErrNotPublished},
		{0, 2, 4, client.ErrNotPublished},
		{-1, -1, 4, client.ErrNotPublished},
	} {
		if err := write(step.tile, step.quality, step.number); !errors.Is(err, step.want) {
			t.Errorf("step %d: %v, expected %v", i, err, step.want)
		}
	}
	if err := p.Write(
		0,
		0,
		client.OutgoingFrame{Number: 9, Capture: time.Now(), Data: make([]byte, MaxFrameBytes+1)},
	); !errors.Is(
		err,
		ErrTooLarge,
	) {
		t.Errorf("a byte too many: %v, expected %v", err, ErrTooLarge)
	}
}

// TestVR2Gather checks that the library writes and reads VR2Gather's header.
func TestVR2Gather(t *testing.T) {
	c := open(t)
	alice, bob := enter(t, c, "alice", queue.Limits{}), enter(t, c, "bob", queue.Limits{})
	publication := object(1, 1)
	publication.VR2Gather = true
	p, err := alice.Publish(publication)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	want := client.OutgoingFrame{Capture: begin, Codec: vr2gather.CodecRawPoints, Data: []byte("a cloud")}
	for {
		if err := p.Write(0, 0, want); err != nil && !errors.Is(err, client.ErrNotConnected) {
			t.Fatal(err)
		} else if err == nil {
			want.Number++
		}
		frame, err := bob.NextFrame(20 * time.Millisecond)
		if errors.Is(err, queue.ErrEmpty) && time.Since(begin) < generous {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if frame.Codec != want.Codec || !bytes.Equal(frame.Data, want.Data) ||
			frame.Capture.UnixMilli() != begin.UnixMilli() {
			t.Errorf(
				"%s, %q of %v, expected %s, %q of %v",
				frame.Codec,
				frame.Data,
				frame.Capture,
				want.Codec,
				want.Data,
				begin,
			)
		}
		if !bytes.HasPrefix(frame.Whole, []byte("0iwc")) {
			t.Errorf(
				"on the wire the frame begins with %q, expected VR2Gather's header",
				frame.Whole[:min(4, len(frame.Whole))],
			)
		}
		return
	}
}

func TestRefusals(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	var refused *signal.Error
	_, err := Enter(Config{Config: client.Config{URL: c.Server.URL(), Room: "room", Identity: "alice"}})
	if !errors.As(err, &refused) || refused.Code != signal.CodeIdentityTaken {
		t.Errorf("a second alice: %v, expected %s", err, signal.CodeIdentityTaken)
	}
	if _, err := Enter(
		Config{Config: client.Config{URL: "ws://127.0.0.1:1", Room: "room", Identity: "bob"}},
	); !errors.Is(
		err,
		ErrUnreachable,
	) {
		t.Errorf("nobody there: %v, expected %v", err, ErrUnreachable)
	}
	if _, err := Enter(Config{Config: client.Config{URL: "example.org"}}); !errors.Is(err, client.ErrConfig) {
		t.Errorf("no URL: %v, expected %v", err, client.ErrConfig)
	}
	if _, err := alice.Publish(object(0, 1)); !errors.Is(err, ErrArgument) {
		t.Errorf("no tiles: %v, expected %v", err, ErrArgument)
	}
	if err := alice.SetLimits(1, 2); !errors.Is(err, ErrArgument) {
		t.Errorf("limits the wrong way round: %v, expected %v", err, ErrArgument)
	}
	if err := alice.SetViewpoint(client.Viewpoint{FOV: 7}); !errors.Is(err, ErrArgument) {
		t.Errorf("a field of view of seven radians: %v, expected %v", err, ErrArgument)
	}
	p, err := alice.Publish(object(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetPose(client.Pose{Boxes: make([]volumetric.BoundingBox, 1)}); !errors.Is(err, ErrArgument) {
		t.Errorf("one box for two tiles: %v, expected %v", err, ErrArgument)
	}
	if err := p.Unpublish(); err != nil {
		t.Error(err)
	}
	if err := p.Unpublish(); !errors.As(err, &refused) || refused.Code != signal.CodeNotFound {
		t.Errorf("unpublished twice: %v, expected %s", err, signal.CodeNotFound)
	}
}

// TestTheEnd checks that calls that wait at the end of the session receive the reason.
func TestTheEnd(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	p, err := alice.Publish(object(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() {
			if _, err := alice.NextFrame(-1); !errors.Is(err, client.ErrClosed) {
				t.Errorf("a frame: %v, expected %v", err, client.ErrClosed)
			}
		})
		waiting.Go(func() {
			for {
				_, err := alice.NextEvent(-1)
				if err == nil {
					alice.ReleaseEvent()
					continue
				}
				if !errors.Is(err, client.ErrClosed) {
					t.Errorf("an event: %v, expected %v", err, client.ErrClosed)
				}
				return
			}
		})
	}
	alice.Close()
	waiting.Wait()
	for what, err := range map[string]error{
		"quality":   alice.SetQuality([]signal.Choice{}),
		"limits":    alice.SetLimits(0, 0),
		"viewpoint": alice.SetViewpoint(client.Viewpoint{}),
		"frame":     p.Write(0, 0, client.OutgoingFrame{}),
		"pose":      p.SetPose(client.Pose{}),
		"unpublish": p.Unpublish(),
	} {
		if !errors.Is(err, client.ErrClosed) {
			t.Errorf("%s: %v, expected %v", what, err, client.ErrClosed)
		}
	}
}

// TestTheServerStops checks that the end of the server ends the session with that reason.
func TestTheServerStops(t *testing.T) {
	c := open(t)
	alice := enter(t, c, "alice", queue.Limits{})
	c.Close()
	for {
		_, err := alice.NextFrame(generous)
		var refused *signal.Error
		switch {
		case err == nil:
			continue
		case !errors.Is(err, client.ErrLost) && !errors.As(err, &refused):
			t.Errorf("%v, expected %v or what the server says", err, client.ErrLost)
		}
		return
	}
}
