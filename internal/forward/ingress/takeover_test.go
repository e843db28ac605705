package ingress

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/volsfu/volsfu/internal/forward/forwardtest"
	"github.com/volsfu/volsfu/internal/forward/track"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// crossing is a track whose publisher moves from one connection to another.
type crossing struct {
	*rig
	peers  [2]*fakePeer
	in     [2]*Ingress
	sends  [2]*forwardtest.Publisher
	track  *track.Track
	reader *reader
}

func newCrossing(t *testing.T, mime string) *crossing {
	c := &crossing{rig: newRig(t, nil), peers: [2]*fakePeer{{}, {}}}
	for n := range c.in {
		c.in[n] = c.ingress(c.peers[n])
	}
	p := c.publish(c.in[0], 10, mime)
	c.track, c.sends[0] = p.track, p.Publisher
	c.sends[1] = forwardtest.NewPublisher(t, c.in[1], 40)
	c.in[1].BindFrom(40, 41, c.track, 7)
	c.reader = follow(c.track)
	return c
}

// frame returns the packets of the next frame, sent over one connection.
func (c *crossing) frame(over, size int) [][]byte {
	c.sends[over].Number, c.sends[over].Timestamp = c.sends[0].Number, c.sends[0].Timestamp
	c.sends[over].Next()
	packets := c.sends[over].Packets(size)
	c.sends[0].Number, c.sends[0].Timestamp = c.sends[over].Number, c.sends[over].Timestamp
	return packets
}

// pass passes time. Both ingresses look at their packets.
func (c *crossing) pass(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); {
		c.now = c.now.Add(holdInterval)
		for _, i := range c.in {
			i.Step(c.now)
		}
	}
}

// rtpHeader is the size of a publisher's RTP header.
const rtpHeader = 12

// expect checks that the log has got these packets since the last call, and nothing else.
func (c *crossing) expect(what string, packets ...[][]byte) {
	c.t.Helper()
	var want [][]byte
	for _, list := range packets {
		for _, packet := range list {
			want = append(want, packet[rtpHeader:])
		}
	}
	got := c.reader.read(c.t)
	if len(got) != len(want) {
		c.t.Fatalf("%s: %d packets, expected %d", what, len(got), len(want))
	}
	for n := range want {
		if !bytes.Equal(got[n], want[n]) {
			c.t.Fatalf("%s: packet %d is another one", what, n)
		}
	}
}

// TestTakeover checks that a track stays bound to a connection until another one carries its next frame, that frames of
// both do not mix, and that packets have the origin of their binding.
func TestTakeover(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	first, second, third := c.frame(0, 5000), c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first...)
	c.expect("over the former connection", first)
	// The next frame overtakes the end of the former one.
	c.sends[0].Send(c.now, second[:2]...)
	c.sends[1].Send(c.now, third...)
	c.pass(30 * time.Millisecond)
	c.expect("before the former frame is complete", second[:2])
	c.sends[0].Send(c.now, second[2:]...)
	c.pass(holdInterval)
	c.expect("after the former frame is complete", second[2:], third)
	if n := c.track.Stats().Frames; n != 3 {
		t.Errorf("%d frames have opened, expected 3", n)
	}
	origins := map[uint32]int{}
	for position := c.track.Log().Tail(); position < c.track.Log().Head(); position++ {
		p := c.track.Log().At(position)
		origins[p.Origin]++
		p.Release()
	}
	if origins[0] != len(first)+len(second) || origins[7] != len(third) || len(origins) != 2 {
		t.Errorf("the origins are %v", origins)
	}
	if taken := c.track.Taken(); taken != int64(len(first)+len(second)) {
		t.Errorf("taken over at %d, expected %d", taken, len(first)+len(second))
	}
	// The former connection may carry later frames again.
	again := c.frame(0, 2000)
	c.sends[0].Send(c.now, again...)
	c.expect("over the former connection again", again)
	c.sends[1].Send(c.now, third...)
	c.expect("a frame that was received")
	last := c.frame(1, 2000)
	c.sends[1].Send(c.now, last...)
	c.expect("over the next connection again", last)
}

