package client

import (
	"bytes"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const interval = time.Second / 30

// taken returns the frames that wait to be read.
func taken(m *rig) []Frame {
	var frames []Frame
	for len(m.frames) > 0 {
		frames = append(frames, <-m.frames)
	}
	return frames
}

func TestFramesAsTheyWerePublished(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 2, 2)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "grace", 1, &body)
	capture := epoch.Add(-50 * time.Millisecond).UTC()
	list := packets(t, 41, 1, capture, 3000)
	// In any order, some of them twice.
	for i, index := range []int{2, 0, 0, 2, 1, 1} {
		in.deliver(uint16(100+index), 7, list[index], epoch.Add(time.Duration(i)*time.Millisecond))
	}
	empty := packets(t, 42, 0, time.Time{}, 0)
	in.deliver(103, 8, empty[0], epoch.Add(interval))
	frames := taken(m)
	if len(frames) != 2 {
		t.Fatalf("%d frames, want 2", len(frames))
	}
	want := volumetric.TrackRef{
		TileRef: volumetric.TileRef{
			PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "body"}, Tile: 1,
		},
		Quality: 1,
	}
	f := frames[0]
	data := make([]byte, 3000)
	for i := range data {
		data[i] = byte(i)
	}
	switch {
	case f.Track != want || f.Number != 41 || f.Codec != volumetric.FourCC{'t', 'e', 's', 't'} ||
		!bytes.Equal(f.Data, data):
		t.Errorf("frame %d of %v, codec %v, %d bytes", f.Number, f.Track, f.Codec, len(f.Data))
	case f.Capture.Sub(capture).Abs() > time.Microsecond || !f.First.Equal(epoch) ||
		!f.Complete.Equal(epoch.Add(4*time.Millisecond)):
		t.Errorf("captured %v, first packet %v, complete %v", f.Capture, f.First, f.Complete)
	}
	if f := frames[1]; f.Number != 42 || len(f.Data) != 0 || !f.Capture.IsZero() || f.Track.Quality != 0 {
		t.Errorf("the tile without points is %+v", f)
	}
}

// TestBooksOverReassignment: two tiles alternate on two slots. The counts of a tile continue on any slot, and losses
// while a slot carries something else are not counted for the tile.
func TestBooksOverReassignment(t *testing.T) {
	m := newRig(t, Config{})
	body, desk := described("body", volumetric.MIMEVolumetric, 1, 1), described("desk", volumetric.MIMEVolumetric, 1, 1)
	four, five := newIncoming(t, m, "4", volumetric.KindVideo, 1), newIncoming(t, m, "5", volumetric.KindVideo, 11)
	now := epoch
	step := func() time.Time { now = now.Add(interval); return now }
	lose := func() {
		t.Helper()
		// Missing packets are requested, and expire after the deadline.
		for range 10 {
			step()
			m.downlink.Step(nil, now, rtt)
		}
	}

	assign(t, m, "4", 1, "ada", 0, &body)
	four.send(10, 0, step())
	four.send(11, 0, step())
	// The second packet of frame 12 is requested, and arrives on the retransmission stream.
	four.send(12, 0, step(), 1)
	missing := four.next - 2
	if asked := asked(m, step()); len(asked) != 1 || asked[0] != missing {
		t.Fatalf("asked for %v, want %d", asked, missing)
	}
	four.repair(missing, 3000*12, packets(t, 12, 0, epoch, 3000)[1], step())
	// One packet of frame 13 never arrives.
	four.send(13, 0, step(), 1)
	four.send(14, 0, step())
	lose()
	first := statsOf(t, m, "ada", 0)
	want := TileStats{Track: first.Track, FrameCounts: FrameCounts{Expected: 5, Complete: 4, Undecodable: 1},
		Packets: 14, Bytes: first.Bytes, Lost: 2, Recovered: 1, Gaps: 2, Requests: first.Requests}
	if first != want || first.Requests < 2 || first.Bytes == 0 {
		t.Errorf("got %+v, want %+v with some requests", first, want)
	}

	// Slot 4 is assigned to grace's desk, with other frame numbers. ada's counts remain.
	assign(t, m, "4", 2, "grace", 0, &desk)
	four.send(9000, 0, step())
	four.send(9001, 0, step(), 0)
	four.send(9002, 0, step())
	lose()
	if got := statsOf(t, m, "ada", 0); got != first {
		t.Errorf("ada's counts became %+v, want %+v", got, first)
	}
	if got := statsOf(t, m, "grace", 0); got.Expected != 3 || got.Complete != 2 || got.Undecodable != 1 ||
		got.Packets != 8 || got.Lost != 1 {
		t.Errorf("grace's counts are %+v, want 3 frames, 2 of them complete, 1 undecodable; 8 packets, 1 lost", got)
	}

	// Slot 4 is idle, and ada's body arrives on slot 5, much later.
	assign(t, m, "4", 3, "", 0, nil)
	four.send(9003, 0, step())
	assign(t, m, "5", 1, "ada", 0, &body)
	five.send(500, 0, step())
	five.send(501, 0, step(), 2)
	five.send(502, 0, step())
	lose()
	got := statsOf(t, m, "ada", 0)
	if got.Expected != 8 || got.Complete != 6 || got.Undecodable != 2 || got.Missing != 0 || got.Packets != 22 ||
		got.Lost != 3 || got.Recovered != 1 {
		t.Errorf("ada's counts are %+v, want 8 frames, 6 complete, 2 undecodable; 22 packets, 3 lost, 1 recovered", got)
	}
	if got := statsOf(t, m, "grace", 0); got.Packets != 8 {
		t.Errorf("%d packets of grace's desk, want 8: the slot was idle", got.Packets)
	}
	if n := len(m.session.Stats()); n != 2 {
		t.Errorf("counts of %d tiles, want 2", n)
	}
}

