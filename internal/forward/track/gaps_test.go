package track

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/switching"
)

// longFrame returns a frame of maximum length whose packets a hostile publisher has all withheld until they were given
// up.
func longFrame() (*Losses, *switching.Packet, []int) {
	facts := &switching.Packet{Frame: 7, FrameStart: 100, FramePackets: MaxFramePackets, SourcePackets: MaxFramePackets}
	places := make([]int, MaxFramePackets)
	for i := range places {
		places[i] = i
	}
	s := &Losses{}
	s.Lose(facts, places)
	return s, facts, places
}

// TestLatePacketsAllocateNothing lets all packets of the longest frame arrive after they were given up. None allocates
// memory, and at the end the frame lacks nothing.
func TestLatePacketsAllocateNothing(t *testing.T) {
	s, facts, places := longFrame()
	next := facts.FrameStart
	if n := testing.AllocsPerRun(len(places)-1, func() { s.Came(next); next++ }); n != 0 {
		t.Errorf("a late packet costs %v allocations, expected none", n)
	}
	if lost := s.Gaps().Find(facts.Frame).Lost(nil, MaxFramePackets); len(lost) != 0 {
		t.Errorf("%d packets are lost after all have come, the first is %d", len(lost), lost[0])
	}
}

// TestGapsOfInconsistentPackets uses packets of one frame that claim different starts and lengths.
func TestGapsOfInconsistentPackets(t *testing.T) {
	s := &Losses{}
	for _, facts := range []switching.Packet{
		{Frame: 7, FrameStart: 100, FramePackets: 10}, {Frame: 7, FrameStart: 100, FramePackets: 200},
		{Frame: 7, FrameStart: 90, FramePackets: 5}, {Frame: 7, FrameStart: 90, FramePackets: MaxFramePackets},
	} {
		s.Lose(&facts, []int{0, int(facts.FramePackets) - 1})
		s.Came(facts.FrameStart)
	}
	gap := s.Gaps().Find(7)
	if lost := gap.Lost(nil, MaxFramePackets); len(lost) != 2 || lost[1] != MaxFramePackets-1 {
		t.Errorf("lost are %v, expected the last packet of the frame of 5 packets, and of the last frame", lost)
	}
}

func BenchmarkLatePacket(b *testing.B) {
	s, facts, places := longFrame()
	b.ReportAllocs()
	for i := range b.N {
		s.Came(facts.FrameStart + int64(i%len(places)))
	}
}
