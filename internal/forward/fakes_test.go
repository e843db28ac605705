package forward

import (
	"sync"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// fakePeer keeps the RTCP that it is given.
type fakePeer struct {
	mu        sync.Mutex
	rtt       time.Duration
	compounds [][]rtcp.Packet
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

// fakeOutlet keeps the packets that are written to it.
type fakeOutlet struct {
	ssrc, rtx uint32
	types     map[string][2]uint8
	// gate blocks writing while it is locked.
	gate sync.Mutex

	mu      sync.Mutex
	packets []rtp.Packet
	repairs []rtp.Packet
}

// The payload types of fake outlets, and those of their retransmissions.
var fakeTypes = map[string][2]uint8{
	volumetric.MIMEVolumetric: {96, 97},
	volumetric.MIMEOpaque:     {98, 99},
	volumetric.MIMEVP8:        {100, 101},
	volumetric.MIMEH264:       {102, 103},
	volumetric.MIMEOpus:       {111, 0},
}

func newFakeOutlet(ssrc uint32) *fakeOutlet {
	return &fakeOutlet{ssrc: ssrc, rtx: ssrc + 1, types: fakeTypes}
}

func (o *fakeOutlet) WriteRTP(h *rtp.Header, payload []byte) error {
	o.gate.Lock()
	defer o.gate.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	p := rtp.Packet{Header: *h, Payload: append([]byte(nil), payload...)}
	if h.SSRC == o.rtx {
		o.repairs = append(o.repairs, p)
	} else {
		o.packets = append(o.packets, p)
	}
	return nil
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
func (o *fakeOutlet) sent() []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.packets...)
}

// repaired gives all retransmissions so far.
func (o *fakeOutlet) repaired() []rtp.Packet {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]rtp.Packet(nil), o.repairs...)
}