// TestBindAgain repeats the binding of a stream whose packets wait, as every answer of a client does.
func TestBindAgain(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	first, second := c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first[:2]...)
	c.sends[1].Send(c.now, second...)
	c.in[1].BindFrom(40, 41, c.track, 7)
	c.sends[0].Send(c.now, first[2:]...)
	c.pass(holdInterval)
	c.expect("after the former frame is complete", first, second)
}

// TestBindAgainAfterTheFormer repeats the binding of a stream whose packets wait, after the former connection has
// ended.
func TestBindAgainAfterTheFormer(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	first, second := c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first[:2]...)
	c.sends[1].Send(c.now, second...)
	c.in[0].Unbind(c.track)
	c.in[1].BindFrom(40, 41, c.track, 7)
	c.pass(holdInterval)
	c.expect("after the former connection has ended", first[:2], second)
}

// TestTakeoverByName takes a track over with a stream that is bound by the name in its packets. The former frame is
// completed before, and a later packet of the former connection does not move the track back.
func TestTakeoverByName(t *testing.T) {
	const mid = 1
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.in[1].Unbind(c.track)
	c.in[1].BindByName(NameExtensions{MID: mid}, Name{MID: "cloud"}, c.track)
	first, second := c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first[:2]...)
	for n, packet := range second {
		var p rtp.Packet
		if err := p.Unmarshal(packet); err != nil {
			t.Fatal(err)
		}
		named := namedPacket(t, 40, p.SequenceNumber, p.Payload, map[uint8]string{mid: "cloud"})
		if n > 0 {
			named = packet
		}
		c.in[1].RTP(40, named, &transport.PacketInfo{At: c.now})
	}
	c.in[1].Flush()
	c.expect("before the former frame is complete", first[:2])
	c.sends[0].Send(c.now, first[2:]...)
	c.pass(holdInterval)
	c.expect("after the former frame is complete", first[2:], second)
	c.sends[0].Send(c.now, first[0])
	if c.expect("a packet of a former frame"); !c.in[1].Carries(c.track) || len(c.in[0].bindings.streams) > 0 {
		t.Errorf("the former connection has %d streams", len(c.in[0].bindings.streams))
	}
}

// TestLooksAreApart steps an ingress every millisecond: the former frame has the whole deadline of repairs to become
// complete.
func TestLooksAreApart(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	first, second := c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first[:2]...)
	c.sends[1].Send(c.now, second...)
	for end := c.now.Add(c.in[0].set.cfg.NACK.Deadline - 2*holdInterval); c.now.Before(end); {
		c.now = c.now.Add(time.Millisecond)
		for _, i := range c.in {
			i.Step(c.now)
		}
	}
	c.expect("before the deadline", first[:2])
	c.sends[0].Send(c.now, first[2:]...)
	c.pass(holdInterval)
	c.expect("after the former frame is complete", first[2:], second)
}

// TestReboundStream binds the SSRC of a track to another track, which another ingress has: no packet of the second
// track enters the first.
func TestReboundStream(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	other := c.publish(c.in[1], 50, volumetric.MIMEVolumetric)
	reader := follow(other.track)
	c.in[1].BindFrom(50, 51, c.track, 7)
	c.sends[1] = forwardtest.NewPublisher(t, c.in[1], 50)
	first, second := c.frame(0, 5000), c.frame(1, 5000)
	c.sends[0].Send(c.now, first...)
	c.sends[1].Send(c.now, second...)
	c.pass(holdInterval)
	c.expect("of both connections", first, second)
	if got := reader.read(t); len(got) != 0 {
		t.Errorf("%d packets of another track", len(got))
	}
}

