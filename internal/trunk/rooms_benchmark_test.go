package trunk

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/forward"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/transport"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// BenchmarkRooms measures a second of steps of a host, and the share of a core that they use, while nothing changes: a
// node of 5 with 1,000 rooms, all of which span all nodes. Each room has 10 publications of 8 tiles in three qualities,
// two of which are those of the node.
func BenchmarkRooms(b *testing.B) {
	cfg := forward.DefaultConfig()
	cfg.Pacing = pacing.Off
	engine := forward.NewEngine(cfg, func() egress.Batch { return new(transport.Batch) })
	defer engine.Close()
	const rooms, nodes, tiles, qualities = 1000, 5, 8, 3
	s := &services{
		cfg: Config{Node: "node-0", Fanout: DefaultFanout}, engine: engine, notify: make(chan struct{}, 1),
	}
	h := &Host{
		services: s, connector: &connector{services: s, peers: map[string]*peer{}}, catalog: newCatalog(),
		links: map[string]*link{}, now: start,
	}
	name := func(node int) string { return fmt.Sprintf("node-%d", node) }
	for other := 1; other < nodes; other++ {
		l := newLink(h.services, h.catalog, name(other), start)
		l.greeted, l.version = true, relayVersion
		h.links[l.node] = l
	}
	tracks := newTracks(engine, tiles, qualities, 1, volumetric.MIMEVolumetric)
	demand := make([]allocate.QualitySet, tiles)
	for i := range demand {
		demand[i] = allocate.Qualities(0)
	}
	for room := range rooms {
		for p := range 10 {
			home := name(p % nodes)
			ref := volumetric.PublicationRef{Participant: fmt.Sprint(p), Publication: "cloud"}
			key := publicationOf(fmt.Sprint(room), ref, uint64(p))
			if p%nodes > 0 {
				h.Mirror(home, key.Room, ref, key.ID, qualities, tracks)
				h.Take(home, key.Room, ref, key.ID, Demand{Tiles: demand})
				continue
			}
			h.Offer(key.Room, ref, key.ID, qualities, tracks)
			for _, l := range h.links {
				if err := l.handleTake(&take{publication: key, Tiles: lists(demand)}, start); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	for _, l := range h.links {
		for len(l.origin.changed) > 0 {
			l.origin.step(start)
		}
		clear(l.updates.due)
	}
	h.pending = nil
	now, used := start, processorTime(b)
	for b.Loop() {
		// Ticks and the packets of four trunks wake the host.
		for range 50 {
			now = now.Add(time.Second / 50)
			for _, l := range h.links {
				l.silence.last = now
			}
			h.Step(now)
		}
	}
	b.ReportMetric(100*(processorTime(b)-used).Seconds()/float64(b.N), "%core")
}
