package control

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// maxEdges limits the memory of a controller: with states of maxStatusBytes, 256 edges hold 16 MiB.
	maxEdges = 256
	// maxOrders is the maximum number of orders of one edge: copies and trigger of 64 rules.
	maxOrders = 128
	// aliveFor is the time for which an edge counts as connected after a poll: two polls that are held in full, and a
	// second for the network.
	aliveFor = 2*pollHold + time.Second
)

// States of an order.
const (
	// Pending: the edge has not received the order.
	Pending = "pending"
	// Applied: the edge has carried out the order.
	Applied = "applied"
	// Refused: the edge does not carry out the order, for the reason in OrderState.Error.
	Refused = "refused"
)

// EdgeState is the state of an edge as its controller knows it.
type EdgeState struct {
	Name string `json:"name"`
	// Connected reports whether the edge polled lately. LastPoll is the zero time if the edge has not polled since the
	// controller started.
	Connected bool      `json:"connected"`
	LastPoll  time.Time `json:"last_poll,omitzero"`
	Remote    string    `json:"remote,omitempty"`
	// Orders are those in force, in the order in which they were made.
	Orders []OrderState `json:"orders"`
	// Status is the document that the edge sent last.
	Status json.RawMessage `json:"status,omitempty"`
}

// OrderState is an order with its state.
type OrderState struct {
	Order
	Made time.Time `json:"made"`
	// Expires is the time at which the order ends, or the zero time.
	Expires time.Time `json:"expires,omitzero"`
	State   string    `json:"state"`
	Error   string    `json:"error,omitempty"`
}

// poll is the message of an edge to its controller.
type poll struct {
	// Run is a random text of each start of an edge. An edge that starts again has no orders.
	Run    string          `json:"run"`
	Status json.RawMessage `json:"status"`
	// Results are the results of the orders of the last answer.
	Results []result `json:"results,omitempty"`
}

// result is the result of an order: Error is empty if the edge has carried out the order.
type result struct {
	ID    string `json:"id"`
	Error string `json:"error,omitempty"`
}

// validate reports the first invalid part of a poll.
func (p poll) validate() error {
	switch {
	case p.Run == "" || len(p.Run) > maxNameBytes:
		return fmt.Errorf("%w: run has %d bytes, expected 1 to %d", ErrRequest, len(p.Run), maxNameBytes)
	case len(p.Results) > maxOrders:
		return fmt.Errorf("%w: %d results, expected at most %d", ErrRequest, len(p.Results), maxOrders)
	}
	return nil
}

// answer is the controller's answer to a poll: the orders that the edge has not carried out yet.
type answer struct {
	Orders []Order `json:"orders"`
}

// ledger holds the edges and their orders. ledger is pure and not safe for concurrent use.
type ledger struct {
	edges map[string]*entry
}

// entry is one edge.
type entry struct {
	run      string
	lastPoll time.Time
	remote   string
	status   json.RawMessage
	orders   []OrderState
}

func newLedger() *ledger { return &ledger{edges: make(map[string]*entry)} }

// poll records a poll and returns the pending orders of the edge, and whether the edge has started since its last poll.
func (l *ledger) poll(name, remote string, p poll, now time.Time) (orders []Order, first bool, err error) {
	e := l.edges[name]
	if e == nil {
		if len(l.edges) >= maxEdges {
			return nil, false, fmt.Errorf("%w: the controller has %d", ErrFull, len(l.edges))
		}
		e = &entry{}
		l.edges[name] = e
	}
	if first = e.run != p.Run; first {
		e.run = p.Run
		for i := range e.orders {
			e.orders[i].State, e.orders[i].Error = Pending, ""
		}
	}
	e.lastPoll, e.remote, e.status = now, remote, p.Status
	for _, r := range p.Results {
		e.settle(r)
	}
	return e.pending(now), first, nil
}

// settle records the result of an order.
func (e *entry) settle(r result) {
	i := slices.IndexFunc(e.orders, func(o OrderState) bool { return o.ID == r.ID })
	if i < 0 {
		return
	}
	e.orders[i].State, e.orders[i].Error = Applied, ""
	if r.Error != "" {
		e.orders[i].State, e.orders[i].Error = Refused, clip(r.Error)
	}
}

// maxErrorBytes fits a sentence with a name and an expectation.
const maxErrorBytes = 400

// clip limits a text from outside.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], "")
}

// pending returns the orders that the edge has not carried out. The limit of an order is the rest of its time.
func (e *entry) pending(now time.Time) []Order {
	e.expire(now)
	orders := []Order{}
	for _, o := range e.orders {
		if o.State != Pending {
			continue
		}
		if !o.Expires.IsZero() {
			o.For = Duration(max(o.Expires.Sub(now), minFor))
		}
		orders = append(orders, o.Order)
	}
	return orders
}

// expire removes the orders whose time is over.
func (e *entry) expire(now time.Time) {
	e.orders = slices.DeleteFunc(e.orders, func(o OrderState) bool {
		return !o.Expires.IsZero() && !o.Expires.After(now)
	})
}

// order adds an order for an edge and returns the order's ID.
func (l *ledger) order(name string, o Order, now time.Time) (string, error) {
	if err := o.Validate(); err != nil {
		return "", err
	}
	e, err := l.edge(name)
	if err != nil {
		return "", err
	}
	o.ID = rand.Text()
	e.expire(now)
	e.orders = slices.DeleteFunc(e.orders, func(earlier OrderState) bool { return o.Replaces(earlier.Order) })
	if len(e.orders) >= maxOrders {
		return "", fmt.Errorf("%w: edge %q has %d orders, expected at most %d", ErrOrder, name, len(e.orders),
			maxOrders)
	}
	state := OrderState{Order: o, Made: now, State: Pending}
	if o.For != 0 {
		state.Expires = now.Add(o.For.value())
	}
	e.orders = append(e.orders, state)
	return o.ID, nil
}

// outcome returns the state of an order, Pending or Applied. If the edge refused the order, outcome removes it and
// returns an error that wraps ErrOrder. A replaced order counts as refused.
func (l *ledger) outcome(name, id string) (string, error) {
	e, err := l.edge(name)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(e.orders, func(o OrderState) bool { return o.ID == id })
	if i < 0 {
		return "", fmt.Errorf("%w: a later order has replaced it", ErrOrder)
	}
	o := e.orders[i]
	if o.State == Refused {
		e.orders = slices.Delete(e.orders, i, i+1)
		return "", fmt.Errorf("%w by edge %q: %s", ErrOrder, name, o.Error)
	}
	return o.State, nil
}

func (l *ledger) edge(name string) (*entry, error) {
	if e := l.edges[name]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("%w %q: no edge of that name has polled this controller", ErrNoEdge, name)
}

// forget removes an edge and its orders.
func (l *ledger) forget(name string) error {
	if _, err := l.edge(name); err != nil {
		return err
	}
	delete(l.edges, name)
	return nil
}

// state returns the state of an edge.
func (l *ledger) state(name string, now time.Time) (EdgeState, error) {
	e, err := l.edge(name)
	if err != nil {
		return EdgeState{}, err
	}
	e.expire(now)
	return EdgeState{
		Name: name, Connected: !e.lastPoll.IsZero() && now.Sub(e.lastPoll) < aliveFor, LastPoll: e.lastPoll,
		Remote: e.remote, Orders: append([]OrderState{}, e.orders...), Status: e.status,
	}, nil
}

// names returns the names of all edges in alphabetical order.
func (l *ledger) names() []string { return slices.Sorted(maps.Keys(l.edges)) }
