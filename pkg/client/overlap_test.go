package client

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client/internal/uplink"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
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

// TestASlotBeginsWithADeliveredFrame after a resume with a new connection, and when a tile changes its slot. The frame
// is delivered and counted once.
func TestASlotBeginsWithADeliveredFrame(t *testing.T) {
	t.Parallel()
	for _, withVR2Gather := range []bool{false, true} {
		t.Run(fmt.Sprint(withVR2Gather), func(t *testing.T) {
			m := newRig(t, Config{})
			publication := described("body", volumetric.MIMEVolumetric, 1, 1)
			publication.VR2Gather = withVR2Gather
			send := func(in *incoming, number uint32, since time.Duration) {
				t.Helper()
				at := epoch.Add(since + time.Duration(number)*interval)
				if !withVR2Gather {
					in.send(number, 0, at)
					return
				}
				data := append(vr2gather.NewFrameHeader(vr2gather.CodecRawPoints, 1, at).Append(nil), 7)
				list, err := uplink.Fragment(payload.Descriptor{Frame: number}, data)
				if err != nil || len(list) != 1 {
					t.Fatalf("%d packets, %v", len(list), err)
				}
				in.deliver(in.next, 3000*number, list[0], at)
				in.next++
			}
			first := newIncoming(t, m, "0", volumetric.KindVideo, 1000)
			assign(t, m, "0", 1, "bob", 0, &publication)
			for number := range uint32(100) {
				send(first, number+1, 0)
			}
			// The new connection has the same mids and generations.
			m.reset()
			second := newIncoming(t, m, "0", volumetric.KindVideo, 2000)
			assign(t, m, "0", 1, "bob", 0, &publication)
			send(second, 100, 0)
			send(second, 101, 0)
			third := newIncoming(t, m, "5", volumetric.KindVideo, 3000)
			assign(t, m, "0", 2, "", 0, nil)
			assign(t, m, "5", 1, "bob", 0, &publication)
			send(third, 101, 0)
			send(third, 102, 0)
			if c := statsOf(t, m, "bob", 0).FrameCounts; c != (FrameCounts{Expected: 102, Complete: 102}) {
				t.Errorf("counts %+v, expected 102 complete frames", c)
			}
			// Another publication of the same name has begun while the connection was down.
			m.reset()
			fourth := newIncoming(t, m, "0", volumetric.KindVideo, 4000)
			assign(t, m, "0", 1, "bob", 0, &publication)
			send(fourth, 60, time.Minute)
			send(fourth, 61, time.Minute)
			var numbers []int64
			for len(m.frames) > 0 {
				numbers = append(numbers, (<-m.frames).Number)
			}
			if want := []int64{99, 100, 101, 102, 60, 61}; !slices.Equal(numbers[98:], want) {
				t.Errorf("the last frames are %d, expected %d", numbers[98:], want)
			}
			// A move from here knows the numbers of the present publication.
			next := m.after()
			m.session.path.present.Store(next.media)
			present := newIncoming(t, next, "9", volumetric.KindVideo, 5000)
			assign(t, next, "9", 1, "bob", 0, &publication)
			send(present, 61, time.Minute)
			send(present, 62, time.Minute)
			if frames := taken(m); len(frames) != 1 || frames[0].Number != 62 {
				t.Errorf("%d frames in a move, expected frame 62", len(frames))
			}
			if c := statsOf(t, m, "bob", 0).FrameCounts; c != (FrameCounts{Expected: 105, Complete: 105}) {
				t.Errorf("counts %+v, expected 105 complete frames of both publications", c)
			}
		})
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
