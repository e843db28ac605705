package subscriber

import (
	"fmt"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// clientPublication returns a publication for VR2Gather peers with the given number of tiles and three qualities.
func clientPublication(client uint32, name string, tiles int) *Publication {
	p := NewPublication(fmt.Sprint(client), volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, 3),
	})
	p.Number = client
	return p
}

// carried lists the names of the lines of a table. A star marks lines with a target.
func carried(table *Slots) string {
	var names []string
	for _, s := range table.all {
		name := "-"
		if s.name != nil {
			name = fmt.Sprintf("%s_%d_%d", s.name.Kind, s.name.Publisher, s.name.Tile)
		}
		if s.Target != nil {
			name += "*"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// TestNamedLines adds and removes publications for a VR2Gather peer. Each tile of each client keeps its own line.
func TestNamedLines(t *testing.T) {
	table := NewNamedSlots(100)
	grow := func() {
		var lines []Line
		for n := len(table.all); n < table.NamedCount(volumetric.KindVideo); n++ {
			lines = append(lines, Line{MID: fmt.Sprint(n), Kind: volumetric.KindVideo})
		}
		table.Add(lines)
		table.Assign()
	}
	expect := func(step, want string) {
		t.Helper()
		if got := carried(table); got != want {
			t.Errorf("%s: lines are %q, expected %q", step, got, want)
		}
	}
	first, second := clientPublication(1, "body", 2), clientPublication(2, "body", 1)
	table.Want(first)
	grow()
	expect("the first comes", "video_1_0* video_1_1*")
	table.Drop(first)
	table.Want(second)
	table.Assign()
	expect("another finds no line", "video_1_0 video_1_1")
	grow()
	expect("it gets one", "video_1_0 video_1_1 video_2_0*")
	again := clientPublication(1, "body", 2)
	table.Want(again)
	table.Assign()
	expect("the first is back", "video_1_0* video_1_1* video_2_0*")
	short := clientPublication(3, "body", 1)
	table.Want(short)
	table.Add([]Line{{MID: "9", Kind: volumetric.KindVideo}})
	table.Drop(short)
	table.Assign()
	table.Offer()
	table.Want(short)
	table.Assign()
	expect("what ended before its line was offered gets another", "video_1_0* video_1_1* video_2_0* video_4294967295_0")
	grow()
	expect("and so it does", "video_1_0* video_1_1* video_2_0* video_4294967295_0 video_3_0*")
	if n := table.NamedCount(volumetric.KindVideo); n != 5 {
		t.Errorf("%d lines are wanted, expected 5", n)
	}
	for _, s := range table.all {
		if s.acknowledged != s.Generation {
			t.Errorf("line %v waits for an acknowledgement", *s.name)
		}
	}
}

// TestLinesAreRenamedOnceThereMayBeNoMore adds successive clients for a VR2Gather peer with a limit of three lines.
func TestLinesAreRenamedOnceThereMayBeNoMore(t *testing.T) {
	table := NewNamedSlots(3)
	expect := func(step, want string, renames int) {
		t.Helper()
		if got := carried(table); got != want || table.renames != renames {
			t.Errorf("%s: lines are %q after %d renames, expected %q after %d", step, got, table.renames, want, renames)
		}
	}
	come := func(p *Publication) {
		table.Want(p)
		table.Assign()
		var lines []Line
		for n := len(table.all); n < min(table.NamedCount(volumetric.KindVideo), table.limit); n++ {
			lines = append(lines, Line{MID: fmt.Sprint(n), Kind: volumetric.KindVideo})
		}
		table.Add(lines)
		table.Assign()
	}
	// open returns the number of lines that may carry media.
	open := func() (n int) {
		for _, s := range table.all {
			if s.Target != nil && s.acknowledged == s.Generation {
				n++
			}
		}
		return n
	}
	first, second, third := clientPublication(1, "body", 1), clientPublication(2, "body", 2),
		clientPublication(3, "body", 1)
	come(first)
	come(second)
	table.Offer()
	table.Answered()
	expect("two clients come", "video_1_0* video_2_0* video_2_1*", 0)
	come(third)
	expect("a third finds no line", "video_1_0* video_2_0* video_2_1*", 0)
	table.Drop(second)
	table.Assign()
	expect("the second goes", "video_1_0* video_3_0* video_2_1", 1)
	if n := open(); n != 1 {
		t.Errorf("%d lines may carry something before the peer knows the other name, expected 1", n)
	}
	table.Answered()
	if n := open(); n != 1 {
		t.Errorf("%d lines may carry something after the answer to an offer of before, expected 1", n)
	}
	table.Offer()
	table.Answered()
	if n := open(); n != 2 {
		t.Errorf("%d lines may carry something after the answer, expected 2", n)
	}
	table.Drop(third)
	come(second)
	expect("the second is back", "video_1_0* video_2_0* video_2_1*", 2)
}
