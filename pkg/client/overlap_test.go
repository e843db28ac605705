package client

import (
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// wantedTiles returns the message about the wanted qualities of each tile.
func wantedTiles(publication string, tiles [][]volumetric.Quality) signal.WantedPublication {
	return signal.WantedPublication{Publication: publication, Tiles: tiles}
}

// TestFramesOfTwoServersAreDeliveredOnce and counted once, in whatever order they come.
func TestFramesOfTwoServersAreDeliveredOnce(t *testing.T) {
	t.Parallel()
	m := newRig(t, Config{})
	publication := described("body", volumetric.MIMEVolumetric, 1, 1)
	former := newIncoming(t, m, "0", volumetric.KindVideo, 1000)
	assign(t, m, "0", 1, "bob", 0, &publication)
	now := time.Now()
	former.send(1, 0, now)
	former.send(2, 0, now)
	next := m.after()
	m.session.path.present.Store(next.media)
	if next.downlink.Covers(m.downlink, now) {
		t.Error("nothing has come from the second server")
	}
	present := newIncoming(t, next, "9", volumetric.KindVideo, 2000)
	assign(t, next, "9", 1, "bob", 0, &publication)
	present.send(2, 0, now)
	if !next.downlink.Covers(m.downlink, now) {
		t.Error("the tile comes from the second server")
	}
	present.send(3, 0, now)
	former.send(3, 0, now)
	former.send(4, 0, now)
	former.send(5, 0, now, 1)
	present.send(5, 0, now)
	present.send(4, 0, now)
	m.mu.Lock()
	later := now.Add(time.Minute)
	m.downlink.Step(nil, later, rtt)
	next.downlink.Step(nil, later, rtt)
	m.mu.Unlock()
	former.send(6, 0, later)
	m.mu.Lock()
	m.downlink.End(later)
	m.mu.Unlock()
	present.send(6, 0, later)
	var numbers []int64
	for len(m.frames) > 0 {
		numbers = append(numbers, (<-m.frames).Number)
	}
	if want := []int64{1, 2, 3, 4, 5, 6}; !slices.Equal(numbers, want) {
		t.Errorf("frames %d, expected %d", numbers, want)
	}
	if c := statsOf(t, m, "bob", 0).FrameCounts; c.Expected != 6 || c.Complete != 6 || c.Missing != 0 ||
		c.Undecodable != 0 {
		t.Errorf("counts %+v, expected 6 complete frames", c)
	}
}

// TestPublicationIsReplacedDuringAMove ends a publication, or publishes it again. The numbers of the frames then begin
// again.
func TestPublicationIsReplacedDuringAMove(t *testing.T) {
	t.Parallel()
	publication := described("body", volumetric.MIMEVolumetric, 1, 1)
	for name, message := range map[string]signal.Message{
		"published": &signal.Published{Participant: "bob", Publication: publication},
		"unpublished": &signal.Unpublished{
			PublicationRef: volumetric.PublicationRef{Participant: "bob", Publication: "body"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newRig(t, Config{})
			former := newIncoming(t, m, "0", volumetric.KindVideo, 1000)
			assign(t, m, "0", 1, "bob", 0, &publication)
			now := time.Now()
			for number := uint32(1); number <= 100; number++ {
				former.send(number, 0, now)
			}
			next := m.after()
			m.session.path.present.Store(next.media)
			present := newIncoming(t, next, "9", volumetric.KindVideo, 2000)
			assign(t, next, "9", 1, "bob", 0, &publication)
			present.send(100, 0, now)
			newControl(m.session.parts).handle(message)
			assign(t, next, "9", 2, "bob", 0, &publication)
			present.send(1, 0, now)
			present.send(2, 0, now)
			var numbers []int64
			for len(m.frames) > 0 {
				numbers = append(numbers, (<-m.frames).Number)
			}
			if tail := numbers[len(numbers)-3:]; !slices.Equal(tail, []int64{100, 1, 2}) {
				t.Errorf("the last frames are %d, expected 100 once, and the frames of the next publication", tail)
			}
		})
	}
}

// TestPacketsComeFromOneServer at a time: the packets of a voice have no number that two servers share.
func TestPacketsComeFromOneServer(t *testing.T) {
	t.Parallel()
	m := newRig(t, Config{})
	voice := described("voice", volumetric.MIMEOpus, 1, 1)
	former := newIncoming(t, m, "0", volumetric.KindAudio, 1000)
	assign(t, m, "0", 1, "bob", 0, &voice)
	next := m.after()
	m.session.path.present.Store(next.media)
	present := newIncoming(t, next, "9", volumetric.KindAudio, 2000)
	assign(t, next, "9", 1, "bob", 0, &voice)
	start := time.Now()
	deliver := func(from *incoming, ms int, body byte) {
		from.deliver(from.next, uint32(48*ms), []byte{body}, start.Add(time.Duration(ms)*time.Millisecond))
		from.next++
	}
	deliver(former, 0, 1)
	deliver(present, 5, 1)
	deliver(former, 20, 2)
	deliver(present, 25, 2)
	// The former server sends no more.
	deliver(present, 45, 3)
	deliver(present, 65, 4)
	deliver(present, 85, 5)
	deliver(present, 105, 6)
	var bodies []byte
	for len(m.packets) > 0 {
		bodies = append(bodies, (<-m.packets).Payload...)
	}
	if want := []byte{1, 2, 5, 6}; !slices.Equal(bodies, want) {
		t.Errorf("packets %d, expected %d", bodies, want)
	}
}
