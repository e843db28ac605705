package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
	"github.com/volsfu/volsfu/test/testbed"
)

// patience is the time limit on a busy machine.
const patience = 60 * time.Second

func TestBridgeFlags(t *testing.T) {
	good := func() *Options {
		return &Options{sfu: "host:8094", port: ":8000", client: 7, layout: bridge.Layout{Tiles: 9, Qualities: 3}}
	}
	t.Setenv(roomVariable, "lobby")
	t.Setenv(peer.TokenVariable, "")
	t.Setenv(secretVariable, "")
	b := good()
	if err := b.check(); err != nil {
		t.Fatal(err)
	}
	if !b.local.Addr().IsLoopback() || b.room.Server != "ws://host:8094" || b.room.Name != "lobby" ||
		b.room.Identity != "7" {
		t.Errorf("flags come to %v in %+v, expected loopback, and client 7 in the lobby", b.local, b.room)
	}
	t.Setenv(peer.TokenVariable, "secret")
	t.Setenv(roomVariable, "")
	b = good()
	b.sfu, b.port, b.secret = "wss://host", "0.0.0.0:8000", "sixteen letters!"
	if err := b.check(); err != nil {
		t.Fatal(err)
	}
	if !b.local.Addr().IsUnspecified() || b.room.Server != "wss://host" ||
		b.room != (peer.Room{Server: "wss://host", Token: "secret"}) {
		t.Errorf("flags come to %v in %+v, expected all addresses, and what the token says", b.local, b.room)
	}
	for name, test := range map[string]struct {
		change func(b *Options)
		want   error
	}{
		"transcoding": {func(b *Options) { b.transcode, b.dialect = true, dialectVR2Gather },
			errPlain},
		"no port":            {func(b *Options) { b.port = "" }, errNoPort},
		"no colon":           {func(b *Options) { b.port = "8000" }, errPort},
		"last port":          {func(b *Options) { b.port = ":65535" }, errPort},
		"name":               {func(b *Options) { b.port = "host:8000" }, errPort},
		"no tile":            {func(b *Options) { b.layout.Tiles = 0 }, errLayout},
		"too many tiles":     {func(b *Options) { b.layout.Tiles = volumetric.MaxTiles + 1 }, errLayout},
		"too many qualities": {func(b *Options) { b.layout.Qualities = volumetric.MaxQualities + 1 }, errLayout},
		"negative time":      {func(b *Options) { b.seconds = -1 }, peer.ErrDuration},
		"dialect":            {func(b *Options) { b.dialect = "v2" }, errDialect},
		"beyond loopback":    {func(b *Options) { b.port = "0.0.0.0:8000" }, errNoSecret},
		"beyond, IPv6":       {func(b *Options) { b.port = "[::]:8000" }, errNoSecret},
		"short secret":       {func(b *Options) { b.secret = "fifteen letters" }, bridge.ErrSecret},
		"encryption":         {func(b *Options) { b.room.KeyFile = "room.keys" }, errEncrypted},
		"interfaces": {func(b *Options) { b.dialect, b.room.Interfaces = dialectVR2Gather, "wlan0,wwan0" },
			errOnePath},
		"copies of everything": {func(b *Options) { b.dialect, b.room.Redundancy = dialectVR2Gather, "all" },
			errOnePath},
		"TCP":          {func(b *Options) { b.dialect, b.room.TCP = dialectVR2Gather, true }, errOnePath},
		"named client": {func(b *Options) { b.dialect, b.room.Identity = dialectVR2Gather, "ada" }, errIdentity},
	} {
		b := good()
		test.change(b)
		if err := b.check(); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, expected %v", name, err, test.want)
		}
	}
}

// TestBridgeReadsSecretFromTheEnvironment starts bridges that listen beyond loopback, and on addresses of loopback,
// which need no secret.
func TestBridgeReadsSecretFromTheEnvironment(t *testing.T) {
	for _, test := range []struct {
		port, variable string
		required       bool
	}{
		{"0.0.0.0:8000", "sixteen letters!", true},
		{":8000", "sixteen letters!", true},
		{":8000", "", false},
		{"127.0.0.2:8000", "", false},
		{"[::1]:8000", "", false},
		{"[::ffff:127.0.0.1]:8000", "", false},
	} {
		t.Setenv(secretVariable, test.variable)
		b := &Options{sfu: "host:8094", port: test.port, layout: bridge.Layout{Tiles: 1, Qualities: 1}}
		if err := b.check(); err != nil || (b.required != nil) != test.required {
			t.Errorf("%s, %s=%q: a secret is required: %v, error %v; expected %v", test.port, secretVariable,
				test.variable, b.required != nil, err, test.required)
		}
	}
}

