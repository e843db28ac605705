package allocate

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestValidateNamesTheKey(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for key, change := range map[string]func(*Config){
		"strategy":            func(c *Config) { c.Strategy = "best" },
		"switch_cost":         func(c *Config) { c.SwitchCost = 0.3 },
		"reserve":             func(c *Config) { c.Reserve = -0.1 },
		"view.pixels":         func(c *Config) { c.View.Pixels = math.Inf(1) },
		"view.concavity":      func(c *Config) { c.View.Concavity = 0 },
		"view.hidden_share":   func(c *Config) { c.View.HiddenShare = 1.1 },
		"view.edge_degrees":   func(c *Config) { c.View.EdgeDegrees = 91 },
		"view.edge_share":     func(c *Config) { c.View.EdgeShare = math.NaN() },
		"view.unseen":         func(c *Config) { c.View.Unseen = "black" },
		"view.unseen_degrees": func(c *Config) { c.View.UnseenDegrees = 181 },
		"budget.headroom":     func(c *Config) { c.Budget.Headroom = 0.6 },
		"budget.reserve_max":  func(c *Config) { c.Budget.ReserveMax = -1 },
		"budget.reserve_time": func(c *Config) { c.Budget.ReserveTime = 0 },
		"budget.queue_max":    func(c *Config) { c.Budget.QueueMax = -1 },
		"budget.queue_time":   func(c *Config) { c.Budget.QueueTime = 0 },
		"budget.drop_cut":     func(c *Config) { c.Budget.DropCut = 1 },
		"budget.cut_max":      func(c *Config) { c.Budget.CutMax = 1 },
		"budget.cut_time":     func(c *Config) { c.Budget.CutTime = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if _, err := New(cfg); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), key+" is ") {
			t.Errorf("%s: got %v", key, err)
		}
		if _, err := NewBudget(cfg.Budget); strings.HasPrefix(key, "budget.") != (err != nil) {
			t.Errorf("%s: the budget returned %v", key, err)
		}
	}
}
