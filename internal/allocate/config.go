package allocate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrConfig is the sentinel of configuration errors. The wrapping error names the key, its value and the expected
// values.
var ErrConfig = errors.New("invalid allocation configuration")

// The strategies. All except the first are those of VR2Gather, for comparison.
const (
	StrategyVolsfu         = "volsfu"
	StrategyUniform        = "uniform"
	StrategyGreedy         = "greedy"
	StrategyHybrid         = "hybrid"
	StrategyWeightedHybrid = "weighted_hybrid"
	StrategyFront          = "front"
)

// The maximum for tiles out of sight.
const (
	// UnseenLowest: the lowest quality, so that a viewer who turns sees something at once.
	UnseenLowest = "lowest"
	// UnseenOff: nothing.
	UnseenOff = "off"
	// UnseenFull: any quality that fits the budget.
	UnseenFull = "full"
)

// Strategies returns the names of all strategies, the default first.
func Strategies() []string {
	return []string{StrategyVolsfu, StrategyUniform, StrategyGreedy, StrategyHybrid, StrategyWeightedHybrid,
		StrategyFront}
}

// Config is the configuration of the allocation.
type Config struct {
	Strategy string `yaml:"strategy" help:"strategy: volsfu, uniform, greedy, hybrid, weighted_hybrid or front"`
	// SwitchCost is the cost of a change of quality, as a share of its gain, 0 to 0.25. SwitchCost keeps the allocation
	// stable while viewpoints rest. At the edge of the view the cost is three times as high.
	SwitchCost float64 `yaml:"-"`
	// Reserve is the share of the budget that an upgrade must leave, 0 to 0.2.
	Reserve float64 `yaml:"-"`

	View ViewConfig `yaml:"view" help:"value of a tile to a viewer"`
	// Budget configures the share of the estimate that media may use.
	Budget BudgetConfig `yaml:"-"`
}

// ViewConfig configures the value of a tile.
type ViewConfig struct {
	// Pixels is the number of pixels of a receiver's view. Points of a tile beyond that number have little value.
	Pixels float64 `yaml:"-"`
	// Concavity is the exponent by which the first points of a tile are worth more than its last points.
	Concavity float64 `yaml:"-"`
	// HiddenShare is the value of a tile on the far side of its object relative to one on the near side, 0 to 1.
	HiddenShare float64 `yaml:"-"`
	// EdgeDegrees is the margin around the view in which the value of a tile falls to 1/e.
	EdgeDegrees float64 `yaml:"-"`
	// EdgeShare is the value just beyond the edge of the view relative to the value inside, 0 to 1.
	EdgeShare float64 `yaml:"-"`
	// Unseen saves the bits of tiles that no viewer sees, on links, servers and publishers. A viewer who turns fast
	// sees a fifth of a second at low quality.
	Unseen string `yaml:"unseen" help:"maximum for tiles out of sight: lowest quality, off, or full"`
	// UnseenDegrees is the angle beyond the view's edge up to which tiles are in sight.
	UnseenDegrees float64 `yaml:"-"`
}

// BudgetConfig configures a Budget.
type BudgetConfig struct {
	// Headroom is the share of the estimate reserved for frames above the mean size, 0 to 0.5.
	Headroom float64 `yaml:"-"`
	// ReserveMax bounds the share of a risen estimate that stays unused in case the estimate falls again, 0 to 0.5.
	ReserveMax float64 `yaml:"-"`
	// ReserveTime is the time constant of that share while the estimate does not fall.
	ReserveTime time.Duration `yaml:"-"`
	// QueueMax is the queue on the path up to which the budget is not reduced.
	QueueMax time.Duration `yaml:"-"`
	// QueueTime is the time in which a longer queue is to be drained.
	QueueTime time.Duration `yaml:"-"`
	// DropCut is the share of the budget that one frame dropped before sending removes for a moment, 0 to 0.5.
	DropCut float64 `yaml:"-"`
	// CutMax bounds the share that queues and dropped frames remove together, 0 to 0.9.
	CutMax float64 `yaml:"-"`
	// CutTime is the time constant of that share.
	CutTime time.Duration `yaml:"-"`
}

