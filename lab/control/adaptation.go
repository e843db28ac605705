package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// headerShare is the size of the headers as a share of the payload of a full packet.
const headerShare = float64(congestion.PacketOverhead) / fragmentSize

// adaptation selects the qualities for one receiver before each frame. All tiles belong to one object and no viewpoint
// is set, so all tiles have the same weight.
type adaptation struct {
	publisher *publisher
	server    *server
	ledger    *ledger
	rtt       time.Duration
	allocator *allocate.Allocator
	budget    *allocate.Budget
	scene     allocate.Scene
	qualities [tiles]volumetric.Quality
	// available returns the highest quality of a tile that the server has; nil if the server has all.
	available func(tile int) volumetric.Quality
	allocated float64 // payload bit/s
	parity    float64 // share of source fragments
}

func newAdaptation(o *Options, p *publisher, s *server, l *ledger) (*adaptation, error) {
	cfg := allocate.DefaultConfig()
	allocator, err := allocate.New(cfg)
	if err != nil {
		return nil, err
	}
	budget, err := allocate.NewBudget(cfg.Budget)
	if err != nil {
		return nil, err
	}
	object := allocate.Object{Mode: volumetric.ModeAlternatives, Tiles: make([]allocate.Tile, tiles)}
	for t := range object.Tiles {
		object.Tiles[t].Levels = make([]allocate.Level, levels)
	}
	return &adaptation{
		publisher: p, server: s, ledger: l, rtt: o.RTT, allocator: allocator, budget: budget,
		scene: allocate.Scene{Objects: []allocate.Object{object}},
	}, nil
}

// decide sets the qualities of the next frame. dropped is the number of tile frames dropped since the last call.
func (a *adaptation) decide(dropped int, now time.Duration) {
	stats := a.server.Stats()
	_, deadline := nack.Repair(a.rtt, 0)
	a.parity = feedback.ParityShare(stats.Loss, a.rtt, deadline)
	overhead := headerShare + stats.Loss + a.parity
	a.scene.Budget = a.budget.Step(at(now), stats.Estimate, allocate.BudgetInput{
		Overhead: overhead, DroppedFrames: dropped, QueueDelay: stats.QueueDelay,
	})
	object := a.scene.Objects[0].Tiles
	for t := range object {
		if a.available != nil {
			object[t].Levels = object[t].Levels[:a.available(t)+1]
		}
		for q := range object[t].Levels {
			object[t].Levels[q].Rate = volumetric.Bitrate(a.publisher.rate(t, q))
		}
	}
	result := a.allocator.Allocate(&a.scene)
	for t := range object {
		object[t].Current = result.Tiles[0][t].Qualities
		a.qualities[t] = result.Tiles[0][t].Quality()
	}
	a.allocated = float64(result.Rate)
	a.server.Want(volumetric.Bitrate(float64(result.Wanted)*(1+overhead)), at(now))
}
