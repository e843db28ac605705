package peer

import (
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestLinesAreUsedAgain(t *testing.T) {
	var table lineTable
	track := func(publication string, tile int) Track {
		return Track{Publication: publication, Kind: volumetric.KindVideo, Tile: tile}
	}
	offer := func(wanted ...Track) (made int, changed bool) {
		lacking, changed := table.reconcilePublish(wanted)
		for _, l := range lacking {
			table.publish = append(table.publish, &publishLine{kind: l.Kind, track: &l})
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
