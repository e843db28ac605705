package chaos

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/internal/transport/transporttest"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

// fuzzRoom is a server for inputs of fuzz tests.
func fuzzRoom(f *testing.F) *room {
	f.Helper()
	settings := testbed.ConferenceConfig()
	settings.Signalling.MessageRate, settings.Signalling.MessageBurst = 1e6, 1e6
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	return &room{Conference: c}
}

// session is an intruder's connection for consecutive inputs. When the server ends it, another one begins.
type session struct {
	intruder    *intruder.Intruder
	path        *intruder.Path
	association *intruder.Association
	// used is the number of its inputs.
	used int
}

// mostInputs is the maximum number of inputs of one session, so that late inputs of a run do not depend on all earlier
// ones.
const mostInputs = 50

// next returns a session for one more input. With secure, the handshakes of DTLS and SCTP are complete.
func (s *session) next(t *testing.T, r *room, secure bool) {
	t.Helper()
	if s.intruder != nil && s.used < mostInputs {
		select {
		case <-s.intruder.Ended():
		case <-s.ended():
		default:
			s.used++
			return
		}
	}
	s.close()
	ctx, cancel := contextWithPatience()
	defer cancel()
	var err error
	s.intruder, err = intruder.Join(ctx, intruder.Config{URL: r.Server.URL()}, signal.Join{DataChannel: true})
	if err != nil {
		t.Fatal(err)
	}
	if s.path, err = s.intruder.Reach(ctx); err != nil {
		t.Fatal(err)
	}
	if secure {
		conn, err := s.path.Handshake(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if s.association, err = intruder.Associate(ctx, conn); err != nil {
			t.Fatal(err)
		}
	}
	s.used = 1
}

// ended is closed when the association, if any, has ended.
func (s *session) ended() <-chan struct{} {
	if s.association == nil {
		return nil
	}
	return s.association.Ended()
}

func (s *session) close() {
	if s.intruder == nil {
		return
	}
	if s.association != nil {
		s.association.Abort()
		_ = s.association.Close()
	}
	s.path.End()
	s.intruder.Close()
	*s = session{}
}

// FuzzDemultiplexer sends datagrams from the address of a connected participant: the first byte of each determines
// whether it is handled as STUN, DTLS or SRTP. An input is a series of datagrams, each after a byte with a sixth of its
// length. The server has to continue answering checks of new participants.
func FuzzDemultiplexer(f *testing.F) {
	r := fuzzRoom(f)
	s := &session{}
	f.Cleanup(s.close)
	pack := func(datagrams ...[]byte) (input []byte) {
		for _, d := range datagrams {
			d = append(d, make([]byte, (6-len(d)%6)%6)...)
			input = append(append(input, byte(len(d)/6)), d...)
		}
		return input
	}
	for n := range uint16(8) {
		f.Add(pack(intruder.EmptyBeyondStart(n), intruder.CloseNotify()))
	}
	for _, record := range intruder.Synthetic() {
		f.Add(pack(record))
	}
	f.Add(pack([]byte("\x00\x01\x00\x00\x21\x12\xa4\x42twelve bytes")))
	f.Add(pack([]byte{0x80, 96, 0, 1}, []byte{0x80, 200, 0, 1, 0, 0, 0, 1}))
	f.Fuzz(func(t *testing.T, input []byte) {
		s.next(t, r, len(input)%2 == 0)
		for len(input) > 0 {
			length := min(6*int(input[0]), len(input)-1)
			_, _ = s.path.WriteTo(input[1:1+length], nil)
			input = input[1+length:]
		}
		// Handshakes pass through the same demultiplexer. A lost check is repeated.
		deadline := time.Now().Add(patience)
		for before := s.path.Replies(); s.path.Replies() == before; time.Sleep(time.Millisecond) {
			_, _ = s.path.WriteToUDPAddrPort(s.intruder.Request(), s.path.Server)
			select {
			case <-s.intruder.Ended():
				s.next(t, r, false)
				before = s.path.Replies()
			default:
			}
			if time.Now().After(deadline) {
				t.Fatalf("the server answers no check within %v", patience)
			}
		}
	})
}

// FuzzChannels opens data channels with any message of DCEP and sends any message on them.
func FuzzChannels(f *testing.F) {
	r := fuzzRoom(f)
	s := &session{}
	f.Cleanup(s.close)
	f.Add(intruder.ChannelOpen("body"), []byte("chunk"))
	f.Add(intruder.ChannelOpen(""), []byte{})
	f.Add(intruder.ChannelOpen(strings.Repeat("x", 1000)), make([]byte, 100))
	f.Add(intruder.ChannelOpen("\x00\xff{\"participant\":1}"), []byte{1})
	f.Add([]byte{3, 0x82, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'x'}, []byte{0})
	f.Add([]byte{2}, []byte{0})
	stream := uint16(0)
	f.Fuzz(func(t *testing.T, open, message []byte) {
		s.next(t, r, true)
		stream += 2
		const fits = 1000
		a := s.association
		open, message = open[:min(len(open), fits)], message[:min(len(message), fits)]
		packet := intruder.Channel(a.Tag(), a.Acknowledged()+1, stream, open, message)
		want := a.Acknowledged() + 2
		for deadline := time.Now().Add(patience); a.Acknowledged() != want; time.Sleep(time.Millisecond) {
			select {
			case <-a.Ended():
				return
			case <-s.intruder.Ended():
				return
			default:
			}
			if a.Send(packet) != nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the server has neither acknowledged an input within %v nor ended the association", patience)
			}
		}
	})
}