// TestTakeoverAtRandom delays and loses packets of both connections at random, and repeats lost packets. Every packet
// arrives once.
func TestTakeoverAtRandom(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		lossy := seed%2 > 0
		c := newCrossing(t, volumetric.MIMEVolumetric)
		type arrival struct {
			at     time.Duration
			over   int
			packet []byte
			repair bool
		}
		var arrivals []arrival
		want := map[string]bool{}
		const interval, frames = 30 * time.Millisecond, 8
		latency := [2]time.Duration{time.Duration(random.IntN(80)) * time.Millisecond,
			time.Duration(random.IntN(80)) * time.Millisecond}
		for frame := range frames {
			over := frame / (frames / 2)
			for n, packet := range c.frame(over, 1+random.IntN(9000)) {
				want[string(packet[rtpHeader:])] = true
				at := time.Duration(frame)*interval + time.Duration(n)*time.Millisecond + latency[over]
				if frame > 0 {
					at += time.Duration(random.IntN(4)) * time.Millisecond
				}
				lost := lossy && frame > 0 && random.IntN(10) == 0
				if lost {
					at += 40 * time.Millisecond
				}
				arrivals = append(arrivals, arrival{at, over, packet, lost && over == 0})
			}
		}
		for at := time.Duration(0); at < 600*time.Millisecond; at += time.Millisecond {
			c.now = c.now.Add(time.Millisecond)
			for _, a := range arrivals {
				if a.at/time.Millisecond != at/time.Millisecond {
					continue
				}
				if a.repair {
					c.sends[a.over].Repair(c.now, a.packet)
				} else {
					c.sends[a.over].Send(c.now, a.packet)
				}
			}
			if at%holdInterval == 0 {
				c.in[0].Step(c.now)
				c.in[1].Step(c.now)
			}
		}
		got := c.reader.read(t)
		for _, packet := range got {
			if !want[string(packet)] {
				t.Fatalf("seed %d: a packet came twice, or is another one", seed)
			}
			delete(want, string(packet))
		}
		// A frame whose packets are all repaired after a later frame does not open.
		if len(want) > 0 || !lossy && c.track.Stats().Frames != frames {
			t.Fatalf("seed %d, latencies %v: %d of %d packets are missing, %d of %d frames have opened", seed, latency,
				len(want), len(got)+len(want), c.track.Stats().Frames, frames)
		}
	}
}

// TestTakeoverOfRepeatedFrames checks that frames that both connections carry arrive once.
func TestTakeoverOfRepeatedFrames(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	var frames [][][]byte
	for range 5 {
		packets := c.frame(0, 3000)
		c.sends[0].Send(c.now, packets...)

		c.sends[1].Number = c.sends[0].Number
		c.sends[1].Send(c.now, c.sends[1].Packets(3000)...)
		c.pass(30 * time.Millisecond)
		frames = append(frames, packets)
	}
	c.expect("frames over both connections", frames...)
	next := c.frame(1, 3000)
	c.sends[1].Send(c.now, next...)
	c.expect("a frame over the next connection", next)
}

// TestSucceed moves a track to a connection over which each packet arrives 50 ms later. The former connection stops at
// the end of a frame, and no packet is missing or arrives twice.
func TestSucceed(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEVolumetric, volumetric.MIMEOpus, volumetric.MIMEOpaque} {
		const frames, interval, late = 20, 30, 50
		c := newCrossing(t, mime)
		c.in[0].BindFrom(10, 11, c.track, 7)
		due := map[int][]func(){}
		var sent [][][]byte
		for frame := range frames {
			packets := c.next(mime)
			sent = append(sent, packets)
			for n, packet := range packets {
				copied := bytes.Clone(packet)
				copied[11] = 40
				at := frame*interval + 5*n
				due[at] = append(due[at], func() { c.sends[0].Send(c.now, packet) })
				if frame > 2 {
					due[at+late] = append(due[at+late], func() { c.sends[1].Send(c.now, copied) })
				}
			}
		}
		for at := range frames*interval + 2*late {
			c.now = c.now.Add(time.Millisecond)
			for _, do := range due[at] {
				do()
			}
			if at == 13*interval+2 {
				if c.in[1].Carries(c.track) || !c.in[0].Carries(c.track) {
					t.Errorf("%s: the later connection has taken the track over before it may", mime)
				}
				c.in[1].Succeed(40, c.track)
			}
			c.in[0].Step(c.now)
			c.in[1].Step(c.now)
		}
		c.expect(mime, sent...)
		if !c.in[1].Carries(c.track) || c.in[0].Carries(c.track) {
			t.Errorf("%s: the former connection still has the track", mime)
		}
		want := uint64(frames)
		switch mime {
		case volumetric.MIMEOpaque:
			// The start of the first frame may be missing.
			want--
		case volumetric.MIMEOpus:
			want = 0
		}
		if n := c.track.Stats().Frames; n != want {
			t.Errorf("%s: %d frames have opened, expected %d", mime, n, want)
		}
	}
}

