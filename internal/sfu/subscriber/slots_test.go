package subscriber

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// published returns a publication without tracks, which tables of slots do not use.
func published(name string, tiles int, kind volumetric.Kind) *Publication {
	d := described(tiles, 2, volumetric.ModeAlternatives)
	d.Name, d.Kind = name, kind
	return NewPublication("alice", *d)
}

func idleLines(kind volumetric.Kind, mids ...string) []Line {
	var lines []Line
	for _, mid := range mids {
		lines = append(lines, Line{MID: mid, Kind: kind})
	}
	return lines
}

func TestSlotsAreGivenKeptAndFreed(t *testing.T) {
	table := NewSlots()
	body, desk, voice := published("body", 2, volumetric.KindVideo), published("desk", 1, volumetric.KindVideo),
		published("voice", 1, volumetric.KindAudio)
	table.Want(body)
	if told := table.Assign(); len(told) != 0 {
		t.Fatalf("assigned %v without slots", told)
	}
	if n := table.Needed(volumetric.KindVideo); n != 2 {
		t.Fatalf("needed %d, want 2", n)
	}
	table.Add(idleLines(volumetric.KindVideo, "1", "2"))
	told := table.Assign()
	if len(told) != 2 || told[0].Track.Tile != 0 || told[1].Track.Tile != 1 || told[0].Generation != 1 {
		t.Fatalf("assigned %+v", told)
	}
	table.Want(voice)
	table.Want(desk)
	if told := table.Assign(); len(told) != 0 {
		t.Fatalf("assigned %v to slots that are taken, or of another kind", told)
	}
	freed := table.Drop(body)
	if len(freed) != 2 || freed[0].Track != nil || freed[0].Generation != 2 {
		t.Fatalf("freed %+v", freed)
	}
	told = table.Assign()
	if len(told) != 1 || told[0].MID != "1" || told[0].Generation != 3 || told[0].Track.Publication != "desk" {
		t.Fatalf("assigned %+v, want desk on the first slot in its third generation", told)
	}
	table.Add(idleLines(volumetric.KindAudio, "3"))
	if told := table.Assign(); len(told) != 1 || told[0].MID != "3" {
		t.Fatalf("assigned %+v, want voice on the audio slot", told)
	}
	table.Drop(desk)
	table.Want(desk)
	table.Drop(desk)
	if n := table.Needed(volumetric.KindVideo); n != 0 {
		t.Errorf("needed %d after all have gone, want 0", n)
	}
}

func TestDescriptionsTakeASlotEach(t *testing.T) {
	p := published("body", 2, volumetric.KindVideo)
	p.Description.Mode = volumetric.ModeDescriptions
	table := NewSlots()
	table.Want(p)
	table.Add(idleLines(volumetric.KindVideo, "1", "2", "3", "4"))
	seen := map[volumetric.TrackRef]bool{}
	for _, a := range table.Assign() {
		seen[volumetric.TrackRef{TileRef: *a.Track, Quality: *a.Quality}] = true
	}
	if len(seen) != 4 {
		t.Errorf("assigned %v, want each of two tiles at each of two qualities", seen)
	}
}

func TestAssignmentsNameTheTrack(t *testing.T) {
	s := &Slot{Line: Line{MID: "7"}}
	body := published("body", 1, volumetric.KindVideo)
	target := body.targets()[0]
	want := signal.Assignment{MID: "7", Generation: 1, Track: &target.Tile}
	for _, got := range []signal.Assignment{s.assign(&target), s.assignment()} {
		if got.MID != want.MID || got.Generation != want.Generation || *got.Track != *want.Track || got.Quality != nil {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if s.Ready() {
		t.Error("ready before the line is negotiated and the client has acknowledged")
	}
}
