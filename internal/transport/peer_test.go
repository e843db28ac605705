package transport

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// recorder is a sink that keeps what arrives.
type recorder struct {
	NoOpSink
	mu   sync.Mutex
	rtp  map[uint32][]rtp.Packet
	rtcp map[uint32]int
}

func newRecorder() *recorder {
	return &recorder{rtp: make(map[uint32][]rtp.Packet), rtcp: make(map[uint32]int)}
}

func (r *recorder) RTP(ssrc uint32, packet []byte, _ *PacketInfo) {
	var p rtp.Packet
	if p.Unmarshal(append([]byte(nil), packet...)) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rtp[ssrc] = append(r.rtp[ssrc], p)
}

func (r *recorder) RTCP(packet []byte, _ time.Time) {
	packets, err := rtcp.Unmarshal(packet)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ssrc := range packets[0].DestinationSSRC() {
		r.rtcp[ssrc]++
	}
}

func (r *recorder) packets(ssrc uint32) []rtp.Packet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]rtp.Packet(nil), r.rtp[ssrc]...)
}

func (r *recorder) reports(ssrc uint32) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rtcp[ssrc]
}

// pair is an offering and an answering peer over loopback.
type pair struct {
	t                testing.TB
	offers, answers  *Peer
	offersTo, heard  *recorder
	connected        map[*Peer]bool
	restart          bool
	fromAnswerer     map[string]Streams
	fromOfferer      map[string]Streams
	endpoints        []*Endpoint
	attachBeforeSend map[string]*Outlet
}

func newPair(t *testing.T) *pair {
	t.Helper()
	return newPairWith(t, func(*Config) {})
}

// receiveBy sets another sink of the offering peer. It must be called before the negotiation.
func (p *pair) receiveBy(sink Sink) *Peer {
	p.t.Helper()
	peer, err := p.endpoints[0].NewPeer(sink)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.offers.Close()
	p.offers = peer
	return peer
}

// connectVideo connects the peers with one video line toward the offering peer. It returns the outlet that sends on the
// line, and the header of its packets.
func (p *pair) connectVideo() (*Outlet, rtp.Header) {
	p.t.Helper()
	line, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		p.t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	p.connect()
	outlet := p.attachBeforeSend[line.MID()]
	media, _, _ := outlet.PayloadType(volumetric.MIMEVolumetric)
	return outlet, rtp.Header{Version: 2, PayloadType: media, SSRC: outlet.SSRC()}
}

// newPairWith makes a pair whose endpoints have the settings.
func newPairWith(t testing.TB, set func(*Config)) *pair {
	t.Helper()
	p := &pair{t: t, offersTo: newRecorder(), heard: newRecorder(), connected: map[*Peer]bool{},
		attachBeforeSend: map[string]*Outlet{}}
	config := DefaultConfig()
	config.Address, config.Port, config.TCP = "127.0.0.1", 0, true
	for i, sink := range []*recorder{p.offersTo, p.heard} {
		if i == 1 {
			config = ClientConfig()
			config.Address = "127.0.0.1"
		}
		set(&config)
		endpoint, err := Listen(config)
		if err != nil {
			t.Fatal(err)
		}
		peer, err := endpoint.NewPeer(sink)
		if err != nil {
			t.Fatal(err)
		}
		p.endpoints = append(p.endpoints, endpoint)
		if i == 0 {
			p.offers = peer
		} else {
			p.answers = peer
		}
	}
	t.Cleanup(func() {
		for _, closer := range []func() error{p.offers.Close, p.answers.Close, p.endpoints[0].Close,
			p.endpoints[1].Close} {
			if err := closer(); err != nil {
				t.Error(err)
			}
		}
		// A benchmark runs in a goroutine for which this one waits.
		if t, ok := t.(*testing.T); ok {
			goleak.VerifyNone(t)
		}
	})
	return p
}

// negotiate exchanges one offer and one answer. The answerer sends on the given lines.
func (p *pair) negotiate(publish []*Line) {
	p.t.Helper()
	offer, err := p.offers.Offer(p.restart)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.fromOfferer, err = p.answers.Offered(offer); err != nil {
		p.t.Fatal(err)
	}
	for _, line := range publish {
		outlet, err := p.answers.Sending(line.MID())
		if err != nil {
			p.t.Fatal(err)
		}
		p.attachBeforeSend[line.MID()] = outlet
	}
	answer, err := p.answers.Answer()
	if err != nil {
		p.t.Fatal(err)
	}
	if p.fromAnswerer, err = p.offers.Answered(answer); err != nil {
		p.t.Fatal(err)
	}
}

// until exchanges candidates between the peers until the condition holds.
func (p *pair) until(what string, condition func() bool) {
	p.t.Helper()
	deadline := time.After(wait.Patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-p.offers.Notify():
			p.carry(p.offers, p.answers)
		case <-p.answers.Notify():
			p.carry(p.answers, p.offers)
		case <-tick.C:
		case <-deadline:
			p.t.Fatalf("timed out: %s", what)
		}
	}
}