// both sends the next frame over both connections, first over the former one.
func (c *crossing) both() [][]byte {
	packets := c.frame(0, 3000)
	c.sends[0].Send(c.now, packets...)
	c.sends[1].Number = c.sends[0].Number
	c.sends[1].Send(c.now, c.sends[1].Packets(3000)...)
	c.pass(30 * time.Millisecond)
	return packets
}

// TestSucceedStopsOneMirror checks that Succeed does not stop a connection that carries the track for another mirror,
// or for its publisher: the feed of the waiting stream may have no further frame.
func TestSucceedStopsOneMirror(t *testing.T) {
	for _, origin := range []uint32{0, 8} {
		c := newCrossing(t, volumetric.MIMEVolumetric)
		c.in[0].BindFrom(10, 11, c.track, origin)
		frames := [][][]byte{c.both(), c.both()}
		c.in[1].Succeed(40, c.track)
		for range 3 {
			packets := c.frame(0, 3000)
			c.sends[0].Send(c.now, packets...)
			c.pass(30 * time.Millisecond)
			frames = append(frames, packets)
		}
		c.expect(fmt.Sprintf("over the connection with origin %d", origin), frames...)
	}
}

// TestSucceedEnds lets the next connection fail after Succeed. The former connection resumes at the deadline of
// repairs, also if Succeed is repeated, and stops again when the next connection carries its frames again. No frame is
// missing.
func TestSucceedEnds(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.in[0].BindFrom(10, 11, c.track, 7)
	first := c.both()
	c.in[1].Succeed(40, c.track)
	limit := DefaultConfig().NACK.Deadline
	former := func() [][]byte {
		packets := c.frame(0, 3000)
		c.sends[0].Send(c.now, packets...)
		c.in[1].Succeed(40, c.track)
		return packets
	}
	resumed := [][][]byte{former()}
	c.pass(limit - holdInterval)
	resumed = append(resumed, former())
	c.expect("while the former connection stops", first)
	c.pass(holdInterval)
	c.expect("when the former connection resumes", resumed...)
	resumed = [][][]byte{former(), former(), c.both()}
	c.expect("after the former connection has resumed", resumed...)

	c.in[1].Succeed(40, c.track)
	former()
	c.sends[1].Number = c.sends[0].Number
	next := c.sends[1].Packets(3000)
	c.sends[1].Send(c.now, next...)
	c.pass(holdInterval)
	c.expect("over the next connection", next)
	if !c.in[1].Carries(c.track) {
		t.Error("the next connection has not taken the track over")
	}
	if n := c.stats().Duplicates; n != uint64(len(next)) {
		t.Errorf("%d packets were received twice, expected %d", n, len(next))
	}
}

// TestSucceedInAStall lets the program stall for longer than the deadline of repairs while the former connection stops.
// No packet is missing or arrives twice, whichever connection is read first afterwards.
func TestSucceedInAStall(t *testing.T) {
	for _, formerFirst := range []bool{false, true} {
		c := newCrossing(t, volumetric.MIMEVolumetric)
		c.in[0].BindFrom(10, 11, c.track, 7)
		first := c.both()
		c.in[1].Succeed(40, c.track)
		second := c.frame(0, 3000)
		c.sends[0].Send(c.now, second...)
		c.now = c.now.Add(2 * DefaultConfig().NACK.Deadline)
		third := c.frame(0, 3000)
		former := func() { c.sends[0].Send(c.now, third...) }
		next := func() {
			for _, packet := range slices.Concat(second, third) {
				copied := bytes.Clone(packet)
				copied[11] = 40
				c.sends[1].Send(c.now, copied)
			}
		}
		if formerFirst {
			former()
			next()
		} else {
			next()
			former()
		}
		c.pass(2 * holdInterval)
		c.expect(fmt.Sprintf("the former connection first: %t", formerFirst), first, second, third)
		if c.in[0].Carries(c.track) != formerFirst {
			t.Errorf("the former connection carries the track: %t", !formerFirst)
		}
	}
}

