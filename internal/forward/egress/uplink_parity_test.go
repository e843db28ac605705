package egress

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/race"
)

// uplinkSource is the number of source packets of a frame that feedback.ParityShare assumes.
const uplinkSource = 100

// uplinkLoop is a publisher on a lossy path, with a receiver on a short path, in virtual time. The publisher makes the
// parity that the server requests and answers requests. The receiver gives frames up after the short deadline of 150
// ms, and requests nothing.
type uplinkLoop struct {
	*rig
	publisher *publisher
	to        *subscriber
	peer      *fakePeer
	up        link[[]byte]
	down      link[[]uint16]
	// downLoss is the loss behind the server.
	downLoss float64
	random   *rand.Rand
	// sent are the publisher's packets by number.
	sent        map[uint16][]byte
	reassembler *payload.Reassembler
	taken       int
	// complete, source and parity count frames, and packets that the receiver was sent; requests counts packets
	// requested from the publisher.
	complete, source, parity, requests int
}

func newUplinkLoop(t *testing.T, loss float64, rtt time.Duration) *uplinkLoop {
	race.SkipSequential(t)
	random := rand.New(rand.NewPCG(5, 6))
	receiving := payload.DefaultConfig()
	receiving.Deadline = defaultConfig().NACK.Deadline
	l := &uplinkLoop{
		rig: newRig(t, nil), peer: &fakePeer{rtt: rtt}, random: random, sent: make(map[uint16][]byte),
		up:          link[[]byte]{delay: rtt / 2, loss: loss, random: random},
		down:        link[[]uint16]{delay: rtt / 2, random: random},
		reassembler: payload.NewReassembler(receiving),
	}
	l.publisher = l.publish(l.ingress(l.peer), 10, volumetric.MIMEVolumetric)
	l.to = l.subscribe(1000, volumetric.KindVideo)
	l.to.slot.Select(l.publisher.track, 1, l.now)
	l.rig.run()
	return l
}

// asked returns the share of parity that the publisher's only receiver needs.
func (l *uplinkLoop) asked() float64 { return l.to.receiver.ParityOf(l.publisher.track) }

// frames publishes n frames and waits for the last.
func (l *uplinkLoop) frames(n int) {
	tail := int(time.Second/frameInterval) + 1
	for frame := range n + tail {
		if frame < n {
			l.frame()
		}
		for range frameInterval / time.Millisecond {
			l.now = l.now.Add(time.Millisecond)
			l.step()
		}
	}
}

func (l *uplinkLoop) frame() {
	p := l.publisher
	p.Parity = uint16(math.Ceil(l.asked()*uplinkSource - 1e-9))
	p.Next()
	for _, packet := range p.Packets(uplinkSource * payload.FragmentSize) {
		var h rtp.Header
		if _, err := h.Unmarshal(packet); err != nil {
			l.t.Fatal(err)
		}
		l.sent[h.SequenceNumber] = packet
		l.up.send(packet, l.now)
	}
}

func (l *uplinkLoop) step() {
	p := l.publisher
	for _, packet := range l.up.take(l.now) {
		var h rtp.Header
		if _, err := h.Unmarshal(packet); err != nil {
			l.t.Fatal(err)
		}
		p.ingress.RTP(h.SSRC, packet, forwardtest.InfoAt(l.now))
	}
	p.ingress.Flush()
	packets, _ := step(p.ingress, l.now)
	if numbers := asked(packets, p.SSRC); len(numbers) > 0 {
		l.requests += len(numbers)
		l.down.send(numbers, l.now)
	}
	for _, numbers := range l.down.take(l.now) {
		for _, n := range numbers {
			l.up.send(p.Retransmission(l.sent[n]), l.now)
		}
	}
	l.run()
	l.receive()
}

// receive processes the packets that the receiver was sent.
func (l *uplinkLoop) receive() {
	sent := l.to.outlet.sentFrom(l.taken)
	l.taken += len(sent)
	for _, packet := range sent {
		var d payload.Descriptor
		rest, err := d.Unmarshal(packet.Payload)
		if err != nil {
			l.t.Fatal(err)
		}
		if d.Index < d.Source {
			l.source++
		} else {
			l.parity++
		}
		if l.random.Float64() < l.downLoss {
			continue
		}
		frame, err := l.reassembler.Push(&d, rest, l.now)
		if err != nil {
			l.t.Fatal(err)
		}
		if frame != nil {
			l.complete++
			frame.Release()
		}
	}
	l.reassembler.Expire(l.now, nil)
}

