package sfu

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// published is a publication without tracks, which tables of slots do not look at.
func published(name string, tiles int, kind volumetric.Kind) *publication {
	d := described(tiles, 2, volumetric.ModeAlternatives)
	d.Name, d.Kind = name, kind
	return describePublication("alice", *d)
}

func idleLines(kind volumetric.Kind, mids ...string) []newSlot {
	var lines []newSlot
	for _, mid := range mids {
		lines = append(lines, newSlot{mid: mid, kind: kind})
	}
	return lines
}

func TestSlotsAreGivenKeptAndFreed(t *testing.T) {
	table := newSlotTable()
	body, desk, voice := published("body", 2, volumetric.KindVideo), published("desk", 1, volumetric.KindVideo), published("voice", 1, volumetric.KindAudio)
	table.want(body)
	if told := table.assign(); len(told) != 0 {
		t.Fatalf("assigned %v without slots", told)
	}
	if n := table.needed(volumetric.KindVideo); n != 2 {
		t.Fatalf("needed %d, want 2", n)
	}
	table.add(idleLines(volumetric.KindVideo, "1", "2"))
	told := table.assign()
	if len(told) != 2 || told[0].Track.Tile != 0 || told[1].Track.Tile != 1 || told[0].Generation != 1 {
		t.Fatalf("assigned %+v", told)
	}
	table.want(voice)
	table.want(desk)
	if told := table.assign(); len(told) != 0 {
		t.Fatalf("assigned %v to slots that are taken, or of another kind", told)
	}
	freed := table.drop(body)
	if len(freed) != 2 || freed[0].Track != nil || freed[0].Generation != 2 {
		t.Fatalf("freed %+v", freed)
	}
	told = table.assign()
	if len(told) != 1 || told[0].MID != "1" || told[0].Generation != 3 || told[0].Track.Publication != "desk" {
		t.Fatalf("assigned %+v, want desk on the first slot in its third generation", told)
	}
	table.add(idleLines(volumetric.KindAudio, "3"))
	if told := table.assign(); len(told) != 1 || told[0].MID != "3" {
		t.Fatalf("assigned %+v, want voice on the audio slot", told)
	}
	table.drop(desk)
	table.want(desk)
	table.drop(desk)
	if n := table.needed(volumetric.KindVideo); n != 0 {
		t.Errorf("needed %d after all have gone, want 0", n)
	}
}

func TestDescriptionsTakeASlotEach(t *testing.T) {
	p := published("body", 2, volumetric.KindVideo)
	p.description.Mode = volumetric.ModeDescriptions
	table := newSlotTable()
	table.want(p)
	table.add(idleLines(volumetric.KindVideo, "1", "2", "3", "4"))
	seen := map[volumetric.TrackRef]bool{}
	for _, a := range table.assign() {
		seen[volumetric.TrackRef{TileRef: *a.Track, Quality: *a.Quality}] = true
	}
	if len(seen) != 4 {
		t.Errorf("assigned %v, want each of two tiles at each of two qualities", seen)
	}
}

func TestLinesAreUsedAgain(t *testing.T) {
	var table lineTable
	track := func(publication string, tile int) publishedTrack {
		return publishedTrack{publication: publication, kind: volumetric.KindVideo, tile: tile}
	}
	offer := func(wanted ...publishedTrack) (made int, changed bool) {
		lacking, changed := table.reconcilePublish(wanted)
		for _, l := range lacking {
			table.publish = append(table.publish, &publishLine{kind: l.kind, track: &l})
		}
		for _, l := range table.publish {
			l.offered = l.track != nil
		}
		return len(lacking), changed
	}
	if made, changed := offer(track("body", 0), track("body", 1)); made != 2 || !changed {
		t.Fatalf("made %d, changed %v", made, changed)
	}
	if made, changed := offer(track("body", 0), track("body", 1)); made != 0 || changed {
		t.Fatalf("nothing new: made %d, changed %v", made, changed)
	}
	if made, changed := offer(track("body", 1)); made != 0 || changed {
		t.Fatalf("one less needs no offer: made %d, changed %v", made, changed)
	}
	if made, changed := offer(track("body", 1), track("desk", 0), track("desk", 1)); made != 1 || !changed {
		t.Fatalf("one line is free again: made %d, changed %v", made, changed)
	}
	if len(table.publish) != 3 {
		t.Errorf("%d lines, want 3", len(table.publish))
	}
}

func TestAssignmentsNameWhatTheyCarry(t *testing.T) {
	s := &slot{newSlot: newSlot{mid: "7"}}
	body := published("body", 1, volumetric.KindVideo)
	target := body.targets()[0]
	want := signal.Assignment{MID: "7", Generation: 1, Track: &target.tile}
	for _, got := range []signal.Assignment{s.assign(&target), s.assignment()} {
		if got.MID != want.MID || got.Generation != want.Generation || *got.Track != *want.Track || got.Quality != nil {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if s.ready() {
		t.Error("ready before the line is negotiated and the client has acknowledged")
	}
}
