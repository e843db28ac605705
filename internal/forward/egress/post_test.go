package egress

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/udp"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// postingPeer adds each run to the batch as one datagram, like a peer with a route.
type postingPeer struct {
	nullPeer
	socket *udp.Socket
	to     netip.AddrPort
	queued int
}

func (p *postingPeer) Post(batch Batch) {
	if p.queued > 0 {
		buffer := udp.NewBuffer()
		batch.(*udp.Post).Add(p.socket, []udp.Message{{Peer: p.to, Data: buffer[:100], Segment: 100}}, buffer)
	}
	p.queued = 0
}

// postingOutlet counts the packets that its peer has queued.
type postingOutlet struct {
	nullOutlet
	peer *postingPeer
}

func (o postingOutlet) Queue(*rtp.Header, []byte) error {
	o.peer.queued++
	return nil
}

// TestReceiversShareCalls sends bursts to 40 receivers. Their runs leave in few calls, and all of them have left when
// the writer rests.
func TestReceiversShareCalls(t *testing.T) {
	const receivers, bursts = 40, 5
	port, err := udp.Listen(udp.Config{Address: netip.MustParseAddrPort("127.0.0.1:0"), Sockets: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = port.Close() }()
	r := newRig(t, nil)
	w := r.engine.writers[0]
	w.outbox.batch = new(udp.Post)
	p := r.publish(r.ingress(&fakePeer{}), 10, volumetric.MIMEVolumetric)
	for k := range receivers {
		peer := &postingPeer{nullPeer: nullPeer{flushes: new(int)}, socket: port.Sockets()[0], to: port.Address()}
		r.engine.NewReceiver(peer, 0).AddSlot(postingOutlet{nullOutlet{uint32(1000 + 10*k)}, peer},
			volumetric.KindVideo).Select(p.track, 1, r.now)
	}
	r.run()
	for n := range bursts {
		p.Next()
		p.Send(r.now, p.Packets(3*1144)...)
		r.run()
		if !w.outbox.batch.Empty() || len(w.outbox.arrived) > 0 {
			t.Fatalf("the writer rests while %d packets wait", len(w.outbox.arrived))
		}
		if stats := port.Stats(); stats.Runs != uint64(receivers*(n+1)) {
			t.Fatalf("%d runs have left, expected %d", stats.Runs, receivers*(n+1))
		}
	}
	// Of 40 runs, at most 16 leave together.
	if stats := port.Stats(); runtime.GOOS == "linux" && stats.Sends > 3*bursts {
		t.Errorf("%d runs took %d calls, expected %d", stats.Runs, stats.Sends, 3*bursts)
	}
	r.pass(HousekeepingInterval)
	if h := r.engine.Stats().Residence; h.Count() != 3*receivers*bursts {
		t.Errorf("residence of %d packets was observed, expected %d", h.Count(), 3*receivers*bursts)
	}
}
