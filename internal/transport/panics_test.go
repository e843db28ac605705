package transport

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/ice/v4"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/internal/panics"
	"github.com/volsfu/volsfu/internal/srtp"
	"github.com/volsfu/volsfu/internal/transport/secure"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// guarding returns a guard and the channel of its reports.
func guarding() (*panics.Guard, <-chan panics.Report) {
	reported := make(chan panics.Report, 16)
	return panics.NewGuard(func(r panics.Report) { reported <- r }, PanicPlaces...), reported
}

// failed waits until a peer has failed for good.
func failed(t *testing.T, p *Peer) {
	t.Helper()
	deadline := time.After(wait.Patience)
	for {
		select {
		case <-p.Notify():
			for _, event := range p.Events() {
				if event.Final && event.State == StateFailed {
					return
				}
			}
		case <-deadline:
			t.Fatal("timed out: the peer fails")
		}
	}
}

// reportedOf checks the place of the first panic.
func reportedOf(t *testing.T, reported <-chan panics.Report, where string) {
	t.Helper()
	select {
	case r := <-reported:
		if r.Where != where {
			t.Errorf("the panic %v is one of %q, expected %q\n%s", r.Value, r.Where, where, r.Stack)
		}
	case <-time.After(wait.Patience):
		t.Fatal("timed out: a panic is reported")
	}
}

// brokenCandidate panics in every method.
type brokenCandidate struct{ ice.Candidate }

