package trunk

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/ingress"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// authority stands for the certificates of a cluster.
type authority struct {
	mu    sync.Mutex
	names map[string]string
}

var errForeign = errors.New("the certificate is not one of the cluster")

func (a *authority) verify(raw [][]byte) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(raw) > 0 {
		if name := a.names[string(raw[0])]; name != "" {
			return name, nil
		}
	}
	return "", errForeign
}

// certify makes the certificate of a node. That of a foreign node is not one of the cluster.
func (a *authority) certify(t testing.TB, name string, foreign bool) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := selfsign.SelfSign(key)
	if err != nil {
		t.Fatal(err)
	}
	if !foreign {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.names[string(certificate.Certificate[0])] = name
	}
	return &certificate
}

// node is a node of a test, with the goroutine that owns its host.
type node struct {
	t      testing.TB
	host   *Host
	engine *forward.Engine
	calls  chan func()
	quit   chan struct{}
	ended  sync.WaitGroup

	mu     sync.Mutex
	events []Event
}

type options struct {
	lanes   int
	fanout  int
	foreign bool
	open    func(netip.AddrPort) (net.PacketConn, error)
	address string
	// measured is set if the estimates of trunks or the costs of packets are the subject of a test.
	measured bool
	// deadline is that of repairs, also the time for which a source waits for another, 0 for the default.
	deadline time.Duration
}

// wide are limits of the estimate of a trunk: a machine that stalls looks like a queue.
var wide = congestion.Limits{Min: DefaultLimits.Start, Start: DefaultLimits.Start}

// start starts a node.
func (a *authority) start(t testing.TB, name string, o options) *node {
	t.Helper()
	cfg := forward.DefaultConfig()
	cfg.Pacing = pacing.Off
	// No frame is too old: the machine may stall.
	cfg.MaxLag = time.Hour
	limits := DefaultLimits
	if !o.measured {
		cfg.CacheAge, limits = time.Hour, wide
	}
	if o.deadline > 0 {
		cfg.NACK.Deadline, cfg.NACK.LongDeadline = o.deadline, o.deadline
	}
	engine := forward.NewEngine(cfg, func() egress.Batch { return new(transport.Batch) })
	if o.address == "" {
		o.address = "127.0.0.1:0"
	}
	certificate := a.certify(t, name, o.foreign)
	host, err := Listen(Config{
		Node: name, Incarnation: 7, Address: netip.MustParseAddrPort(o.address), Lanes: max(o.lanes, 1),
		Fanout: o.fanout, Limits: limits,
		Certificate: func() *tls.Certificate { return certificate }, Verify: a.verify, Open: o.open,
	}, engine)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, host: host, engine: engine, calls: make(chan func()), quit: make(chan struct{})}
	n.ended.Go(func() {
		for {
			select {
			case <-host.Notify():
			case f := <-n.calls:
				f()
			case <-n.quit:
				return
			}
			events := host.Step(time.Now())
			n.mu.Lock()
			n.events = append(n.events, events...)
			n.mu.Unlock()
		}
	})
	t.Cleanup(n.stop)
	return n
}

// stop ends the node, like a crash if called during a test.
func (n *node) stop() {
	select {
	case <-n.quit:
		return
	default:
	}
	close(n.quit)
	n.ended.Wait()
	n.host.Close()
	n.engine.Close()
}

// do calls a function on the goroutine that owns the host.
func (n *node) do(f func(h *Host)) {
	done := make(chan struct{})
	n.calls <- func() {
		defer close(done)
		f(n.host)
	}
	<-done
}

// forget removes the events so far.
func (n *node) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = nil
}

// last returns the last event of a type.
func last[E Event](n *node) (event E, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range slices.Backward(n.events) {
		if e, is := e.(E); is {
			return e, true
		}
	}
	return event, false
}

// await waits for an event of a type that a condition accepts.
func await[E Event](t testing.TB, n *node, what string, accepts func(E) bool) (event E) {
	t.Helper()
	wait.Until(t, what, func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, e := range n.events {
			if e, is := e.(E); is && accepts(e) {
				event = e
				return true
			}
		}
		return false
	})
	return event
}

// connect connects two nodes.
func connect(t testing.TB, a, b *node, nameA, nameB string) {
	t.Helper()
	a.do(func(h *Host) { h.Connect(nameB, b.host.Address()) })
	b.do(func(h *Host) { h.Connect(nameA, a.host.Address()) })
	await(t, a, "the trunk at one end", func(e Linked) bool { return e.Node == nameB })
	await(t, b, "the trunk at the other end", func(e Linked) bool { return e.Node == nameA })
}

// publisherPeer is the connection of a publisher.
type publisherPeer struct{}

func (p *publisherPeer) WriteRTCP([]rtcp.Packet) error { return nil }

func (p *publisherPeer) RTT() time.Duration           { return 0 }
func (p *publisherPeer) TransportSequenceID() uint8   { return 0 }
func (p *publisherPeer) AcceptsReportsByStream() bool { return false }
func (p *publisherPeer) Fail()                        {}

// publishing is a publication with its publisher, at its home.
type publishing struct {
	ingress    *ingress.Ingress
	tracks     []*track.Track
	publishers []*forwardtest.Publisher
	// longest is the longest time in which the packets of one frame were sent.
	longest time.Duration
}

const (
	room = "room"
	id   = 5
)

var ref = volumetric.PublicationRef{Participant: "alice", Publication: "cloud"}

// newTracks returns the tracks of a publication of that many tiles with as many qualities.
func newTracks(e *forward.Engine, tiles, qualities int, group uint64, mime string) (tracks []*track.Track) {
	rate := uint32(90000)
	if mime == "audio/opus" {
		rate = 48000
	}
	for range tiles {
		for q := range qualities {
			tracks = append(tracks, e.NewTrack(track.Config{
				Codec: volumetric.Codec{MIMEType: mime, ClockRate: rate}, Quality: volumetric.Quality(q), Group: group,
			}))
		}
	}
	return tracks
}

