package client

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/client/internal/downlink"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestTilesWithoutEnd: a participant publishes under ever new names, while one tile continues.
func TestTilesWithoutEnd(t *testing.T) {
	m := newRig(t, Config{})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "1", volumetric.KindVideo, 1)
	newIncoming(t, m, "2", volumetric.KindVideo, 3)
	assign(t, m, "1", 1, "grace", 0, &body)
	in.send(1, 0, epoch)
	passing := body
	for n := range downlink.MaxTiles + 100 {
		passing.Name = fmt.Sprint("body ", n)
		assign(t, m, "2", uint32(n+1), "mallory", 0, &passing)
	}
	stats := m.session.Stats()
	if len(stats) != downlink.MaxTiles {
		t.Errorf("figures of %d tiles are kept, want %d", len(stats), downlink.MaxTiles)
	}
	if s := statsOf(t, m, "grace", 0); s.Packets != 3 {
		t.Errorf("%d packets are counted of the tile that goes on, want 3", s.Packets)
	}
	last := false
	for _, s := range stats {
		if s.Track.Publication == "body 0" {
			t.Error("the tile that was assigned first is kept")
		}
		last = last || s.Track.Publication == passing.Name && s.Track.Participant == "mallory"
	}
	if !last {
		t.Error("the tile that was assigned last is not kept")
	}
}
