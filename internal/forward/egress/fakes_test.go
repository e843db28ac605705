package egress

import (
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// noBatch is for peers that send at once.
type noBatch struct{}

func (noBatch) Send()       {}
func (noBatch) Empty() bool { return true }

// fakePeer keeps the RTCP that it is given, and what its outlets queue until it is to send it.
type fakePeer struct {
	mu        sync.Mutex
	rtt       time.Duration
	extension uint8
	byStream  bool
	blocked   bool
	compounds [][]rtcp.Packet
	queued    []queuedPacket
	// flushed are the packets that were sent since numbers was called, in their order.
	flushed []rtp.Packet
	// runs are the numbers of packets that Post found queued, without those of 0.
	runs []int
}

// queuedPacket is a packet with the list of its outlet where it is going.
type queuedPacket struct {
	outlet *fakeOutlet
	packet rtp.Packet
}

// Blocked implements Peer.
func (p *fakePeer) Blocked(time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocked
}

func (p *fakePeer) block(blocked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocked = blocked
}

func (p *fakePeer) Post(Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queued) > 0 {
		p.runs = append(p.runs, len(p.queued))
	}
	for _, q := range p.queued {
		q.outlet.take(q.packet)
		p.flushed = append(p.flushed, q.packet)
	}
	p.queued = nil
}

func (p *fakePeer) queue(o *fakeOutlet, packet rtp.Packet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queued = append(p.queued, queuedPacket{o, packet})
}

// takeRuns gives the lengths of the runs since the last call.
func (p *fakePeer) takeRuns() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	runs := p.runs
	p.runs = nil
	return runs
}

func (p *fakePeer) WriteRTCP(packets []rtcp.Packet) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.compounds = append(p.compounds, append([]rtcp.Packet(nil), packets...))
	return nil
}

func (p *fakePeer) RTT() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rtt
}

func (p *fakePeer) TransportSequenceID() uint8 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.extension
}

func (p *fakePeer) Fail() {}

func (p *fakePeer) ReportsByStream() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byStream
}

// take gives the packets since the last call.
func (p *fakePeer) take() []rtcp.Packet {
	p.mu.Lock()
	defer p.mu.Unlock()
	var packets []rtcp.Packet
	for _, compound := range p.compounds {
		packets = append(packets, compound...)
	}
	p.compounds = nil
	return packets
}

// fakeOutlet keeps the packets that are queued on it once its peer is flushed.
type fakeOutlet struct {
	peer      *fakePeer
	ssrc, rtx uint32
	types     map[string][2]uint8
	// gate blocks queueing while it is locked.
	gate sync.Mutex

	mu      sync.Mutex
	packets []rtp.Packet
	repairs []rtp.Packet
	// refuse is what Queue returns, nil for taking the packet; refused counts the packets that were not taken.
	refuse  error
	refused int
}

// The payload types of fake outlets, and those of their retransmissions.
var fakeTypes = map[string][2]uint8{
	volumetric.MIMEVolumetric: {96, 97},
	volumetric.MIMEOpaque:     {98, 99},
	volumetric.MIMEVP8:        {100, 101},
	volumetric.MIMEH264:       {102, 103},
	volumetric.MIMEOpus:       {111, 0},
}

func newFakeOutlet(peer *fakePeer, ssrc uint32) *fakeOutlet {
	return &fakeOutlet{peer: peer, ssrc: ssrc, rtx: ssrc + 1, types: fakeTypes}
}

func (o *fakeOutlet) Queue(h *rtp.Header, payload []byte) error {
	o.gate.Lock()
	defer o.gate.Unlock()
	if err := o.refusal(); err != nil {
		return err
	}
	o.peer.queue(o, rtp.Packet{Header: h.Clone(), Payload: append([]byte(nil), payload...)})
	return nil
}

// refusal gives the error for the next packet, and counts it.
func (o *fakeOutlet) refusal() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse != nil {
		o.refused++
	}
	return o.refuse
}

// take keeps a packet that the peer has sent.
func (o *fakeOutlet) take(p rtp.Packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p.SSRC == o.rtx {
		o.repairs = append(o.repairs, p)
	} else {
		o.packets = append(o.packets, p)
	}
}

func (o *fakeOutlet) SSRC() uint32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ssrc
}

func (o *fakeOutlet) RetransmissionSSRC() uint32 { return o.rtx }

func (o *fakeOutlet) PayloadType(mime string) (media, retransmission uint8, ok bool) {
	types, ok := o.types[mime]
	return types[0], types[1], ok
}

// sent gives all media packets so far.
func (o *fakeOutlet) sent() []rtp.Packet { return o.sentFrom(0) }

// sentFrom gives the media packets so far without the first n.
func (o *fakeOutlet) sentFrom(n int) []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.packets[n:]...)
}

// repaired gives all retransmissions so far.
func (o *fakeOutlet) repaired() []rtp.Packet { return o.repairedFrom(0) }

// repairedFrom gives the retransmissions so far without the first n.
func (o *fakeOutlet) repairedFrom(n int) []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.repairs[n:]...)
}