// TestPacketsOfTheFormerAssignment arrive after the assignment of another tile, and are not counted for that tile.
func TestPacketsOfTheFormerAssignment(t *testing.T) {
	m := newRig(t, Config{})
	body, desk := described("body", volumetric.MIMEVolumetric, 1, 1), described("desk", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	in.send(20, 0, epoch)
	in.send(21, 0, epoch, 0, 1)
	assign(t, m, "4", 2, "grace", 0, &desk)
	late := packets(t, 21, 0, epoch, 3000)
	in.deliver(in.next-3, 3000*21, late[0], epoch)
	in.repair(in.next-2, 3000*21, late[1], epoch)
	for number := range uint32(5) {
		in.send(number, 0, epoch.Add(time.Duration(number)*interval))
	}
	got := statsOf(t, m, "grace", 0)
	if want := (FrameCounts{Expected: 5, Complete: 5}); got.FrameCounts != want || got.Packets != 15 {
		t.Errorf("%d packets, frames %+v, expected 15 and %+v", got.Packets, got.FrameCounts, want)
	}
}

// TestPacketsInTransitAtAnAssignment are those of the former tile for half of the shortest round trip, also if they
// overtake one another.
func TestPacketsInTransitAtAnAssignment(t *testing.T) {
	m := newRig(t, Config{})
	now := epoch
	if err := m.clock.Answered(now, now.Add(10*time.Millisecond), now.Add(10*time.Millisecond),
		now.Add(20*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	desk := described("desk", volumetric.MIMEVolumetric, 1, 1)
	track := &volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "desk"}}
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	in.send(20, 0, now)
	m.downlink.Assign(signal.Assignment{MID: "4", Generation: 2, Track: track}, &desk, now)
	in.send(21, 0, now.Add(4*time.Millisecond), 0)
	in.send(22, 0, now.Add(9*time.Millisecond))
	in.deliver(in.next-6, 3000*21, packets(t, 21, 0, now, 3000)[0], now.Add(11*time.Millisecond))
	in.send(1, 0, now.Add(20*time.Millisecond))
	in.send(2, 0, now.Add(53*time.Millisecond))
	if got, want := statsOf(t, m, "grace", 0).FrameCounts, (FrameCounts{Expected: 2, Complete: 2}); got != want {
		t.Errorf("frames %+v, expected %+v", got, want)
	}
}

// TestFramesThatAnAssignmentLeavesIncomplete are counted after their deadline, unless another slot completes them.
func TestFramesThatAnAssignmentLeavesIncomplete(t *testing.T) {
	for name, end := range map[string]func(m *rig){
		"the slot is idle":       func(m *rig) { assign(t, m, "4", 2, "", 0, nil) },
		"the connection is lost": func(m *rig) { m.reset() },
	} {
		t.Run(name, func(t *testing.T) {
			m := newRig(t, Config{})
			body := described("body", volumetric.MIMEVolumetric, 1, 1)
			in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
			assign(t, m, "4", 1, "ada", 0, &body)
			in.send(10, 0, epoch)
			in.send(12, 0, epoch.Add(2*interval), 1)
			in.send(13, 0, epoch.Add(3*interval), 1)
			end(m)
			next := newIncoming(t, m, "5", volumetric.KindVideo, 11)
			assign(t, m, "5", 1, "ada", 0, &body)
			next.send(13, 0, epoch.Add(4*interval))
			assign(t, m, "5", 2, "", 0, nil)
			for after := time.Duration(0); after < time.Second; after += 5 * time.Millisecond {
				m.downlink.Step(nil, epoch.Add(4*interval+after), rtt)
			}
			if got, want := statsOf(t, m, "ada", 0).FrameCounts,
				(FrameCounts{Expected: 4, Complete: 2, Undecodable: 1, Missing: 1}); got != want {
				t.Errorf("frames %+v, expected %+v", got, want)
			}
		})
	}
}

// TestCountsOfAReplacedPublication publishes again under the same name, with numbers from 0 on. A frame of the former
// publication arrives after the message and before the assignment.
func TestCountsOfAReplacedPublication(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	now := epoch
	send := func(first, last uint32) {
		for number := first; number <= last; number++ {
			now = now.Add(interval)
			in.send(number, 0, now)
		}
	}
	send(1, 18)
	send(20, 20)
	newControl(m.session.parts).handle(&signal.Published{Participant: "ada", Publication: body})
	send(21, 21)
	assign(t, m, "4", 2, "ada", 0, &body)
	send(0, 24)
	if got, want := statsOf(t, m, "ada", 0).FrameCounts,
		(FrameCounts{Expected: 46, Complete: 45, Missing: 1}); got != want {
		t.Errorf("frames %+v, expected %+v", got, want)
	}
}

func TestAssignmentsOfUnknownSlotsAndOldGenerations(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	if m.assign(signal.Assignment{MID: "9", Generation: 1}, nil) {
		t.Error("a slot that nobody offered is known")
	}
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	in.send(10, 0, epoch, 0)
	// The server repeats its assignments after a resume. Frames in transit remain.
	assign(t, m, "4", 1, "ada", 0, &body)
	in.deliver(65000, 30000, packets(t, 10, 0, epoch, 3000)[0], epoch.Add(time.Millisecond))
	if frames := taken(m); len(frames) != 1 {
		t.Errorf("%d frames, want the one that was under way", len(frames))
	}
	// An assignment of an unknown publication makes the slot idle.
	if !m.assign(signal.Assignment{MID: "4", Generation: 2, Track: &volumetric.TileRef{}}, nil) {
		t.Error("the slot is not known")
	}
	in.send(11, 0, epoch)
	if frames := taken(m); len(frames) != 0 {
		t.Errorf("%d frames on an idle slot", len(frames))
	}
}

func TestDescriptionsHaveBooksOfTheirOwn(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 2)
	body.Mode = volumetric.ModeDescriptions
	for q := range volumetric.Quality(2) {
		mid, ssrc := string(rune('4'+q)), uint32(1+10*q)
		in := newIncoming(t, m, mid, volumetric.KindVideo, ssrc)
		track := volumetric.TileRef{PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: "body"}}
		if !m.assign(signal.Assignment{MID: mid, Generation: 1, Track: &track, Quality: &q}, &body) {
			t.Fatal("the slot is not known")
		}
		for frame := range 3 + uint32(q) {
			in.send(frame, q, epoch)
		}
	}
	stats := m.session.Stats()
	if len(stats) != 2 || stats[0].Track.Quality != 0 || stats[0].Complete != 3 || stats[1].Track.Quality != 1 ||
		stats[1].Complete != 4 {
		t.Errorf("got %+v, want 3 frames of description 0 and 4 of description 1", stats)
	}
}

