package feedback_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/test/race"
)

const (
	mediaSSRC, repairSSRC = 1111, 2222
	loopInterval          = time.Second / 30
	loopTick              = time.Millisecond
)

// loopFrames is the number of frames of a repairLoop.
const loopFrames = 1000

// repairLoop is a server and a receiver in virtual time, with random loss in both directions: frames of 100 packets ±
// 20 % are published with a quarter of parity, of which the slot's Switcher forwards the share of ParityShare, over 13
// ms. The receiver checks for missing packets every 5 ms, as the client does.
type repairLoop struct {
	t        testing.TB
	random   *rand.Rand
	now      time.Time
	rtt      time.Duration
	deadline time.Duration
	down, up *netem.Link

	// The server.
	frames   uint32
	noise    [122 * payload.FragmentSize]byte
	data     map[uint32][]byte
	fragment payload.Fragmenter
	next     int64
	switcher *switching.Switcher
	queue    []outgoing
	sent     map[uint16][]byte
	repeated map[uint16]time.Time
	rtx      feedback.RTX

	// The receiver.
	numbers     feedback.Unwrapper
	nacks       *feedback.NACKGenerator
	repair      feedback.FrameRepair
	reassembler *payload.Reassembler
	complete    int

	sourceBytes, parityBytes, repairBytes, requests int
}

type outgoing struct {
	at     time.Time
	packet []byte
}

func newRepairLoop(t testing.TB, loss float64, rtt time.Duration) *repairLoop {
	l := &repairLoop{
		t: t, random: rand.New(rand.NewPCG(3, 4)), now: time.Unix(1_800_000_000, 0), rtt: rtt,
		deadline: 150 * time.Millisecond,
		data:     map[uint32][]byte{}, switcher: switching.New(switching.Config{FirstSequence: 65_000}),
		sent:     map[uint16][]byte{},
		repeated: map[uint16]time.Time{}, rtx: feedback.RTX{SSRC: repairSSRC, PayloadType: 97},
		nacks: feedback.NewNACKGenerator(feedback.DefaultConfig().NACK),
	}
	if rtt > 50*time.Millisecond {
		l.deadline = 250 * time.Millisecond
	}
	for i := range l.noise {
		l.noise[i] = byte(l.random.Uint32())
	}
	for i, link := range []**netem.Link{&l.down, &l.up} {
		made, err := netem.NewLink(netem.Config{Delay: rtt / 2, Loss: loss}, uint64(5+i), nil)
		if err != nil {
			t.Fatal(err)
		}
		*link = made
	}
	cfg := payload.DefaultConfig()
	cfg.Deadline = l.deadline
	l.reassembler = payload.NewReassembler(cfg)
	l.switcher.Select(switching.Source{Track: 1, Group: 1}, l.now)
	l.switcher.SetParity(feedback.ParityShare(loss, rtt, l.deadline))
	return l
}

// publish passes one frame to the switcher, and queues the forwarded packets.
func (l *repairLoop) publish() {
	begin := l.random.IntN(1000)
	data := l.noise[begin : begin+payload.FragmentSize*(80+l.random.IntN(41))-l.random.IntN(1000)]
	source := payload.SourceFragments(len(data))
	if err := l.fragment.Begin(payload.Descriptor{Frame: l.frames, Parity: uint16(source / 4)}, data); err != nil {
		l.t.Fatal(err)
	}
	l.data[l.frames] = data
	n := l.fragment.Packets()
	for i := range n {
		p := switching.Packet{
			Track: 1, Sequence: l.next + int64(i), Timestamp: l.frames * 3000, Framed: true, Frame: int64(l.frames),
			FrameStart: l.next, FramePackets: n,
			SourcePackets: source, Last: i == n-1, Opens: i == 0, Key: true,
		}
		v := l.switcher.Packet(&p, l.now)
		if v.Action != switching.Forward {
			continue
		}
		body, err := l.fragment.AppendPacket(nil, i)
		if err != nil {
			l.t.Fatal(err)
		}
		if i < source {
			l.sourceBytes += len(body)
		} else {
			l.parityBytes += len(body)
		}
		packet := l.marshal(&rtp.Header{Version: 2, SSRC: mediaSSRC, PayloadType: 96, SequenceNumber: v.Sequence,
			Timestamp: v.Timestamp, Marker: v.Marker}, body)
		l.sent[v.Sequence] = packet
		l.queue = append(l.queue, outgoing{l.now.Add(time.Duration(i) * 13 * time.Millisecond / time.Duration(n)),
			packet})
	}
	l.next += int64(n)
	l.frames++
}

func (l *repairLoop) marshal(h *rtp.Header, body []byte) []byte {
	packet, err := (&rtp.Packet{Header: *h, Payload: body}).Marshal()
	if err != nil {
		l.t.Fatal(err)
	}
	return packet
}

// answer retransmits the requested packets, each once per round trip.
func (l *repairLoop) answer(number uint16) {
	packet, ok := l.sent[number]
	if last, again := l.repeated[number]; !ok || again && l.now.Sub(last) < l.rtt {
		return
	}
	l.repeated[number] = l.now
	var original rtp.Packet
	if err := original.Unmarshal(packet); err != nil {
		l.t.Fatal(err)
	}
	body, err := l.rtx.Pack(make([]byte, len(original.Payload)+2), &original.Header, original.Payload)
	if err != nil {
		l.t.Fatal(err)
	}
	l.repairBytes += len(body)
	l.transmit(l.down, l.marshal(&original.Header, body))
}