// mostAddresses is the maximum number of addresses to which a server may send checks before ICE restarts.
const mostAddresses = 64

// FuzzAnswerSequence sends a peer offers, answers and candidates in any order. Each byte of the input is a step. The
// peer must not send to more addresses than one description may name.
func FuzzAnswerSequence(f *testing.F) {
	f.Add([]byte{0, 64})
	f.Add([]byte{0, 64, 0, 64, 0, 64})
	f.Add([]byte{200, 200, 0, 10, 200, 201, 0, 0, 64})
	f.Add([]byte{0, 1, 255, 0, 64, 0, 32})
	f.Fuzz(func(t *testing.T, steps []byte) {
		if len(steps) > 40 {
			return
		}
		synctest.Test(t, func(t *testing.T) {
			conn := transporttest.NewBlackhole()
			config := transport.DefaultConfig()
			config.TCP = false
			endpoint, err := transport.Attach(config, conn)
			if err != nil {
				t.Fatal(err)
			}
			peer, err := endpoint.NewPeer(transport.NoOpSink{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = peer.Close()
				_ = endpoint.Close()
			}()
			if _, err := peer.AddReceiving(volumetric.KindAudio); err != nil {
				t.Fatal(err)
			}
			q := &sequence{peer: peer}
			for _, step := range steps {
				q.take(step)
				time.Sleep(100 * time.Millisecond)
			}
			// A peer that sends one check in 50 ms (RFC 8445 section 14.2) reaches 100 addresses in this time.
			time.Sleep(5 * time.Second)
			if n, most := len(conn.Sent()), mostAddresses*(1+q.restarts); n > most {
				t.Errorf("the peer has sent to %d addresses, expected at most %d", n, most)
			}
		})
	})
}

// sequence applies steps to a peer.
type sequence struct {
	peer *transport.Peer
	// offer is the latest one, number distinguishes candidates, restarts counts the restarts of ICE.
	offer    string
	number   int
	restarts int
}

// take applies a step: 0 is an offer, 255 one that restarts ICE, 1 to 127 an answer with so many candidates, other
// numbers a single candidate.
func (q *sequence) take(step byte) {
	switch {
	case step == 0 || step == 255:
		if offer, err := q.peer.Offer(step == 255); err == nil {
			q.offer = offer
			if step == 255 {
				q.restarts++
			}
		}
	case step < 128:
		if q.offer == "" {
			return
		}
		var candidates []netip.AddrPort
		for range step {
			candidates = append(candidates, q.address())
		}
		_, _ = q.peer.Answered(intruder.Answer(q.offer, candidates))
	default:
		address := q.address()
		text := fmt.Sprintf("candidate:1 1 udp 1 %v %d typ host", address.Addr(), address.Port())
		_ = q.peer.AddCandidate(transport.Candidate{Candidate: text, MID: "0"})
	}
}

// address returns a new address (of the network for documentation of RFC 5737).
func (q *sequence) address() netip.AddrPort {
	q.number++
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(1 + q.number%250)}), uint16(1000+q.number))
}