// TestAPanicInACallOfICEEndsThePeer: callbacks of the ICE agent panic. The peer can be closed afterwards, and another
// peer of the endpoint continues.
func TestAPanicInACallOfICEEndsThePeer(t *testing.T) {
	for _, test := range []struct {
		name string
		call func(*Peer)
	}{
		{"candidate", func(p *Peer) { p.agent.candidateFound(brokenCandidate{}) }},
		{"pair", func(p *Peer) { p.agent.pairSelected(brokenCandidate{}, brokenCandidate{}) }},
		{"state", func(p *Peer) {
			p.events = nil
			p.agent.stateChanged(ice.ConnectionStateFailed)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := loopbackConfig()
			var p *Peer
			var events *eventList
			reported := make(chan panics.Report, 1)
			config.Guard = panics.NewGuard(func(r panics.Report) {
				p.events = events
				reported <- r
			}, PanicPlaces...)
			p = newLone(t, config)
			events = p.events
			other, err := p.endpoint.NewPeer(newRecorder())
			if err != nil {
				t.Fatal(err)
			}
			test.call(p)
			reportedOf(t, reported, placeICE)
			failed(t, p)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if _, err := other.Offer(false); err != nil {
				t.Errorf("the endpoint's other peer: %v", err)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAFailureForGoodIsFinal: ICE restarts after a final failure.
func TestAFailureForGoodIsFinal(t *testing.T) {
	l := newEventList()
	l.secured()
	l.iceState(ice.ConnectionStateConnected)
	l.fail()
	l.fail()
	for _, state := range []ice.ConnectionState{
		ice.ConnectionStateDisconnected, ice.ConnectionStateFailed, ice.ConnectionStateChecking,
		ice.ConnectionStateConnected, ice.ConnectionStateClosed,
	} {
		l.iceState(state)
	}
	l.fail()
	want := []Event{{State: StateConnected}, {State: StateFailed, Final: true}, {State: StateClosed}}
	got := l.take()
	if len(got) != len(want) {
		t.Fatalf("the events are %+v, expected %+v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("event %d is %+v, expected %+v", i, got[i], want[i])
		}
	}
}

// TestAPanicInTheCheckOfACertificate: the handshake receives an error.
func TestAPanicInTheCheckOfACertificate(t *testing.T) {
	config := loopbackConfig()
	guard, reported := guarding()
	config.Guard = guard
	p := newLone(t, config)
	if err := p.checked(func() error { return secure.ErrFingerprint }); !errors.Is(err, secure.ErrFingerprint) {
		t.Errorf("the check's error is %v, expected %v", err, secure.ErrFingerprint)
	}
	if err := p.checked(func() error { panic("test") }); !errors.Is(err, errPanicked) {
		t.Errorf("the error is %v, expected %v", err, errPanicked)
	}
	reportedOf(t, reported, placeHandshake)
	failed(t, p)
}

// brokenSink panics with each packet.
type brokenSink struct {
	NoOpSink
	taken atomic.Int64
}

func (s *brokenSink) RTP(uint32, []byte, *PacketInfo) {
	s.taken.Add(1)
	panic("test")
}

// TestAPanicWithAPacketThroughICE: the sink of one peer panics, whose packets arrive over ICE-TCP.
func TestAPanicWithAPacketThroughICE(t *testing.T) {
	guard, reported := guarding()
	p := newPairWith(t, func(c *Config) { c.Guard = guard })
	dialling, err := Dial(ClientConfig())
	if err != nil {
		t.Fatal(err)
	}
	sink := &brokenSink{}
	offers, err := p.endpoints[0].NewPeer(sink)
	if err != nil {
		t.Fatal(err)
	}
	answers, err := dialling.NewPeer(p.heard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.offers.Close(), p.answers.Close(), p.endpoints[1].Close()); err != nil {
		t.Fatal(err)
	}
	p.offers, p.answers, p.endpoints[1] = offers, answers, dialling
	line, err := offers.AddReceiving(volumetric.KindVideo)
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate([]*Line{line})
	p.connect()
	send(t, p.attachBeforeSend[line.MID()], volumetric.MIMEVolumetric, 1)
	reportedOf(t, reported, placeMedia)
	failed(t, offers)
	if n := sink.taken.Load(); n != 1 {
		t.Errorf("the sink was called %d times, expected once", n)
	}
	if !offers.incoming.mu.TryLock() {
		t.Fatal("the mutex of what comes in is held")
	}
	offers.incoming.mu.Unlock()
}

// TestAPanicWithAnEarlyPacket: the decryption of a packet from before the keys panics, in the handshake's goroutine.
func TestAPanicWithAnEarlyPacket(t *testing.T) {
	config := loopbackConfig()
	guard, reported := guarding()
	config.Guard = guard
	offers := newLone(t, config)
	// An RTP packet, which an opener without keys cannot decrypt.
	offers.incoming.early = []earlyDatagram{{data: append([]byte{0x80, 96}, make([]byte, 100)...)}}
	offers.try(placeHandshake, func() { offers.incoming.open(&srtp.Opener{}) })
	reportedOf(t, reported, placeHandshake)
	failed(t, offers)
	if !offers.incoming.mu.TryLock() {
		t.Fatal("the mutex of what comes in is held")
	}
	offers.incoming.mu.Unlock()
}

// TestAPanicEndsTheEndpointOfAClient: the goroutine that reads the socket of a client panics.
func TestAPanicEndsTheEndpointOfAClient(t *testing.T) {
	reported := make(chan any, 1)
	p := newPairWith(t, func(c *Config) {
		if c.Initiates {
			c.Confine(func(value any, stack []byte) {
				if len(stack) == 0 {
					t.Error("the report has no stack")
				}
				reported <- value
			})
		}
	})
	answers, err := p.endpoints[1].NewPeer(&brokenSink{})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.answers.Close()
	p.answers = answers
	line, err := p.offers.AddSending(volumetric.KindVideo, "slot")
	if err != nil {
		t.Fatal(err)
	}
	p.negotiate(nil)
	p.connect()
	number := uint16(0)
	p.until("the panic is reported", func() bool {
		number++
		send(t, line.Outlet, volumetric.MIMEVolumetric, number)
		return len(reported) > 0
	})
	if value := <-reported; value != "test" {
		t.Errorf("the panic is %v, expected that of the sink", value)
	}
	if err := <-p.endpoints[1].Failed(); !errors.Is(err, errPanicked) {
		t.Errorf("the endpoint's error is %v, expected %v", err, errPanicked)
	}
}

// TestAPanicWhileATooLargePeerIsClosed: the goroutine that closes a peer with too many streams panics.
func TestAPanicWhileATooLargePeerIsClosed(t *testing.T) {
	config := loopbackConfig()
	guard, reported := guarding()
	config.Guard = guard
	p := newLone(t, config)
	agent := p.agent
	p.agent = nil
	p.overflow()
	reportedOf(t, reported, placeMedia)
	failed(t, p)
	if err := agent.Close(); err != nil {
		t.Error(err)
	}
}

// brokenData is a sink that panics in Data, or in Acknowledged.
type brokenData struct {
	*recorder
	acknowledged bool
}

func (s brokenData) Data(string, []byte, time.Time) {
	if !s.acknowledged {
		panic("test")
	}
}

func (s brokenData) Acknowledged(time.Time) {
	if s.acknowledged {
		panic("test")
	}
}

// TestAPanicOnADataChannelEndsThePeer: one peer's sink panics in the goroutine of a channel, and in SCTP's goroutine.
// The association ends, and another peer of the endpoint continues.
func TestAPanicOnADataChannelEndsThePeer(t *testing.T) {
	for _, test := range []struct {
		name string
		sink brokenData
	}{
		{"message", brokenData{newRecorder(), false}},
		{"acknowledgement", brokenData{newRecorder(), true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := DefaultConfig()
			config.Address, config.Port = "127.0.0.1", 0
			guard, reported := guarding()
			config.Guard = guard
			endpoint, err := Listen(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = endpoint.Close() })
			broken, foreign := openData(t, endpoint, test.sink)
			heard := &countingData{recorder: newRecorder()}
			_, other := openData(t, endpoint, heard)
			for before := heard.messages.Load(); heard.messages.Load() == before; time.Sleep(5 * time.Millisecond) {
				_ = other.Send([]byte("before"))
			}
			_ = foreign.Send([]byte("message"))
			reportedOf(t, reported, placeChannel)
			failed(t, broken)
			if err := broken.Close(); err != nil {
				t.Error(err)
			}
			deadline := time.Now().Add(wait.Patience)
			for before := heard.messages.Load(); heard.messages.Load() < before+2; time.Sleep(5 * time.Millisecond) {
				_ = other.Send([]byte("after"))
				if time.Now().After(deadline) {
					t.Fatal("timed out: another peer's messages come")
				}
			}
		})
	}
}

// countingData counts messages.
type countingData struct {
	*recorder
	messages atomic.Int64
}

func (s *countingData) Data(string, []byte, time.Time) { s.messages.Add(1) }

// openData connects a peer to a foreigner, and returns the foreigner's channel once the channel is open.
func openData(t *testing.T, endpoint *Endpoint, sink Sink) (*Peer, *webrtc.DataChannel) {
	t.Helper()
	peer, err := endpoint.NewPeer(sink)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	peer.AddData()
	foreign := newForeigner(t)
	t.Cleanup(func() { _ = foreign.pc.Close() })
	offer, err := peer.Offer(false)
	if err != nil {
		t.Fatal(err)
	}
	channel, err := foreign.pc.CreateDataChannel("channel", nil)
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	channel.OnOpen(func() { close(open) })
	if _, err := peer.Answered(foreign.answer(t, offer)); err != nil {
		t.Fatal(err)
	}
	for _, candidate := range peer.agent.local.all() {
		_ = foreign.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: candidate})
	}
	deadline := time.After(wait.Patience)
	for {
		select {
		case <-open:
			return peer, channel
		case <-peer.Notify():
			for _, event := range peer.Events() {
				if event.Candidate != nil {
					_ = foreign.pc.AddICECandidate(webrtc.ICECandidateInit{Candidate: event.Candidate.Candidate})
				}
				if event.Final {
					// The peer may have failed as soon as the channel was opened.
					peer.events.add(event)
					return peer, channel
				}
			}
		case <-deadline:
			t.Fatal("timed out: the channel opens")
		}
	}
}