// TestBridgeAddresses checks the server addresses of bridges that use VR2Gather's dialect.
func TestBridgeAddresses(t *testing.T) {
	t.Setenv(peer.TokenVariable, "")
	for _, test := range []struct{ sfu, room, variable, want string }{
		{"host:8094", "", "", "ws://host:8094/websocket"},
		{"host:8094", "the room", "", "ws://host:8094/r/the%20room/websocket"},
		{"wss://host", "", "lobby", "wss://host/r/lobby/websocket"},
		{"ws://host:80/below/", "a/b", "", "ws://host:80/below/r/a%2Fb/websocket"},
	} {
		t.Setenv(roomVariable, test.variable)
		b := &Options{sfu: test.sfu, port: ":8000", layout: bridge.Layout{Tiles: 1, Qualities: 1},
			dialect: dialectVR2Gather, room: peer.Room{Name: test.room}}
		if err := b.check(); err != nil || b.room.Server != test.want {
			t.Errorf("%s, room %q: %q with %v, expected %q", test.sfu, cmp.Or(test.room, test.variable), b.room.Server,
				err, test.want)
		}
	}
}

// openConference starts a server that ends with the test.
func openConference(t testing.TB) string {
	t.Helper()
	before := goleak.IgnoreCurrent() // a benchmark's goroutine waits for this one
	settings := testbed.ConferenceConfig()
	testbed.Unhurried(&settings)
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		goleak.VerifyNone(t, before)
	})
	return c.Server.URL()
}

// bridgeTo starts a bridge in this process. The result ends the bridge and returns its summary.
func bridgeTo(t testing.TB, b *Options) func() Summary {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	b.json = true
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, nil, &out, slog.New(slog.DiscardHandler)) }()
	return func() Summary {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		decoder := json.NewDecoder(&out)
		decoder.DisallowUnknownFields()
		var s Summary
		if err := decoder.Decode(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// neighbour is a connector in this process. It answers the bridge and delivers complete frames.
type neighbour struct {
	conn   *net.UDPConn
	bridge netip.AddrPort
	// answer is the reply to ready datagrams, nil for none.
	answer atomic.Pointer[[]byte]
	// frames delivers tile frames, sounds audio frames.
	frames, sounds chan vr2gather.Packet
	read           sync.WaitGroup
}

// Ports of bridges in these tests. The ports are below those that systems assign automatically, and below those of
// test/interop: no other socket gets the port of a bridge before the bridge opens it.
const firstPort, lastPort = 10_000, 20_000

// openNeighbour opens a connector on a port whose predecessor is free; the predecessor is the bridge's port.
func openNeighbour(t testing.TB) *neighbour {
	t.Helper()
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		before, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue
		}
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port + 1})
		_ = before.Close()
		if err != nil {
			continue
		}
		n := &neighbour{conn: conn, bridge: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)),
			frames: make(chan vr2gather.Packet, 1000), sounds: make(chan vr2gather.Packet, 1000)}
		_ = conn.SetReadBuffer(4 << 20)
		zeros := make([]byte, vr2gather.DatagramSize)
		n.answer.Store(&zeros)
		n.read.Go(n.receive)
		t.Cleanup(func() {
			_ = conn.Close()
			n.read.Wait()
		})
		return n
	}
	t.Fatal("no two ports in a row are free")
	return nil
}

// receive answers ready datagrams. For each complete frame whose packets arrived in order, it delivers the last packet
// with the whole frame.
func (n *neighbour) receive() {
	datagram := make([]byte, vr2gather.MaxDatagram)
	wholes := make(map[volumetric.Kind][]byte)
	for {
		size, err := n.conn.Read(datagram)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		d, err := vr2gather.ParseDatagram(datagram[:size])
		if err != nil {
			continue
		}
		if d.Type == vr2gather.DatagramReady {
			if answer := n.answer.Load(); answer != nil {
				_, _ = n.conn.WriteToUDPAddrPort(*answer, n.bridge)
			}
			continue
		}
		p, err := d.Packet()
		if err != nil {
			continue
		}
		if p.First() {
			wholes[p.Kind] = nil
		}
		if int(p.Offset) != len(wholes[p.Kind]) {
			continue
		}
		wholes[p.Kind] = append(wholes[p.Kind], p.Data...)
		if !p.Last() {
			continue
		}
		p.Data = wholes[p.Kind]
		to := n.frames
		if p.Kind == volumetric.KindAudio {
			to = n.sounds
		}
		select {
		case to <- p:
		default:
		}
	}
}

// send sends a tile frame.
func (n *neighbour) send(t testing.TB, number uint32, data []byte) {
	t.Helper()
	n.sendKind(t, volumetric.KindVideo, number, data)
}