// TestBindWhileStopped repeats the binding of a stream that stops: the stream resumes with the packets that were kept.
func TestBindWhileStopped(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.in[0].BindFrom(10, 11, c.track, 7)
	first := c.both()
	c.in[1].Succeed(40, c.track)
	second := c.frame(0, 3000)
	c.sends[0].Send(c.now, second...)
	c.expect("while the former connection stops", first)
	c.in[0].BindFrom(10, 11, c.track, 7)
	c.pass(holdInterval)
	c.expect("after the binding", second)
	third := c.frame(0, 3000)
	c.sends[0].Send(c.now, third...)
	c.expect("a later frame", third)
}

// next returns the packets of the next frame, three except for audio.
func (c *crossing) next(mime string) (packets [][]byte) {
	switch c.sends[0].Next(); mime {
	case volumetric.MIMEVolumetric:
		return c.sends[0].Packets(3000)
	case volumetric.MIMEOpus:
		return [][]byte{c.sends[0].Packet(fmt.Append(nil, c.sends[0].Number), true)}
	}
	for n := range 3 {
		packets = append(packets, c.sends[0].Packet(fmt.Append(nil, c.sends[0].Number, n), n == 2))
	}
	return packets
}

// TestOpaqueTakeover lets the next frame of a track without frame numbers overtake the end of the former one. The
// former frame stays whole, and the next one opens.
func TestOpaqueTakeover(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEOpaque)
	first, second, third := c.next(volumetric.MIMEOpaque), c.next(volumetric.MIMEOpaque), c.next(volumetric.MIMEOpaque)
	for _, packet := range third {
		packet[11] = 40
	}
	c.sends[0].Send(c.now, first...)
	c.sends[0].Send(c.now, second[:2]...)
	c.sends[1].Send(c.now, third...)
	c.pass(30 * time.Millisecond)
	c.expect("before the former frame is complete", first, second[:2])
	c.sends[0].Send(c.now, second[2:]...)
	c.pass(holdInterval)
	c.expect("after the former frame is complete", second[2:], third)
	// The start of the first frame may be missing.
	if n := c.track.Stats().Frames; n != 2 {
		t.Errorf("%d frames have opened, expected 2", n)
	}

	// The end of the former frame is lost.
	c = newCrossing(t, volumetric.MIMEOpaque)
	first, second = c.next(volumetric.MIMEOpaque), c.next(volumetric.MIMEOpaque)
	for _, packet := range second {
		packet[11] = 40
	}
	c.sends[0].Send(c.now, first[:2]...)
	c.sends[1].Send(c.now, second...)
	c.pass(DefaultConfig().NACK.Deadline - 2*holdInterval)
	c.expect("while the former frame may become complete", first[:2])
	c.pass(3 * holdInterval)
	c.expect("afterwards", second)
}

// TestTakeoverAfterALoss checks how long packets wait for frames of the former connection that do not come, and that
// the publisher may start its numbers again.
func TestTakeoverAfterALoss(t *testing.T) {
	limit := DefaultConfig().NACK.Deadline
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.sends[0].Send(c.now, c.frame(0, 1000)...)
	c.reader.read(t)
	c.frame(0, 1000) // lost
	packets := c.frame(1, 1000)
	c.sends[1].Send(c.now, packets...)
	c.pass(limit - 2*holdInterval)
	c.expect("while the lost frame may come")
	c.pass(3 * holdInterval)
	c.expect("afterwards", packets)

	c = newCrossing(t, volumetric.MIMEVolumetric)
	c.sends[0].Number = 5000
	c.sends[0].Send(c.now, c.frame(0, 1000)...)
	c.reader.read(t)
	c.pass(limit)
	c.sends[0].Number = 0
	packets = c.frame(1, 1000)
	c.sends[1].Send(c.now, packets...)
	c.expect("before the goroutine has looked")
	c.pass(minLooks * holdInterval)
	c.expect("numbers from the start, after the former connection was silent", packets)
}

