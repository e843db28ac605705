package uplink

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// trackFrame makes a frame of a track. Its packets have 1,000 bytes on the wire.
func trackFrame(p *Publication, track, packets int, begin time.Time, budget time.Duration) *heldFrame {
	body := make([]byte, 1000-congestion.PacketOverhead)
	return &heldFrame{
		line: p.lines[track], publication: p, track: track, payloads: slices.Repeat([][]byte{body}, packets),
		begin: begin, budget: budget,
	}
}

// setPath sets the path of the uplink until the next step of the uplink.
func setPath(u *Uplink, path pacing.Path, now time.Time) {
	u.queue.sender.SetPath(path, u.queue.at(now))
}

// limitTo numbers packets and sets the start rate, which is valid until the next step of the uplink.
func limitTo(t *testing.T, u *Uplink, rate congestion.Bitrate) {
	t.Helper()
	if limit := u.queue.sender.Limit(); limit != 0 {
		t.Fatalf("the uplink is limited to %v before packets are numbered, expected no limit", limit)
	}
	u.Number(1, false, limits(rate, 0), time.Now())
	if limit := u.queue.sender.Limit(); limit != rate {
		t.Fatalf("the uplink is limited to %v, expected %v", limit, rate)
	}
}

// waits reports whether packets are queued.
func waits(u *Uplink) bool {
	_, waits := u.Due()
	return waits
}

// TestFramesLeaveEvenly spreads frames of two lines. A tick sends the packets of the next 2 ms.
func TestFramesLeaveEvenly(t *testing.T) {
	u := newRig(t)
	publisher, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 2))
	start := u.queue.started
	first := []uint16{publisher.lines[0].next, publisher.lines[1].next}
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	add := func(ms, spread, track, packets int) {
		f := trackFrame(publisher, track, packets, at(ms), 0)
		f.spread = time.Duration(spread) * time.Millisecond
		u.queue.add(f)
	}
	// expect names a packet by 10 x track + number.
	expect := func(ms int, want ...int) {
		t.Helper()
		var got []int
		for _, o := range u.Depart(at(ms), nil) {
			got = append(got, 10*o.line.track+int(o.Header.SequenceNumber-first[o.line.track]))
		}
		if !slices.Equal(got, want) {
			t.Errorf("at %d ms: packets %v leave, expected %v", ms, got, want)
		}
	}
	add(0, 12, 0, 5)
	expect(0, 0)
	expect(2)
	expect(3, 1)
	expect(7, 2)
	expect(20, 3, 4)
	if waits(u) {
		t.Error("packets wait after the last one has left")
	}
	add(30, 10, 0, 3)
	add(31, 10, 1, 2)
	expect(31, 5, 10)
	expect(60, 6, 7, 11)
	add(70, 0, 0, 2)
	expect(70, 8, 9)
}

// TestUplinkKeepsTheRate sends at most 2.5 times the estimate, and without an estimate everything at once.
func TestUplinkKeepsTheRate(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := u.queue.started
	// 1 MB/s: 2,500 bytes per millisecond, and 5,000 for a late tick.
	setPath(u, pacing.Path{Estimate: 8e6}, start)
	u.queue.add(trackFrame(p, 0, 60, start, 0))
	sent := 0
	for ms := range 30 {
		sent += len(u.Depart(start.Add(time.Duration(ms)*time.Millisecond), nil))
		if most := (5*ms+1)/2 + 11; sent > most {
			t.Fatalf("%d packets have left after %d ms, expected at most %d", sent, ms, most)
		}
	}
	if sent != 60 || waits(u) {
		t.Errorf("%d packets have left, expected all 60", sent)
	}
	setPath(u, pacing.Path{}, start.Add(time.Second))
	u.queue.add(trackFrame(p, 1, 500, start.Add(time.Second), 0))
	if n := len(u.Depart(start.Add(time.Second), nil)); n != 500 {
		t.Errorf("%d packets leave without an estimate, expected all 500", n)
	}
}