// sendKind sends a tile frame or an audio frame.
func (n *neighbour) sendKind(t testing.TB, kind volumetric.Kind, number uint32, data []byte) {
	t.Helper()
	var datagram []byte
	for p := range vr2gather.Cut(vr2gather.Packet{Kind: kind, Frame: number}, data) {
		var err error
		if datagram, err = vr2gather.AppendPacketDatagram(datagram[:0], &p); err != nil {
			t.Fatal(err)
		}
		if _, err := n.conn.WriteToUDPAddrPort(datagram, n.bridge); err != nil {
			t.Fatal(err)
		}
	}
}

// rawFrame returns a frame of the codec cwi0 as exchanged by VR2Gather's clients, with the capture time in the codec's
// data and in the header.
func rawFrame(data []byte, capture time.Time) []byte {
	header := vr2gather.NewFrameHeader(codec.CWI0.FourCC(), len(data), capture)
	return codec.StampCWI0(header.Append(nil), data, capture)
}

// somePoints returns a frame of the given size in bytes.
func somePoints(size int) []byte {
	data := vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, size-vr2gather.FrameHeaderSize,
		time.Now()).Append(make([]byte, 0, size))
	return data[:size]
}

// TestBridgeWithoutConnector publishes debug frames, which another client receives unchanged.
func TestBridgeWithoutConnector(t *testing.T) {
	url := openConference(t)
	stop := bridgeTo(t, &Options{sfu: url, client: 3, layout: bridge.Layout{Tiles: 2, Qualities: 1}, input: true,
		debug: true})
	session, err := client.Join(t.Context(), client.Config{URL: url, Room: defaultRoom, Identity: "ada", Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	tiles := make(map[int]int)
	for end := time.After(patience); tiles[0] < 5 || tiles[1] < 5; {
		select {
		case f := <-session.Frames():
			if len(f.Whole) != vr2gather.FrameHeaderSize+debugFrame || f.Codec != debugCodec ||
				f.Track.Participant != "3" {
				t.Fatalf("%d bytes of %v from %v", len(f.Whole), f.Codec, f.Track)
			}
			tiles[f.Track.Tile]++
		case <-end:
			t.Fatalf("frames of tiles: %v", tiles)
		}
	}
	if s := stop(); s.Sessions != 1 || s.FromConnector.Datagrams != 0 || s.Client != 3 {
		t.Errorf("summary is %+v", s)
	}
}

// TestBridgeForwardsReadableFormats publishes formats that VR2Gather reads and formats that it does not read.
func TestBridgeForwardsReadableFormats(t *testing.T) {
	url := openConference(t)
	n := openNeighbour(t)
	stop := bridgeTo(t, &Options{sfu: url, port: n.bridge.String(), client: 1,
		layout: bridge.Layout{Tiles: 1, Qualities: 1}, output: true})
	readable := (&upward{settings: &Options{layout: bridge.Layout{Tiles: 1,
		Qualities: 1}}}).describeCloud(vr2gather.CodecRawPoints)
	foreign := readable
	foreign.Name, foreign.VR2Gather = "other", false
	session, err := client.Join(t.Context(), client.Config{URL: url, Room: defaultRoom, Identity: "ada-12",
		Publications: []volumetric.Publication{foreign, readable}, MinUplink: testbed.Everything,
		QueueBudget: signal.MaxDeadline})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	// Frames in an unreadable format are not sent once the server knows that no receiver wants them.
	withheld := func() bool { return !session.Publisher(foreign.Name).Wanted(0, 0) }
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	came := 0
	number, first := uint32(0), uint32(0)
	for end := time.After(patience); came < 10 || !withheld(); {
		select {
		case now := <-ticker.C:
			for _, name := range []string{foreign.Name, readable.Name} {
				f := client.OutgoingFrame{Number: number, Capture: now, Data: somePoints(3000)}
				if _, err := session.Publisher(name).WriteFrame(0, 0, f); err != nil &&
					!errors.Is(err, client.ErrNotConnected) {
					t.Fatal(err)
				}
			}
			number++
		case p := <-n.frames:
			if came == 0 {
				first = p.Frame
			}
			if p.Client != 12 || p.Length != 3000 || int(p.Frame-first) != came {
				t.Fatalf("frame %d of client %d has %d bytes, expected frame %d of client 12, and 3000", p.Frame-first,
					p.Client, p.Length, came)
			}
			came++
		case <-end:
			t.Fatalf("%d frames came, the rest is withheld: %v", came, withheld())
		}
	}
	n.send(t, 0, somePoints(2000)) // the bridge was started without input
	s := stop()
	if s.ToConnector.Frames < 10 || s.FromConnector.Frames != 0 {
		t.Errorf("summary is %+v", s)
	}
}

// TestBridgeSuspendsSilentConnector uses a connector that presents a secret, receives, becomes silent and
// returns.
func TestBridgeSuspendsSilentConnector(t *testing.T) {
	url := openConference(t)
	n := openNeighbour(t)
	const secret = "sixteen letters!"
	present := make([]byte, vr2gather.DatagramSize)
	present[0], present[4] = 18, byte(len(secret)) // the format in docs/bridge.md
	copy(present[8:], secret)
	b := &Options{sfu: url, port: n.bridge.String(), secret: secret, client: 1,
		layout: bridge.Layout{Tiles: 1, Qualities: 1}, output: true}
	if err := b.check(); err != nil {
		t.Fatal(err)
	}
	s := New(b, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	publication := (&upward{settings: &Options{layout: bridge.Layout{Tiles: 1,
		Qualities: 1}}}).describeCloud(vr2gather.CodecRawPoints)
	session, err := client.Join(t.Context(), client.Config{URL: url, Room: defaultRoom, Identity: "ada-12",
		Publications: []volumetric.Publication{publication}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	number := uint32(0)
	// publishUntil publishes frames and counts those that the connector receives, until a condition holds.
	publishUntil := func(what string, holds func(came int) bool) {
		t.Helper()
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		came := 0
		for end := time.After(patience); !holds(came); {
			select {
			case now := <-ticker.C:
				f := client.OutgoingFrame{Number: number, Capture: now, Data: somePoints(3000)}
				if _, err := session.Publisher(publication.Name).WriteFrame(0, 0, f); err != nil &&
					!errors.Is(err, client.ErrNotConnected) {
					t.Fatal(err)
				}
				number++
			case <-n.frames:
				came++
			case <-end:
				t.Fatalf("%s: not within %v, %d frames came", what, patience, came)
			}
		}
	}
	// Plain answers are ignored: the tally counts them as foreign, and the bridge does not join.
	for end := time.Now().Add(patience); s.tally.Count(bridge.DropSource) <= 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("answers without the secret are not dropped: %v", s.tally.Counts())
		}
	}
	if figures := s.summary(); figures.Sessions != 0 || figures.ToConnector.Datagrams != 0 {
		t.Fatalf("without the secret the bridge has joined: %+v", figures)
	}
	n.answer.Store(&present)
	publishUntil("frames for a connector that has the secret", func(came int) bool { return came > 5 })
	n.answer.Store(nil)
	publishUntil("frames are withheld from a silent connector",
		func(int) bool { return s.tally.Count(bridge.DropSilent) > 5 })
	sent := s.summary().ToConnector.Datagrams
	publishUntil("more frames are withheld", func(int) bool { return s.tally.Count(bridge.DropSilent) > 20 })
	if now := s.summary().ToConnector.Datagrams; now != sent {
		t.Errorf("%d datagrams were sent to a silent connector", now-sent)
	}
	n.answer.Store(&present)
	publishUntil("frames for a connector that is back", func(came int) bool { return came > 5 })
}

// BenchmarkBridge sends frames of 100 kB through two bridges and a server, 100 per second. It reports the figures of
// the bridges' summaries: up is the time from the last datagram of a frame to its hand-over to the SDK, down the time
// from the last packet of a frame until all of it was sent to the connector.
func BenchmarkBridge(b *testing.B) {
	url := openConference(b)
	from, to := openNeighbour(b), openNeighbour(b)
	layout := bridge.Layout{Tiles: 1, Qualities: 1}
	stopFrom := bridgeTo(b, &Options{sfu: url, port: from.bridge.String(), client: 1, layout: layout, input: true})
	stopTo := bridgeTo(b, &Options{sfu: url, port: to.bridge.String(), client: 2, layout: layout, output: true})
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	number, came := uint32(0), 0
	for end := time.After(patience); came == 0; number++ {
		<-ticker.C
		from.send(b, number, somePoints(100_000))
		select {
		case <-to.frames:
			came++
		case <-end:
			b.Fatal("nothing comes")
		default:
		}
	}
	b.SetBytes(100_000)
	for b.Loop() {
		<-ticker.C
		from.send(b, number, somePoints(100_000))
		number++
	}
	up, down := stopFrom(), stopTo()
	b.ReportMetric(*up.Up.P50, "up-p50-ms")
	b.ReportMetric(*up.Up.P99, "up-p99-ms")
	b.ReportMetric(*down.Down.P50, "down-p50-ms")
	b.ReportMetric(*down.Down.P99, "down-p99-ms")
	b.ReportMetric(float64(int64(number)-down.ToConnector.Frames), "lost")
}

func TestBridgeLogsAsMuchAsIsWanted(t *testing.T) {
	for level, want := range []slog.Level{slog.LevelInfo, slog.LevelInfo, slog.LevelDebug} {
		log := (&Options{level: level}).NewLog(io.Discard)
		if !log.Enabled(t.Context(), want) || log.Enabled(t.Context(), want-1) {
			t.Errorf("level %d does not begin with %v", level, want)
		}
	}
}
