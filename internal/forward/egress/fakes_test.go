package egress

import (
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/ecn"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// noBatch is the batch of peers that send at once.
type noBatch struct{}

func (noBatch) Send()       {}
func (noBatch) Empty() bool { return true }

// fakePeer records RTCP packets, and the packets of its outlets until they are sent.
type fakePeer struct {
	mu        sync.Mutex
	rtt       time.Duration
	extension uint8
	byStream  bool
	blocked   bool
	// codepoint is the argument of the last call of SetECN.
	codepoint ecn.Codepoint
	compounds [][]rtcp.Packet
	queued    []queuedPacket
	// flushed are the packets sent since the last call of numbers, in order.
	flushed []rtp.Packet
	// runs are the numbers of packets that Post found queued, without zeros.
	runs []int
}

// queuedPacket is a packet and the list of its outlet for the packet.
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

// SetECN implements Peer.
func (p *fakePeer) SetECN(codepoint ecn.Codepoint) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codepoint = codepoint
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

// takeRuns returns the lengths of the runs since the last call.
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

// AcceptsReportsByStream implements ingress.Peer.
func (p *fakePeer) AcceptsReportsByStream() bool { return false }

func (p *fakePeer) ReportsByStream() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byStream
}

// take returns the packets since the last call.
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

// fakeOutlet records the packets queued on it when its peer is flushed.
type fakeOutlet struct {
	peer      *fakePeer
	ssrc, rtx uint32
	types     map[string][2]uint8
	// gate blocks queueing while it is locked.
	gate sync.Mutex

	mu      sync.Mutex
	packets []rtp.Packet
	repairs []rtp.Packet
	// refuse is the error of Queue, nil to accept packets. refused counts the refused packets.
	refuse  error
	refused int
}

// The payload types of fake outlets, media and retransmission.
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

// refusal returns the error for the next packet, and counts it.
func (o *fakeOutlet) refusal() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse != nil {
		o.refused++
	}
	return o.refuse
}

// take records a packet that the peer has sent.
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

// sent returns all media packets so far.
func (o *fakeOutlet) sent() []rtp.Packet { return o.sentFrom(0) }

// sentFrom returns the media packets so far without the first n.
func (o *fakeOutlet) sentFrom(n int) []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.packets[n:]...)
}

// repaired returns all retransmissions so far.
func (o *fakeOutlet) repaired() []rtp.Packet { return o.repairedFrom(0) }

// repairedFrom returns the retransmissions so far without the first n.
func (o *fakeOutlet) repairedFrom(n int) []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.repairs[n:]...)
}