// TestUplinkDropsWholeFrames offers 2 MB/s to an uplink of 1 MB/s. Half of the frames leave complete, and the tracks
// alternate.
func TestUplinkDropsWholeFrames(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 4))
	start := u.queue.started
	limitTo(t, u, 8e6)
	const interval = 33 * time.Millisecond
	var first [4]uint16
	for track := range first {
		first[track] = p.lines[track].next
	}
	var begun, whole, packets, dropped [4]int
	for ms := range 3300 {
		now := start.Add(time.Duration(ms) * time.Millisecond)
		if ms%33 == 0 {
			for track := range 4 {
				u.queue.add(trackFrame(p, track, 16, now, interval))
			}
		}
		for _, o := range u.Depart(now, nil) {
			track := o.line.track
			if want := first[track] + uint16(packets[track]); o.Header.SequenceNumber != want {
				t.Fatalf("track %d: packet %d leaves, expected %d", track, o.Header.SequenceNumber, want)
			}
			if packets[track]%16 == 0 {
				begun[track]++
			}
			packets[track]++
			if o.Header.Marker {
				whole[track]++
			}
		}
		for _, d := range u.queue.dropped {
			dropped[d.track]++
		}
		u.queue.dropped = u.queue.dropped[:0]
	}
	sum := 0
	for track := range 4 {
		sum += packets[track]
		if begun[track] < 45 || begun[track] > 60 || begun[track]+dropped[track] < 95 || begun[track]-whole[track] > 1 {
			t.Errorf("track %d: %d frames began, %d left whole, %d were dropped, expected about half of 100 each",
				track, begun[track], whole[track], dropped[track])
		}
	}
	if sum < 3200 || sum > 3300+100+60 {
		t.Errorf("%d packets left in 3.3 s at 1,000 per second", sum)
	}
}

// TestLateTicksDropNothing: the sending goroutine sleeps for longer than the budget of a frame. The frame has not
// waited for the path, and is not dropped.
func TestLateTicksDropNothing(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
	start := u.queue.started
	limitTo(t, u, 8e6)
	u.queue.add(trackFrame(p, 0, 2, start, 33*time.Millisecond))
	if n := len(u.Depart(start.Add(time.Second), nil)); n != 2 || len(u.queue.dropped) != 0 {
		t.Errorf("%d packets leave, %d frames were dropped, expected 2 packets", n, len(u.queue.dropped))
	}
}

func TestAudioDoesNotWait(t *testing.T) {
	u := newRig(t)
	voice, _ := published(t, u, described("voice", volumetric.MIMEOpus, 1, 1))
	start := u.queue.started
	setPath(u, pacing.Path{Estimate: 8e6}, start)
	u.queue.sender.Spend(1_000_000)
	u.queue.add(trackFrame(voice, 0, 1, start, budgetOf(voice.description, 20*time.Millisecond, time.Second)))
	if n := len(u.Depart(start, nil)); n != 1 {
		t.Errorf("%d packets of audio leave while everything else waits, expected 1", n)
	}
}

// TestRepairsAreBounded requests all packets of a frame at once. The repairs leave at 2.5 times the estimate.
func TestRepairsAreBounded(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
	now := u.queue.started
	u.queue.add(trackFrame(p, 0, 60, now, 0))
	sent := u.Depart(now, nil)
	if len(sent) != 60 {
		t.Fatalf("%d packets leave without an estimate, expected 60", len(sent))
	}
	now = now.Add(100 * time.Millisecond)
	setPath(u, pacing.Path{Estimate: 8e6}, now)
	nack := &rtcp.TransportLayerNack{MediaSSRC: 100}
	for _, o := range sent {
		nack.Nacks = append(nack.Nacks, rtcp.NackPair{PacketID: o.Header.SequenceNumber})
	}
	u.queue.asked(p.lines[0], nack, now, 10*time.Millisecond)
	repeated := 0
	for ms := range 30 {
		for _, o := range u.Depart(now.Add(time.Duration(ms)*time.Millisecond), nil) {
			number := uint16(o.Payload[0])<<8 | uint16(o.Payload[1])
			if want := sent[repeated].Header.SequenceNumber; o.Header.SSRC != 101 || number != want {
				t.Fatalf("repair %d is of packet %d on SSRC %d, expected %d on 101", repeated, number, o.Header.SSRC,
					want)
			}
			repeated++
		}
		if most := (5*ms+1)/2 + 11; repeated > most {
			t.Fatalf("%d repairs have left after %d ms, expected at most %d", repeated, ms, most)
		}
	}
	if repeated != 60 {
		t.Errorf("%d repairs have left, expected 60", repeated)
	}
	// A request that arrives sooner than the packet can have been missed is not answered.
	u.queue.asked(p.lines[0], nack, sent[0].line.sentAt(t, sent[0]).Add(time.Millisecond), 10*time.Millisecond)
	if waits(u) {
		t.Error("a packet is repeated before its loss can have been noticed")
	}
}

