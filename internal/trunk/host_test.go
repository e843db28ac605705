package trunk

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/long"
	"github.com/volsfu/volsfu/test/wait"
)

func newAuthority() *authority { return &authority{names: map[string]string{}} }

// TestTracksCross publishes two tiles in two qualities at one node and takes three of the four tracks at another, over
// one lane and over three. Frames, frame numbers and timestamps are those of the publisher, and an untaken track ends.
func TestTracksCross(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		a := newAuthority()
		one, two := a.start(t, "one", options{lanes: lanes}), a.start(t, "two", options{lanes: lanes})
		p := publish(t, one, 2, 2)
		mirrored := mirrorAt(two, "one", 2, 2)
		connect(t, one, two, "one", "two")
		wait.Until(t, "all lanes", func() (open bool) {
			one.do(func(h *Host) {
				links := h.Links()
				open = len(links) == 1 && links[0].Lanes == lanes
			})
			return open
		})
		v := view(two, mirrored)
		takeAt(two, "one", allocate.Qualities(0, 1), allocate.Qualities(1))
		took := await(t, one, "the demand", func(Took) bool { return true })
		if took.Node != "two" || took.Ref != ref || took.ID != id || len(took.Tiles) != 2 ||
			took.Tiles[0] != allocate.Qualities(0, 1) || took.Tiles[1] != allocate.Qualities(1) {
			t.Errorf("the demand is %+v", took)
		}
		wait.Until(t, "the slots", func() bool {
			return p.tracks[0].Followers() == 1 && p.tracks[1].Followers() == 1 && p.tracks[3].Followers() == 1
		})
		first := p.publishers[0].Number
		for i := range 10 {
			p.frame(5000)
			wait.Until(t, "a frame of three tracks", func() bool {
				return v.complete(0) == i+1 && v.complete(1) == i+1 && v.complete(3) == i+1
			})
		}
		if n := v.complete(2); n != 0 {
			t.Errorf("%d frames of a track that was not taken", n)
		}
		for _, i := range []int{0, 1, 3} {
			newest := mirrored[i].Log().At(mirrored[i].Log().Head() - 1)
			if got, want := newest.Facts.Timestamp, p.publishers[i].Timestamp; got != want || !v.has(i, first+10) {
				t.Errorf("track %d: timestamp %d, expected %d, of frame %d", i, got, want, first+10)
			}
			newest.Release()
		}
		takeAt(two, "one", 0, allocate.Qualities(1))
		wait.Until(t, "the end of the untaken tracks", func() bool {
			return p.tracks[0].Followers() == 0 && p.tracks[1].Followers() == 0
		})
		p.frame(5000)
		wait.Until(t, "the frame of the taken track", func() bool { return v.complete(3) == 11 })
		if v.complete(0) != 10 || v.complete(1) != 10 {
			t.Error("frames of untaken tracks have arrived")
		}
		// Another take of the same track uses another stream, or the same one after its rest.
		takeAt(two, "one", allocate.Qualities(0), allocate.Qualities(1))
		wait.Until(t, "the track again", func() bool { return p.tracks[0].Followers() == 1 })
		p.frame(5000)
		// The slot may begin with the frame before, which is young.
		wait.Until(t, "the frame of both", func() bool { return v.has(0, first+12) && v.complete(3) == 12 })
		if s := two.stats(); s.Untaken != 0 || s.Malformed != 0 {
			t.Errorf("the counts are %+v", s)
		}
		one.stop()
		two.stop()
	}
}

func (n *node) stats() (s Stats) {
	n.do(func(h *Host) { s = h.Stats() })
	return s
}

// TestStatesCross sends rates, given up qualities and payloads, and measures the clock.
func TestStatesCross(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	connect(t, one, two, "one", "two")
	publish(t, one, 1, 2)
	mirrorAt(two, "one", 1, 2)
	rates := []volumetric.Bitrate{1e6, 2e6}
	one.do(func(h *Host) { h.SetRates(room, ref, id, rates) })
	two.do(func(h *Host) {
		h.Take("one", room, ref, id, Demand{
			Tiles: []allocate.QualitySet{allocate.Qualities(1)}, Near: []bool{true}, Parity: 0.1,
		})
	})
	took := await(t, one, "the demand", func(Took) bool { return true })
	if took.Parity != 0.1 || len(took.Near) != 1 || !took.Near[0] {
		t.Errorf("the demand is %+v", took)
	}
	await(t, two, "the rates", func(r Rates) bool { return len(r.Rates) == 2 && r.Rates[1] == 2e6 })
	one.do(func(h *Host) { h.SetGaveUp(room, ref, id, []allocate.QualitySet{allocate.Qualities(1)}) })
	await(t, two, "the given up quality", func(g GaveUp) bool { return g.Tiles[0] == allocate.Qualities(1) })
	large := bytes.Repeat([]byte("x"), MaxPayload)
	one.do(func(h *Host) {
		if err := errors.Join(h.Send("two", []byte("first")), h.Send("two", large)); err != nil {
			t.Error(err)
		}
		for _, refused := range []struct {
			node    string
			payload []byte
			want    error
		}{{"two", append(large, 'x'), ErrSize}, {"two", nil, ErrSize}, {"three", large, ErrUnlinked}} {
			if err := h.Send(refused.node, refused.payload); !errors.Is(err, refused.want) {
				t.Errorf("the error is %v, expected %v", err, refused.want)
			}
		}
	})
	await(t, two, "the payload", func(r Received) bool { return bytes.Equal(r.Payload, large) })
	two.mu.Lock()
	for _, e := range two.events {
		if r, is := e.(Received); is && string(r.Payload) != "first" {
			break
		} else if is {
			two.mu.Unlock()
			wait.Until(t, "the clock", func() (known bool) {
				two.do(func(h *Host) {
					l := h.Links()
					known = len(l) == 1 && l[0].Known && l[0].Offset.Abs() <= l[0].Bound && l[0].RTT > 0
				})
				return known
			})
			return
		}
	}
	two.mu.Unlock()
	t.Error("the payloads are not in order")
}

