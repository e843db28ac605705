package control

import (
	"time"

	"github.com/volsfu/volsfu/internal/allocate"
	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/feedback"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// headerShare is what headers take as a share of the payload of full packets.
const headerShare = float64(congestion.PacketOverhead) / fragmentSize

// adaptation decides what a receiver is sent, before each frame: the tiles are of one object that is seen from nowhere, so that all are worth the same.
type adaptation struct {
	publisher *publisher
	server    *server
	ledger    *ledger
	rtt       time.Duration
	allocator *allocate.Allocator
	budget    *allocate.Budget
	scene     allocate.Scene
	qualities [tiles]volumetric.Quality
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
		publisher: p, server: s, ledger: l, rtt: o.RTT, allocator: allocator, budget: budget, scene: allocate.Scene{Objects: []allocate.Object{object}},
	}, nil
}

// decide sets the qualities of the next frame. dropped counts frames of tiles that were dropped since the last one.
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