// TestTakeoverWithoutTheFirstPacket loses the first packets of the next connection. They are requested, and the frame
// opens.
func TestTakeoverWithoutTheFirstPacket(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.sends[0].Send(c.now, c.frame(0, 1000)...)
	c.reader.read(t)
	packets := c.frame(1, 5000)
	c.sends[1].Send(c.now, packets[2:]...)
	c.expect("without the first two packets", packets[2:])
	var requested []uint16
	for range 10 {
		c.now = c.now.Add(holdInterval)
		compounds, _ := c.in[1].Step(c.now)
		for _, compound := range compounds {
			for _, p := range compound {
				if nack, ok := p.(*rtcp.TransportLayerNack); ok && len(requested) == 0 {
					for _, pair := range nack.Nacks {
						requested = append(requested, pair.PacketList()...)
					}
				}
			}
		}
	}
	if len(requested) != 2 {
		t.Errorf("the packets %v are requested, expected 2", requested)
	}
	c.sends[1].Repair(c.now, packets[:2]...)
	c.expect("after the repair", packets[:2])
	if n := c.track.Stats().Frames; n != 2 {
		t.Errorf("%d frames have opened, expected 2", n)
	}
}

// TestTakeoverOfOtherMedia checks tracks without frame numbers: later timestamps take the track over.
func TestTakeoverOfOtherMedia(t *testing.T) {
	for _, mime := range []string{volumetric.MIMEOpus, volumetric.MIMEOpaque} {
		c := newCrossing(t, mime)
		send := func(over int, timestamp uint32) [][]byte {
			c.sends[over].Timestamp = timestamp
			packet := c.sends[over].Packet(fmt.Append(nil, over, timestamp), true)
			c.sends[over].Send(c.now, packet)
			return [][]byte{packet}
		}
		former := send(0, 1000)
		send(1, 1000)
		c.expect(mime+": the same timestamp", former)
		next := send(1, 1960)
		c.expect(mime+": a later timestamp", next)
	}
}

// TestTakeoverWithAnotherOrigin: every connection of a browser has another origin of timestamps. A packet far behind
// the former ones takes the track over at once, also while the former connection still sends.
func TestTakeoverWithAnotherOrigin(t *testing.T) {
	for seconds, taken := range map[uint32]bool{5: false, 20: true} {
		c := newCrossing(t, volumetric.MIMEOpus)
		send := func(over int, timestamp uint32) [][]byte {
			c.sends[over].Timestamp = timestamp
			packet := c.sends[over].Packet(fmt.Append(nil, over, timestamp), true)
			c.sends[over].Send(c.now, packet)
			return [][]byte{packet}
		}
		packets := send(0, 1000)
		if next := send(1, 1000-seconds*48000); taken {
			packets = append(packets, next...)
		}
		c.expect(fmt.Sprintf("%d s behind", seconds), packets)
	}
}

// TestTakeoverEnds checks the ends of bindings that wait: Unbind, Close, another track with the SSRC, and a closed
// track. A track that the former connection leaves is bound with the next packet.
func TestTakeoverEnds(t *testing.T) {
	frame := func(c *crossing) [][]byte {
		packets := c.frame(1, 2000)
		c.sends[1].Send(c.now, packets...)
		c.pass(holdInterval)
		return packets
	}
	begin := func() *crossing {
		c := newCrossing(t, volumetric.MIMEVolumetric)
		c.sends[0].Send(c.now, c.frame(0, 2000)[:1]...)
		c.frame(0, 2000) // lost
		c.reader.read(t)
		return c
	}
	for name, end := range map[string]func(*crossing){
		"Unbind":        func(c *crossing) { c.in[1].Unbind(c.track) },
		"Close":         func(c *crossing) { c.in[1].Close() },
		"another track": func(c *crossing) { c.in[1].Bind(40, 41, c.tracks.New(track.Config{})) },
		"a closed track": func(c *crossing) {
			c.track.Close()
		},
	} {
		c := begin()
		frame(c)
		end(c)
		c.pass(2 * DefaultConfig().NACK.Deadline)
		if name != "a closed track" {
			c.expect(name)
		}
		if n := c.in[1].takeovers.waiting.held; n != 0 {
			t.Errorf("%s: %d packets are held", name, n)
		}
	}
	for name, end := range map[string]func(*crossing){
		"the former connection unbinds": func(c *crossing) { c.in[0].Unbind(c.track) },
		"the former connection closes":  func(c *crossing) { c.in[0].Close() },
	} {
		c := begin()
		held := frame(c)
		end(c)
		c.pass(holdInterval)
		c.expect(name, held)
	}
}