// sentAt returns the time at which a packet left.
func (l *line) sentAt(t *testing.T, o Outgoing) time.Time {
	t.Helper()
	sent, ok := l.history.Get(o.Header.SequenceNumber)
	if !ok {
		t.Fatal("a packet that has left is not kept")
	}
	return sent.At
}

// TestProbesTakeMediaFirst: packets leave at the probe's rate before they are due. Then the packets that have left are
// repeated from the newest on.
func TestProbesTakeMediaFirst(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("body", volumetric.MIMEVolumetric, 1, 1))
	now := u.queue.started
	setPath(u, pacing.Path{Estimate: 8e6}, now)
	f := trackFrame(p, 0, 10, now, 0)
	f.spread = 100 * time.Millisecond
	u.queue.add(f)
	// 18 packets at 80 Mbit/s take 1.8 ms.
	u.queue.sender.Probe(80e6, 18_000, 18, u.queue.at(now.Add(time.Second)), u.queue.at(now))
	var left []Outgoing
	for end := now.Add(4 * time.Millisecond); now.Before(end); now = now.Add(100 * time.Microsecond) {
		left = u.Depart(now, left)
	}
	if len(left) < 18 || u.queue.sender.Probing() {
		t.Fatalf("%d packets have left, expected 18 of the probe", len(left))
	}
	for i, o := range left[:18] {
		switch {
		case i < 10 && o.Header.SSRC != 100:
			t.Errorf("packet %d leaves on SSRC %d, expected the frame's ten packets first", i, o.Header.SSRC)
		case i >= 10:
			number := uint16(o.Payload[0])<<8 | uint16(o.Payload[1])
			if want := left[9-(i-10)].Header.SequenceNumber; number != want || o.Header.SSRC != 101 {
				t.Errorf("padding %d repeats packet %d on SSRC %d, expected %d on 101", i, number, o.Header.SSRC, want)
			}
		}
	}
	if padded := u.Counts().ProbeBytes; padded != 8*1002 {
		t.Errorf("%d bytes of padding are counted, expected %d", padded, 8*1002)
	}
	u.Reset(now)
	if padded := u.Counts().ProbeBytes; padded != 8*1002 {
		t.Errorf("%d bytes of padding are counted on a new connection, expected %d", padded, 8*1002)
	}
}

// TestFramesOfEndedPublicationsAreNotLeftOut: no key frame is requested for a publication that ended while its frames
// were queued.
func TestFramesOfEndedPublicationsAreNotLeftOut(t *testing.T) {
	u := newRig(t)
	p, _ := published(t, u, described("desk", volumetric.MIMEH264, 1, 1))
	start := u.queue.started
	setPath(u, pacing.Path{Estimate: 8e6}, start)
	u.queue.sender.Spend(100_000)
	u.queue.add(trackFrame(p, 0, 10, start, 10*time.Millisecond))
	if n := len(u.Depart(start, nil)); n != 0 || !waits(u) {
		t.Fatalf("%d packets leave without room, want the frame to wait", n)
	}
	u.Detach(p)
	if n := len(u.Depart(start.Add(time.Second), nil)); n != 0 || waits(u) || len(u.queue.dropped) != 0 {
		t.Errorf("%d packets leave, %d frames were left out, want none of a publication that has ended", n,
			len(u.queue.dropped))
	}
}