func (l *repairLoop) transmit(link *netem.Link, packet []byte) {
	link.Send(&netem.Packet{Payload: packet, Size: len(packet) + 28}, l.now)
}

// receive processes a packet that arrived.
func (l *repairLoop) receive(packet []byte) {
	var p rtp.Packet
	if err := p.Unmarshal(packet); err != nil {
		l.t.Fatal(err)
	}
	if p.SSRC == repairSSRC {
		original := make([]byte, len(packet))
		n, err := feedback.UnpackRTX(original, packet, mediaSSRC, 96)
		if err != nil {
			l.t.Fatal(err)
		}
		if err := p.Unmarshal(original[:n]); err != nil {
			l.t.Fatal(err)
		}
	}
	var d payload.Descriptor
	rest, err := d.Unmarshal(p.Payload)
	if err != nil {
		l.t.Fatal(err)
	}
	sequence, _ := l.numbers.Unwrap(p.SequenceNumber)
	l.nacks.Received(sequence, l.now)
	place := feedback.FramePacket{
		Sequence: sequence, Frame: d.Frame, Index: int(d.Index), Source: int(d.Source), Packets: d.Packets(),
		Marker: p.Marker,
	}
	l.repair.Received(l.nacks, place, l.now)
	frame, err := l.reassembler.Push(&d, rest, l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	if frame == nil {
		return
	}
	l.repair.Complete(l.nacks, place)
	if !bytes.Equal(frame.Data, l.data[frame.Number]) {
		l.t.Fatalf("frame %d differs from the published one", frame.Number)
	}
	delete(l.data, frame.Number)
	l.complete++
	frame.Release()
}

// look is the receiver's check every 5 ms.
func (l *repairLoop) look() {
	l.reassembler.Expire(l.now, nil)
	if at := l.nacks.Next(); at.IsZero() || l.now.Before(at) {
		return
	}
	ask, _ := l.nacks.Due(l.now, l.rtt, nil, nil)
	if len(ask) == 0 {
		return
	}
	l.requests++
	body := make([]byte, 0, 2*len(ask))
	for _, number := range ask {
		body = append(body, byte(number>>8), byte(number))
	}
	l.transmit(l.up, body)
}

// run publishes all frames, and waits for the last.
func (l *repairLoop) run() {
	begin := l.now
	for tick := 0; l.now.Sub(begin) < loopFrames*loopInterval+time.Second; tick++ {
		l.now = begin.Add(time.Duration(tick) * loopTick)
		if l.frames < loopFrames && l.now.Sub(begin) >= time.Duration(l.frames)*loopInterval {
			l.publish()
		}
		sent := 0
		for ; sent < len(l.queue) && !l.queue[sent].at.After(l.now); sent++ {
			l.transmit(l.down, l.queue[sent].packet)
		}
		l.queue = l.queue[sent:]
		for _, p := range l.up.Deliver(l.now) {
			for body := p.Payload; len(body) > 0; body = body[2:] {
				l.answer(uint16(body[0])<<8 | uint16(body[1]))
			}
		}
		for _, p := range l.down.Deliver(l.now) {
			l.receive(p.Payload)
		}
		if tick%5 == 0 {
			l.look()
		}
	}
}

// TestRepairLoop checks the share of decodable frames under random loss in both directions: by requests if the round
// trip is short, by parity and one request if it is long, and by parity alone if it is longer than the deadline.
func TestRepairLoop(t *testing.T) {
	race.SkipSequential(t)
	tests := []struct {
		loss      float64
		rtt       time.Duration
		decodable float64
		overhead  float64 // parity and retransmissions relative to the bytes of source packets
	}{
		{0.01, 20 * time.Millisecond, 0.999, 0.012},
		{0.05, 20 * time.Millisecond, 0.995, 0.065},
		{0.10, 20 * time.Millisecond, 0.98, 0.145},
		{0.01, 150 * time.Millisecond, 0.995, 0.03},
		{0.05, 150 * time.Millisecond, 0.98, 0.09},
		{0.10, 150 * time.Millisecond, 0.95, 0.17},
		{0.01, 300 * time.Millisecond, 0.995, 0.06},
		{0.05, 300 * time.Millisecond, 0.98, 0.12},
		{0.10, 300 * time.Millisecond, 0.95, 0.2},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v loss, %v", test.loss, test.rtt), func(t *testing.T) {
			l := newRepairLoop(t, test.loss, test.rtt)
			l.run()
			decodable := float64(l.complete) / loopFrames
			parity, repairs := float64(l.parityBytes)/float64(l.sourceBytes),
				float64(l.repairBytes)/float64(l.sourceBytes)
			s := l.nacks.Stats()
			t.Logf("%.4f of the frames decodable; parity %.3f, retransmissions %.3f; %d requests; "+
				"%d packets missing: %d recovered, %d spared, %d lost",
				decodable, parity, repairs, l.requests, s.Missing, s.Recovered, s.Spared, s.Lost)
			if decodable < test.decodable || parity+repairs > test.overhead {
				t.Errorf("%.4f of the frames are decodable, expected %v; overhead %.4f, expected at most %v", decodable,
					test.decodable, parity+repairs, test.overhead)
			}
			if late := test.rtt > l.deadline; late != (l.requests == 0) {
				t.Errorf("%d requests were sent at a round trip of %v", l.requests, test.rtt)
			}
			if s.Missing != s.Reordered+s.Recovered+s.Spared+s.Lost+uint64(l.nacks.Missing()) {
				t.Errorf("%+v: the counts do not add up", s)
			}
		})
	}
}