// publish adds a publication at a node.
func publish(t testing.TB, n *node, tiles, qualities int) *publishing {
	return publishBy(t, n, &publisherPeer{}, tiles, qualities)
}

// publishBy adds a publication whose publisher has the given connection.
func publishBy(t testing.TB, n *node, peer ingress.Peer, tiles, qualities int) *publishing {
	p := &publishing{}
	p.ingress = n.engine.NewIngress(peer)
	p.tracks = newTracks(n.engine, tiles, qualities, 1, volumetric.MIMEVolumetric)
	for i, made := range p.tracks {
		publisher := forwardtest.NewPublisher(t, p.ingress, uint32(100+10*i))
		p.ingress.Bind(publisher.SSRC, publisher.RTX, made)
		p.publishers = append(p.publishers, publisher)
	}
	t.Cleanup(p.ingress.Close)
	n.do(func(h *Host) { h.Offer(room, ref, id, qualities, p.tracks) })
	return p
}

// frame sends one frame of that many bytes on each track.
func (p *publishing) frame(bytes int) {
	for _, publisher := range p.publishers {
		p.send(publisher, bytes)
	}
}

// send sends the next frame of that many bytes on one track.
func (p *publishing) send(publisher *forwardtest.Publisher, bytes int) {
	publisher.Next()
	packets, begin := publisher.Packets(bytes), time.Now()
	publisher.Send(begin, packets...)
	p.longest = max(p.longest, time.Since(begin))
}

// paused reports whether the test has paused within a frame. The node has then asked the publisher for the rest of the
// frame.
func (p *publishing) paused() bool { return p.longest >= feedback.DefaultConfig().NACK.TailWait }

// viewer is a receiver at a node, with one slot per track.
type viewer struct {
	mu     sync.Mutex
	tracks []received
}

// received has the timestamps and the numbers of packets of a track, by frame.
type received struct {
	timestamps map[uint32]uint32
	packets    map[uint32]map[uint16]bool
	needed     map[uint32]int
	// last is the time of the last packet.
	last time.Time
}

// complete returns the number of complete frames of a track.
func (v *viewer) complete(index int) (frames int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for frame, packets := range v.tracks[index].packets {
		if len(packets) >= v.tracks[index].needed[frame] {
			frames++
		}
	}
	return frames
}

// has reports whether a frame of a track is complete.
func (v *viewer) has(index int, frame uint32) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.tracks[index]
	return len(r.packets[frame]) > 0 && len(r.packets[frame]) >= r.needed[frame]
}

// last returns the time of the last packet of a track.
func (v *viewer) last(index int) time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracks[index].last
}

// timestamp returns the timestamp of a frame.
func (v *viewer) timestamp(index int, frame uint32) uint32 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.tracks[index].timestamps[frame]
}

// viewerOutlet is one slot of a viewer.
type viewerOutlet struct {
	viewer *viewer
	index  int
}

func (o viewerOutlet) Queue(h *rtp.Header, body []byte) error {
	if h.SSRC != o.SSRC() {
		return nil
	}
	var d payload.Descriptor
	if _, err := d.Unmarshal(body); err != nil {
		return err
	}
	o.viewer.mu.Lock()
	defer o.viewer.mu.Unlock()
	r := &o.viewer.tracks[o.index]
	if r.packets == nil {
		*r = received{map[uint32]uint32{}, map[uint32]map[uint16]bool{}, map[uint32]int{}, time.Time{}}
	}
	if r.packets[d.Frame] == nil {
		r.packets[d.Frame] = map[uint16]bool{}
	}
	r.packets[d.Frame][d.Index], r.last = true, time.Now()
	r.needed[d.Frame], r.timestamps[d.Frame] = int(d.Source), h.Timestamp
	return nil
}

func (o viewerOutlet) SSRC() uint32               { return uint32(5000 + 2*o.index) }
func (o viewerOutlet) RetransmissionSSRC() uint32 { return o.SSRC() + 1 }

func (o viewerOutlet) PayloadType(string) (media, retransmission uint8, ok bool) { return 96, 97, true }

// viewerPeer is the connection of a viewer.
type viewerPeer struct{ publisherPeer }

func (*viewerPeer) Post(egress.Batch)      {}
func (*viewerPeer) SetECN(ecn.Codepoint)   {}
func (*viewerPeer) Blocked(time.Time) bool { return false }
func (*viewerPeer) ReportsByStream() bool  { return false }

// view adds a viewer of tracks. Timestamps of its slots differ from those of the tracks by a constant.
func view(n *node, tracks []*track.Track) *viewer {
	v := &viewer{tracks: make([]received, len(tracks))}
	receiver := n.engine.NewReceiver(&viewerPeer{}, 0)
	for i, made := range tracks {
		receiver.AddSlot(viewerOutlet{v, i}, volumetric.KindVideo).Select(made, made.Group(), time.Now())
	}
	n.t.Cleanup(receiver.Close)
	return v
}

// mirrorAt mirrors the publication at another node.
func mirrorAt(n *node, home string, tiles, qualities int) []*track.Track {
	tracks := newTracks(n.engine, tiles, qualities, 9, volumetric.MIMEVolumetric)
	n.do(func(h *Host) { h.Mirror(home, room, ref, id, qualities, tracks) })
	return tracks
}

// takeAt takes qualities of each tile of the mirrored publication.
func takeAt(n *node, home string, tiles ...allocate.QualitySet) {
	n.do(func(h *Host) { h.Take(home, room, ref, id, Demand{Tiles: tiles}) })
}