// TestUplinkIsProtected closes the loop over a publisher's path that loses packets. If the round trip is short,
// requests repair the losses. If repairs would be later than receivers wait, frames carry parity, and every receiver is
// sent the parity for the publisher's losses in addition to the parity for its own.
func TestUplinkIsProtected(t *testing.T) {
	for _, test := range []struct {
		name             string
		loss             float64
		rtt              time.Duration
		downLoss, own    float64
		least, most      float64 // of the share asked for
		decodable        float64
		requestsPerFrame int // at most
	}{
		{"no loss", 0, 170 * time.Millisecond, 0, 0, 0, 0, 1, 0},
		{"requests suffice", 0.05, 20 * time.Millisecond, 0, 0, 0, 0, 0.995, 8},
		{"requests come too late", 0.05, 170 * time.Millisecond, 0, 0, 0.09, 0.13, 0.98, 8},
		{"little loss", 0.01, 170 * time.Millisecond, 0, 0, 0.03, 0.07, 0.99, 4},
		{"both paths lose", 0.05, 170 * time.Millisecond, 0.05, 0.11, 0.2, 0.25, 0.96, 8},
		{"more than may be asked for", 0.1, 170 * time.Millisecond, 0.05, 0.11, 0.25, 0.25, 0.9, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newUplinkLoop(t, test.loss, test.rtt)
			l.downLoss = test.downLoss
			l.to.receiver.protection.Set(test.own)
			l.frames(120)
			l.complete, l.source, l.parity, l.requests = 0, 0, 0, 0
			const frames = 150
			l.frames(frames)
			share := l.asked()
			t.Logf("%d of %d frames complete, %d source and %d parity packets sent, %d requested; the share is %v",
				l.complete, frames, l.source, l.parity, l.requests, share)
			if share < test.least || share > test.most {
				t.Errorf("the share is %v, expected %v to %v", share, test.least, test.most)
			}
			if float64(l.complete) < test.decodable*frames {
				t.Errorf("%d of %d frames complete, expected %v of them", l.complete, frames, test.decodable)
			}
			if l.requests > test.requestsPerFrame*frames {
				t.Errorf("%d packets asked for, expected at most %d per frame", l.requests, test.requestsPerFrame)
			}
			if own := l.to.receiver.ParityShare(); own != test.own {
				t.Errorf("the receiver's own share is %v, expected %v: the publisher's losses are not its own", own,
					test.own)
			}
			if l.parity > 0 && share == 0 {
				t.Errorf("%d packets of parity were sent, expected none", l.parity)
			}
		})
	}
}

// TestUplinkLossEnds checks that parity is requested only while the publisher's path loses packets, and that a receiver
// that cannot use parity is sent none.
func TestUplinkLossEnds(t *testing.T) {
	l := newUplinkLoop(t, 0.05, 170*time.Millisecond)
	bare := l.subscribe(2000, volumetric.KindVideo)
	bare.receiver.SendBare()
	bare.slot.Select(l.publisher.track, 1, l.now)
	l.frames(120)
	if share := l.asked(); share < 0.09 {
		t.Errorf("the share is %v, expected 0.09 or more", share)
	}
	if share := bare.receiver.ParityOf(l.publisher.track); share != 0 {
		t.Errorf("the share of a receiver without parity is %v", share)
	}
	for _, packet := range bare.outlet.sent() {
		if d := descriptorOf(t, packet); d.Index >= d.Source {
			t.Fatalf("a receiver without parity was sent packet %d of a frame of %d", d.Index, d.Source)
		}
	}
	l.up.loss = 0
	l.frames(240)
	if share := l.asked(); share != 0 {
		t.Errorf("the share is %v 8 s after the last loss, expected none", share)
	}
	audio := l.publish(l.publisher.ingress, 20, volumetric.MIMEOpus)
	audio.track.Enter(protectedSource(0.1))
	if share := l.to.receiver.ParityOf(audio.track); share != 0 {
		t.Errorf("audio is sent with %v of parity", share)
	}
	if share := l.to.receiver.ParityOf(nil); share != 0 {
		t.Errorf("a slot that carries nothing has a share of %v", share)
	}
}

// protectedSource is a source whose path needs a share of parity.
type protectedSource float64

func (protectedSource) Unbind()                {}
func (protectedSource) RequestKeyFrame()       {}
func (protectedSource) RTT() time.Duration     { return 0 }
func (s protectedSource) ParityShare() float64 { return float64(s) }