// TestWrongCertificate refuses a node with a certificate of another cluster, and counts it.
func TestWrongCertificate(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{foreign: true}), a.start(t, "two", options{})
	one.do(func(h *Host) { h.Connect("two", two.host.Address()) })
	two.do(func(h *Host) { h.Connect("one", one.host.Address()) })
	await(t, two, "the refusal", func(Refused) bool { return true })
	wait.Until(t, "the count", func() bool { return two.stats().WrongCertificate > 0 })
	if s := two.stats(); s.Links != 0 {
		t.Errorf("%d trunks", s.Links)
	}
}

// TestNodeReturns ends a node and starts another with its name. The demand is sent again, and the tracks of the mirror
// are bound again.
func TestNodeReturns(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	connect(t, one, two, "one", "two")
	mirrored := mirrorAt(two, "one", 1, 1)
	takeAt(two, "one", allocate.Qualities(0))
	address := one.host.Address().String()
	one.stop()
	await(t, two, "the end of the trunk", func(Unlinked) bool { return true })
	again := a.start(t, "one", options{address: address})
	p := publish(t, again, 1, 1)
	again.do(func(h *Host) { h.Connect("two", two.host.Address()) })
	v := view(two, mirrored)
	wait.Until(t, "the track", func() bool { return p.tracks[0].Followers() == 1 })
	p.frame(3000)
	wait.Until(t, "a frame", func() bool { return v.complete(0) == 1 })
}

// TestUntakenPackets makes the origin send a track that the other node does not take. The trunk is closed.
func TestUntakenPackets(t *testing.T) {
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	connect(t, one, two, "one", "two")
	p := publish(t, one, 1, 1)
	one.do(func(h *Host) {
		lane := h.links["two"].lanes.all[0]
		slot := lane.receiver.AddSlot(lane.NewOutlet(77, 78), volumetric.KindVideo)
		slot.Select(p.tracks[0], 1, time.Now())
	})
	wait.Until(t, "the slot", func() bool { return p.tracks[0].Followers() == 1 })
	wait.Until(t, "the end", func() bool {
		p.frame(20_000)
		e, ok := last[Unlinked](two)
		return ok && e.Reason == "1000 packets of tracks that were not taken within 10s"
	})
	if s := two.stats(); s.Untaken < MaxUntaken {
		t.Errorf("%d packets counted, expected at least %d", s.Untaken, MaxUntaken)
	}
}

// TestManyPublications opens a trunk between nodes of which one takes 4,000 publications: the messages at the start are
// more than a node accepts at once, and neither node closes the trunk.
func TestManyPublications(t *testing.T) {
	long.Test(t)
	const publications = 4000
	a := newAuthority()
	one, two := a.start(t, "one", options{}), a.start(t, "two", options{})
	tracks, mirrored := newTracks(one.engine, 1, 1, 1, volumetric.MIMEVolumetric),
		newTracks(two.engine, 1, 1, 9, volumetric.MIMEVolumetric)
	named := func(i int) volumetric.PublicationRef {
		return volumetric.PublicationRef{Participant: fmt.Sprintf("p%d", i), Publication: "cloud"}
	}
	one.do(func(h *Host) {
		for i := range publications {
			h.Offer(room, named(i), id, 1, tracks)
			h.SetRates(room, named(i), id, []volumetric.Bitrate{1000})
			h.SetGaveUp(room, named(i), id, []allocate.QualitySet{0})
		}
	})
	two.do(func(h *Host) {
		for i := range publications {
			h.Mirror("one", room, named(i), id, 1, mirrored)
			h.Take("one", room, named(i), id, Demand{Tiles: []allocate.QualitySet{allocate.Qualities(0)}})
		}
	})
	began := time.Now()
	connect(t, one, two, "one", "two")
	wait.Until(t, "a bound stream for each publication", func() (all bool) {
		one.do(func(h *Host) {
			bound := 0
			for _, t := range h.links["two"].origin.takes {
				if t.bound > 0 {
					bound++
				}
			}
			all = bound == publications
		})
		return all
	})
	var sent uint64
	one.do(func(h *Host) { sent = h.links["two"].control.sent })
	most := float64(stateRate.Burst) + float64(stateRate.PerSecond)*time.Since(began).Seconds() + 1
	if sent < publications || float64(sent) > most {
		t.Errorf("%d messages, expected %d to %.0f", sent, publications, most)
	}
	if s := two.stats(); s.Opened != 1 || s.Closed != 0 || s.Malformed != 0 {
		t.Errorf("the counts are %+v", s)
	}
}