func TestForeignPackets(t *testing.T) {
	m := newRig(t, Config{})
	m.peer.Store(newPeer(t, m))
	voice := described("voice", volumetric.MIMEOpus, 1, 1)
	in := newIncoming(t, m, "6", volumetric.KindAudio, 1)
	assign(t, m, "6", 1, "ada", 0, &voice)
	body := []byte("opus")
	in.deliver(1, 960, body, epoch)
	report, err := (&rtcp.SenderReport{SSRC: 1, RTPTime: 0, NTPTime: payload.NTP64(epoch)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	m.RTCP(report, epoch)
	in.deliver(2, 48000, body, epoch.Add(20*time.Millisecond))
	in.deliver(2, 48000, body, epoch.Add(21*time.Millisecond))
	body[0] = 'X'
	if len(m.packets) != 2 {
		t.Fatalf("%d packets, want 2: the second copy of audio is of no use", len(m.packets))
	}
	if p := <-m.packets; string(p.Payload) != "opus" || !p.Capture.IsZero() || p.Track.Participant != "ada" ||
		p.Codec != voice.Codec || !p.Arrival.Equal(epoch) {
		t.Errorf("before the first sender report: %+v", p)
	}
	if p := <-m.packets; p.Capture.Sub(epoch.Add(time.Second)).Abs() > time.Microsecond || p.SequenceNumber != 2 {
		t.Errorf("packet %d was captured at %v, want 2 at %v", p.SequenceNumber, p.Capture, epoch.Add(time.Second))
	}
}

func TestWhatTheProgramDoesNotReadIsCountedOnce(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	const surplus = 3
	for frame := range uint32(frameBacklog + surplus) {
		in.send(frame, 0, epoch)
	}
	got := statsOf(t, m, "ada", 0).FrameCounts
	if want := (FrameCounts{Expected: frameBacklog + surplus, Complete: frameBacklog,
		Overflowed: surplus}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestServersWordOnQualitiesAndDrops(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 2)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 3, "ada", 0, &body)
	present := signal.SlotGeneration{MID: "4", Generation: 3}
	events := m.sending(&signal.Sending{Slots: []signal.SlotQuality{
		{SlotGeneration: present, Quality: 1, Reason: signal.ReasonAuto},
		{SlotGeneration: signal.SlotGeneration{MID: "4", Generation: 2}, Quality: 0},
		{SlotGeneration: signal.SlotGeneration{MID: "9", Generation: 3}, Quality: 0},
	}}, epoch)
	if len(events) != 1 || events[0].(Sending).Quality != 1 || events[0].(Sending).Reason != signal.ReasonAuto {
		t.Errorf("got %+v, want one event about the present assignment", events)
	}
	in.send(1, 1, epoch)
	in.send(4, 1, epoch.Add(interval))
	m.delivery(&signal.Delivery{Dropped: []signal.SlotDrops{
		{SlotGeneration: present, Frames: 1},
		{SlotGeneration: signal.SlotGeneration{MID: "4", Generation: 2}, Frames: 1},
	}})
	m.downlink.Step(nil, epoch.Add(time.Second), rtt)
	// Off, and on again: frames published meanwhile do not count as lost.
	m.sending(&signal.Sending{Slots: []signal.SlotQuality{{SlotGeneration: present, Quality: volumetric.QualityOff}}},
		epoch.Add(time.Second))
	in.send(60, 0, epoch.Add(2*time.Second))
	m.sending(&signal.Sending{Slots: []signal.SlotQuality{{SlotGeneration: present,
		OffFrames: &signal.FrameRange{First: 5, Count: 55}}}}, epoch.Add(2*time.Second))
	// The first steps wait for packets that may have arrived during a stall.
	for after := time.Duration(0); after < 2*interval; after += 5 * time.Millisecond {
		m.downlink.Step(nil, epoch.Add(3*time.Second+after), rtt)
	}
	if got, want := statsOf(t, m, "ada", 0).FrameCounts,
		(FrameCounts{Expected: 5, Complete: 3, Missing: 1, DroppedByServer: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