// DefaultConfig returns the default configuration.
func DefaultConfig() Config {
	return Config{
		Strategy: StrategyVolsfu,
		// A tile is raised in place of another if the gain per bit is (1+c)/(1-c) times as large: 1.105 times. Noise of
		// 3 % in both values is 1.06. A larger cost would prevent ladders with few tiles from using the budget, if one
		// tile has to fall by a step for another one to rise.
		SwitchCost: 0.05,
		// Rates measured over a second (30 frames that vary by ±20 %, 11.5 % in the root mean square) vary by 11.5 % /
		// √30 = 2.1 % per tile, and by half of that over the sum of four.
		Reserve: 0.02,
		View: ViewConfig{
			// One eye of a current headset: 2064 × 2208.
			Pixels:      4.5e6,
			Concavity:   1,
			HiddenShare: 0.3,
			// Heads turn easily at 100°/s, and a decision is visible after 100 ms: a round trip and two frame
			// intervals.
			EdgeDegrees: 10,
			EdgeShare:   0.25,
			Unseen:      UnseenLowest,
			// At 100°/s, the angle of the 200 ms until a higher quality arrives: 33 ms until the next report of the
			// viewpoint, 50 until the next decision, a frame interval and a round trip until its publisher has resumed
			// the quality, and another interval for the frame itself. A viewer who turns faster sees the lowest quality
			// meanwhile.
			UnseenDegrees: 20,
		},
		Budget: BudgetConfig{
			Headroom:    0.04,
			ReserveMax:  0.06,
			ReserveTime: 5 * time.Second,
			QueueMax:    15 * time.Millisecond,
			QueueTime:   500 * time.Millisecond,
			DropCut:     0.03,
			CutMax:      0.20,
			CutTime:     time.Second,
		},
	}
}

// Validate reports the first invalid key.
func (c Config) Validate() error {
	if !slices.Contains(Strategies(), c.Strategy) {
		return fmt.Errorf("%w: strategy is %q, expected one of %s", ErrConfig, c.Strategy,
			strings.Join(Strategies(), ", "))
	}
	if !slices.Contains([]string{UnseenLowest, UnseenOff, UnseenFull}, c.View.Unseen) {
		return fmt.Errorf("%w: view.unseen is %q, expected %s, %s or %s", ErrConfig, c.View.Unseen, UnseenLowest,
			UnseenOff, UnseenFull)
	}
	for _, f := range []struct {
		key                   string
		value, least, largest float64
	}{
		{"switch_cost", c.SwitchCost, 0, 0.25},
		{"reserve", c.Reserve, 0, 0.2},
		{"view.pixels", c.View.Pixels, 1e3, 1e9},
		{"view.concavity", c.View.Concavity, 0.01, 20},
		{"view.hidden_share", c.View.HiddenShare, 0, 1},
		{"view.edge_degrees", c.View.EdgeDegrees, 0, 90},
		{"view.edge_share", c.View.EdgeShare, 0, 1},
		{"view.unseen_degrees", c.View.UnseenDegrees, 0, 180},
	} {
		if !(f.value >= f.least && f.value <= f.largest) {
			return fmt.Errorf("%w: %s is %v, expected %v to %v", ErrConfig, f.key, f.value, f.least, f.largest)
		}
	}
	return c.Budget.Validate()
}

// Validate reports the first invalid key, named as a key of Config.
func (c BudgetConfig) Validate() error {
	for _, f := range []struct {
		key            string
		value, largest float64
	}{
		{"budget.headroom", c.Headroom, 0.5},
		{"budget.reserve_max", c.ReserveMax, 0.5},
		{"budget.drop_cut", c.DropCut, 0.5},
		{"budget.cut_max", c.CutMax, 0.9},
	} {
		if !(f.value >= 0 && f.value <= f.largest) {
			return fmt.Errorf("%w: %s is %v, expected 0 to %v", ErrConfig, f.key, f.value, f.largest)
		}
	}
	for _, d := range []struct {
		key          string
		value, least time.Duration
	}{
		{"budget.reserve_time", c.ReserveTime, 100 * time.Millisecond},
		{"budget.queue_max", c.QueueMax, 0},
		{"budget.queue_time", c.QueueTime, 50 * time.Millisecond},
		{"budget.cut_time", c.CutTime, 50 * time.Millisecond},
	} {
		if d.value < d.least {
			return fmt.Errorf("%w: %s is %v, expected %v or more", ErrConfig, d.key, d.value, d.least)
		}
	}
	return nil
}