// TestHeldPacketsAreBounded checks the bound of the packets that one ingress holds.
func TestHeldPacketsAreBounded(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	c.sends[0].Send(c.now, c.frame(0, 2000)[:1]...)
	for range 2 * maxHeldPackets / 100 {
		c.sends[1].Send(c.now, c.frame(1, 100*payload.FragmentSize)...)
	}
	if n := c.in[1].takeovers.waiting.held; n != maxHeldPackets {
		t.Errorf("%d packets are held, expected %d", n, maxHeldPackets)
	}
}

// TestAnInjectorTakesOver checks that a track that moves to injected frames misses none.
func TestAnInjectorTakesOver(t *testing.T) {
	c := newCrossing(t, volumetric.MIMEVolumetric)
	third := c.ingress(&fakePeer{})
	j := third.NewInjector(c.track, 1<<20)
	former := c.frame(0, 3000)
	c.sends[0].Send(c.now, former...)
	c.expect("before the first frame is injected", former)
	if err := j.Frame(payload.Descriptor{Frame: c.sends[0].Number + 1}, make([]byte, 100), 1, c.now); err != nil {
		t.Fatal(err)
	}
	if got := c.reader.read(t); len(got) != 1 {
		t.Errorf("%d packets of the injected frame", len(got))
	}
	third.Unbind(c.track)
	chunks := chunksOf(c.sends[0].Number+2, make([]byte, 2*payload.ChunkSize))
	if err := j.Chunk(&chunks[0], c.now); err != nil || third.chunks.Used() != 0 {
		t.Errorf("the injector has not ended: %d bytes are held, %v", third.chunks.Used(), err)
	}
}

// TestTakeoversCross moves tracks between two connections in both directions at the same time.
func TestTakeoversCross(t *testing.T) {
	r := live(t, nil)
	in := [2]*Ingress{r.set.New(&fakePeer{}), r.set.New(&fakePeer{})}
	const tracks, frames = 8, 40
	all := make([]*track.Track, tracks)
	for n := range all {
		all[n] = r.publish(in[n%2], uint32(100+10*n), volumetric.MIMEVolumetric).track
		in[1-n%2].Bind(uint32(500+10*n), 0, all[n])
	}
	var running sync.WaitGroup
	var meet [frames]sync.WaitGroup
	for frame := range meet {
		meet[frame].Add(2)
	}
	for side, i := range in {
		running.Go(func() {
			senders := make([]*forwardtest.Publisher, tracks)
			for n := range senders {
				senders[n] = forwardtest.NewPublisher(t, i, uint32(100+10*n))
				if n%2 != side {
					senders[n].SSRC = uint32(500 + 10*n)
				}
			}
			for frame := range frames {
				for n, s := range senders {
					s.Number = uint32(frame)
					s.Next()
					packets := s.Packets(2000)
					// Half of the tracks are here before the middle, the other half afterwards.
					if (n%2 == side) == (frame < frames/2) {
						for _, packet := range packets {
							i.RTP(s.SSRC, packet, &transport.PacketInfo{At: time.Now()})
						}
					}
				}
				i.Flush()
				meet[frame].Done()
				meet[frame].Wait()
			}
		})
	}
	running.Wait()
	for n, made := range all {
		if got := made.Stats().Frames; got != frames {
			t.Errorf("track %d has %d frames, expected %d", n, got, frames)
		}
	}
}
