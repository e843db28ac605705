package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/edge"
)

// Status is the state of an edge and of its process.
type Status struct {
	edge.Status
	Version string `json:"version"`
	// Controller is nil without a controller.
	Controller *control.LinkState `json:"controller,omitempty"`
}

// Status implements control.Edge.
func (d *Daemon) Status() (any, error) {
	status, link, err := d.Snapshot()
	return Status{status, d.version, link}, err
}

// Snapshot implements metrics.Source.
func (d *Daemon) Snapshot() (edge.Status, *control.LinkState, error) {
	status, err := d.edge.Status()
	if err != nil || d.link == nil {
		return status, nil, err
	}
	link := d.link.State()
	return status, &link, nil
}

// Apply implements control.Edge.
func (d *Daemon) Apply(o control.Order) error { return d.leases.order(o) }

// Detach implements control.Edge.
func (d *Daemon) Detach(ctx context.Context) error {
	d.stop()
	select {
	case <-d.ended:
		return d.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apply carries out an order without its limit.
func (d *Daemon) apply(o control.Order) error {
	orders, err := ordersOf(d.config, o)
	for _, order := range orders {
		err = errors.Join(err, d.edge.Set(order))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", control.ErrOrder, err)
	}
	return nil
}

// ordersOf returns the orders for an edge: more than one if each rule of the configuration has its own copies.
func ordersOf(c *edge.Config, o control.Order) ([]edge.Order, error) {
	switch o.Copies {
	case "":
		return []edge.Order{{Rule: o.Rule, Trigger: o.Trigger}}, nil
	case control.Configured:
		var orders []edge.Order
		for _, rule := range rulesOf(c) {
			if o.Rule == "" || o.Rule == rule.Name {
				orders = append(orders, edge.Order{Rule: rule.Name, Copies: &rule.Copies})
			}
		}
		if len(orders) == 0 {
			// The edge names the rules that it has.
			orders = []edge.Order{{Rule: o.Rule, Copies: &edge.Copies{Mode: edge.CopiesAuto}}}
		}
		return orders, nil
	}
	copies, err := edge.ParseCopies(o.Copies)
	if err != nil {
		return nil, err
	}
	return []edge.Order{{Rule: o.Rule, Copies: &copies}}, nil
}

// rulesOf returns the rules of the sender, nil without one.
func rulesOf(c *edge.Config) []edge.Rule {
	if c.Send == nil {
		return nil
	}
	return c.Send.Rules
}

func ruleNames(c *edge.Config) []string {
	var names []string
	for _, rule := range rulesOf(c) {
		names = append(names, rule.Name)
	}
	return names
}