func (p *pair) carry(from, to *Peer) {
	for _, event := range from.Events() {
		if event.Candidate != nil {
			if err := to.AddCandidate(*event.Candidate); err != nil {
				p.t.Fatal(err)
			}
		}
		if event.State == StateConnected {
			p.connected[from] = true
		}
	}
}

func (p *pair) connect() {
	p.t.Helper()
	p.until("both connected", func() bool { return p.connected[p.offers] && p.connected[p.answers] })
}

func send(t testing.TB, o *Outlet, mime string, number uint16) {
	t.Helper()
	media, _, ok := o.PayloadType(mime)
	if !ok {
		t.Fatalf("%s is not negotiated", mime)
	}
	header := rtp.Header{Version: 2, PayloadType: media, SequenceNumber: number, Timestamp: 7, SSRC: o.SSRC()}
	if err := o.WriteRTP(&header, []byte("payload")); err != nil {
		t.Fatal(err)
	}
}

func TestMediaBothWaysWithRetransmissionAndRenegotiation(t *testing.T) {
	p := newPair(t)
	publish, err := p.offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := p.offers.AddSending(volumetric.KindVideo, "slot-0")
	if err != nil {
		t.Fatal(err)
	}
	voice, err := p.offers.AddSending(volumetric.KindAudio, "audio-0")
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{publish})
	p.connect()

	up := p.attachBeforeSend[publish.MID()]
	if got := p.fromAnswerer[publish.MID()]; got.SSRC != up.SSRC() || got.Retransmission != up.RetransmissionSSRC() ||
		got.Retransmission == 0 {
		t.Fatalf("answer says %+v, outlet has %d and %d", got, up.SSRC(), up.RetransmissionSSRC())
	}
	if got := p.fromOfferer[slot.MID()]; got.SSRC != slot.Outlet.SSRC() || got.Retransmission == 0 {
		t.Fatalf("offer says %+v, outlet has %d", got, slot.Outlet.SSRC())
	}
	for number, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEH264, volumetric.MIMEVP8,
		volumetric.MIMEOpaque} {
		send(t, up, mime, uint16(number))
		send(t, slot.Outlet, mime, uint16(number))
	}
	send(t, voice.Outlet, volumetric.MIMEOpus, 1)
	_, retransmission, _ := slot.Outlet.PayloadType(volumetric.MIMEVolumetric)
	header := rtp.Header{Version: 2, PayloadType: retransmission, SequenceNumber: 900,
		SSRC: slot.Outlet.RetransmissionSSRC()}
	if err := slot.Outlet.WriteRTP(&header, []byte{0, 1, 2}); err != nil {
		t.Fatal(err)
	}
	p.until("packets on both sides", func() bool {
		return len(p.offersTo.packets(up.SSRC())) == 4 && len(p.heard.packets(slot.Outlet.SSRC())) == 4 &&
			len(p.heard.packets(slot.Outlet.RetransmissionSSRC())) == 1 &&
			len(p.heard.packets(voice.Outlet.SSRC())) == 1
	})
	nack := &rtcp.TransportLayerNack{MediaSSRC: slot.Outlet.SSRC(), Nacks: []rtcp.NackPair{{PacketID: 1}}}
	if err := p.answers.WriteRTCP([]rtcp.Packet{nack}); err != nil {
		t.Fatal(err)
	}
	p.until("the NACK", func() bool { return p.offersTo.reports(slot.Outlet.SSRC()) > 0 })

	second, err := p.offers.AddSending(volumetric.KindVideo, "slot-1")
	if err != nil {
		t.Fatal(err)
	}
	p.restart = true
	p.negotiate([]*Line{publish})
	if p.attachBeforeSend[publish.MID()] != up {
		t.Fatal("renegotiation made a new outlet for an old line")
	}
	number := uint16(0)
	p.until("media on the new line after an ICE restart", func() bool {
		number++
		send(t, second.Outlet, volumetric.MIMEVolumetric, number)
		return len(p.heard.packets(second.Outlet.SSRC())) > 0
	})
}

func TestLinesScale(t *testing.T) {
	p := newPair(t)
	var publish []*Line
	for i := range 150 {
		line, err := p.offers.AddReceiving(volumetric.KindVideo)
		if err != nil {
			t.Fatal(err)
		}
		publish = append(publish, line)
		if _, err := p.offers.AddSending(volumetric.KindVideo, fmt.Sprintf("slot-%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	p.negotiate(publish)
	t.Logf("offer and answer of 300 lines: %v", time.Since(start))
	p.connect()
	for _, line := range publish {
		send(t, p.attachBeforeSend[line.MID()], volumetric.MIMEVolumetric, 1)
	}
	p.until("a packet on each of 150 lines", func() bool {
		p.offersTo.mu.Lock()
		defer p.offersTo.mu.Unlock()
		return len(p.offersTo.rtp) == 150
	})
}
