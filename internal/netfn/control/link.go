package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// pollInterval is the minimum time between two polls: an order arrives within a round trip nevertheless, since the
	// controller holds the poll before.
	pollInterval = 200 * time.Millisecond
	// resultInterval is the same for a poll with results, for which an operator waits.
	resultInterval = 20 * time.Millisecond
	// minRetry and maxRetry are the waits after the first and after many failures. An edge finds a controller that
	// returns within maxRetry.
	minRetry = 500 * time.Millisecond
	maxRetry = 15 * time.Second
)

// LinkState is the state of the connection of an edge to its controller.
type LinkState struct {
	URL       string `json:"url"`
	Connected bool   `json:"connected"`
	// Since is the time of the last change of Connected.
	Since time.Time `json:"since"`
	// Failures is the number of failed polls since the start; Error is the last failure, "" while connected.
	Failures uint64 `json:"failures"`
	Error    string `json:"error,omitempty"`
}

// Link is the connection of an edge to a controller.
type Link struct {
	requests requester
	name     string
	run      string
	edge     Edge
	log      *zap.Logger

	// done has the results of the latest orders. An order that arrives again, because the controller has started again,
	// is not carried out again: a later order from the socket stays in force.
	done []doneOrder

	mu    sync.Mutex
	state LinkState
}

// doneOrder is an order that the edge has carried out or refused.
type doneOrder struct {
	order  Order
	result result
}

// NewLink returns the connection of the edge with the name to a controller. The token file is read for each poll, so
// that a new token needs no restart.
func NewLink(address, tokenFile, name string, edge Edge, log *zap.Logger) (*Link, error) {
	requests, err := newRemote(address, tokenFile)
	if err != nil {
		return nil, err
	}
	return &Link{
		requests: requests, name: name, run: rand.Text(), edge: edge, log: log,
		state: LinkState{URL: address, Since: time.Now()},
	}, nil
}

// State returns the state of the connection. State may be called by any goroutine.
func (l *Link) State() LinkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Run polls the controller until the context ends. A controller that cannot be reached changes nothing of the edge.
func (l *Link) Run(ctx context.Context) {
	var results []result
	retry := time.Duration(0)
	for ctx.Err() == nil {
		began := time.Now()
		orders, err := l.poll(ctx, results)
		if ctx.Err() != nil {
			return
		}
		l.note(err, time.Now())
		if err != nil {
			retry = nextRetry(retry)
			// Edges whose controller was restarted do not return all at once.
			sleep(ctx, retry/2+mathrand.N(retry/2))
			continue
		}
		retry = 0
		results = l.apply(orders)
		interval := pollInterval
		if len(results) > 0 {
			interval = resultInterval
		}
		sleep(ctx, interval-time.Since(began))
	}
}

// poll sends the state of the edge and the results of the last orders, and returns new orders.
func (l *Link) poll(ctx context.Context, results []result) ([]Order, error) {
	state, err := l.edge.Status()
	if err != nil {
		return nil, err
	}
	status, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("encode the state of the edge: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, pollHold+readTimeout)
	defer cancel()
	var a answer
	err = l.requests.do(ctx, http.MethodPost, edgePath(l.name)+"/poll",
		poll{Run: l.run, Status: status, Results: results}, &a)
	if err != nil {
		return nil, err
	}
	if len(a.Orders) > maxOrders {
		return nil, fmt.Errorf("%w: the controller sent %d orders, expected at most %d", ErrRequest, len(a.Orders),
			maxOrders)
	}
	return a.Orders, nil
}

// apply carries out orders and returns their results.
func (l *Link) apply(orders []Order) []result {
	results := make([]result, 0, len(orders))
	for _, o := range orders {
		i := slices.IndexFunc(l.done, func(d doneOrder) bool { return d.order.ID == o.ID })
		if i >= 0 {
			results = append(results, l.done[i].result)
			continue
		}
		r := result{ID: o.ID}
		if err := l.carryOut(o); err != nil {
			r.Error = clip(err.Error())
		}
		results = append(results, r)
		l.done = slices.DeleteFunc(l.done, func(d doneOrder) bool { return o.Replaces(d.order) })
		l.done = append(l.done, doneOrder{o, r})
		// A controller does not send again more orders than it holds.
		l.done = l.done[max(len(l.done)-maxOrders, 0):]
	}
	return results
}

func (l *Link) carryOut(o Order) error {
	err := o.Validate()
	if err == nil {
		err = l.edge.Apply(o)
	}
	fields := append(orderFields(o), zap.String("id", o.ID))
	if err != nil {
		l.log.Warn("order of the controller refused", append(fields, zap.Error(err))...)
		return err
	}
	l.log.Info("order of the controller", fields...)
	return nil
}

// note records the result of a poll. Only changes are logged: a controller may be away for days.
func (l *Link) note(err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.state
	if err != nil {
		l.state.Failures++
		l.state.Error = err.Error()
	} else {
		l.state.Error = ""
	}
	l.state.Connected = err == nil
	if l.state.Connected != before.Connected {
		l.state.Since = now
	}
	switch {
	case err == nil && !before.Connected:
		l.log.Info("connected to the controller", zap.String("url", l.state.URL))
	case err != nil && l.state.Error != before.Error:
		l.log.Warn("the controller does not answer, the orders stay in force", zap.String("url", l.state.URL),
			zap.Error(err))
	}
}

// nextRetry returns the wait after a failure that follows one with the given wait.
func nextRetry(last time.Duration) time.Duration { return min(max(2*last, minRetry), maxRetry) }

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
