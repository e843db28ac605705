package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/trigger"
)

const (
	// edgeTimeout bounds a request to an edge. During the request no reception is read.
	edgeTimeout = time.Second
	// ruleInterval is the time between two requests for the rule of an edge. The edge may restart with another
	// configuration, or start after the server.
	ruleInterval = 5 * time.Second
)

// errNoRule means that an edge has no rule of the configured name.
var errNoRule = errors.New("the edge has no such rule")

// receptions is the data plane as edgeTrigger reads it.
type receptions interface {
	Receptions([]egress.Reception) []egress.Reception
}

// edgeTrigger starts the copies of an edge of volnet while the receivers behind the edge are in trouble
// (trigger.Receivers). Its goroutine reads counts of the data plane only, so that an edge that does not answer has no
// effect on media.
type edgeTrigger struct {
	config.Edge
	socket control.Socket
	plane  receptions
	log    *zap.Logger
	end    context.CancelFunc
	ended  sync.WaitGroup

	// troubled is set while the receivers are in trouble. accepted and failed count orders.
	troubled         atomic.Bool
	accepted, failed atomic.Uint64

	// The goroutine owns the fields below.

	receivers trigger.Receivers
	// expires is the time at which the last order ends, since the start.
	expires time.Duration
	// destination is the prefix of the rule, invalid while the prefix is not known. read is the time of the last
	// request for the rule.
	destination netip.Prefix
	read        time.Time
	// failure is the text of the failure that was logged last, empty while the edge answers. answered is set once the
	// edge has answered.
	failure  string
	answered bool
	found    []egress.Reception
	given    []trigger.Reception
}

func newEdgeTrigger(edge config.Edge, plane receptions, log *zap.Logger) *edgeTrigger {
	return &edgeTrigger{Edge: edge, socket: control.NewSocket(edge.Socket), plane: plane,
		log: log.With(zap.String("socket", edge.Socket), zap.String("rule", edge.Rule))}
}

// start starts the goroutine, which ends with close.
func (e *edgeTrigger) start() {
	ctx, end := context.WithCancel(context.Background())
	e.end = end
	e.ended.Go(func() { e.run(ctx) })
}

// followEdge starts the trigger of the configured edge.
func (s *startup) followEdge() error {
	edge, err := config.ParseEdge(s.config.Server.Edge)
	if err != nil || edge == nil {
		return err
	}
	s.edge = newEdgeTrigger(*edge, s.engine, s.log)
	s.edge.start()
	return metrics.Register(s.registry, s.edge.readings()...)
}

func (e *edgeTrigger) close() {
	e.end()
	e.ended.Wait()
}

func (e *edgeTrigger) run(ctx context.Context) {
	ticker := time.NewTicker(trigger.ReceptionInterval)
	defer ticker.Stop()
	began := time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if now := time.Now(); e.read.IsZero() || now.Sub(e.read) >= ruleInterval {
			e.read = now
			e.readRule(ctx)
		}
		e.step(ctx, time.Since(began))
	}
}

// step reads the receptions of the receivers behind the edge, and sends the order that the trigger decides.
func (e *edgeTrigger) step(ctx context.Context, now time.Duration) {
	e.found, e.given = e.plane.Receptions(e.found[:0]), e.given[:0]
	for _, r := range e.found {
		if e.destination.IsValid() && e.destination.Contains(r.Remote) {
			e.given = append(e.given, trigger.Reception{
				Receiver: r.Receiver, Sent: r.Sent, Reports: r.Reports, Arrived: r.Arrived, Lost: r.Lost,
				Requested: r.Requested, KeyFrames: r.KeyFrames, QueueDelay: r.QueueDelay,
			})
		}
	}
	cause := e.receivers.Step(e.given, now)
	hop := e.receivers.Hop()
	e.troubled.Store(hop.Cause != trigger.Nothing)
	if cause == trigger.Nothing {
		return
	}
	if now >= e.expires {
		e.log.Info("receivers behind the edge are in trouble: ordering copies", zap.Stringer("because", cause),
			zap.Int("troubled", hop.Troubled), zap.Int("receivers", hop.Active))
	}
	e.expires = now + trigger.OrderLifetime
	e.order(ctx)
}

// order asks the edge for copies that end by themselves.
func (e *edgeTrigger) order(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, edgeTimeout)
	defer cancel()
	err := e.socket.Order(ctx, control.Order{
		Rule: e.Rule, Trigger: control.Start, For: control.Duration(trigger.OrderLifetime),
	})
	if err != nil {
		e.failed.Add(1)
	} else {
		e.accepted.Add(1)
	}
	e.note(err)
}

// readRule reads the destination of the rule from the edge. While the edge does not answer, the last destination
// remains.
func (e *edgeTrigger) readRule(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, edgeTimeout)
	defer cancel()
	answer, err := e.socket.Status(ctx)
	if err == nil {
		e.destination, err = ruleDestination(answer, e.Rule)
	}
	e.note(err)
}

// ruleDestination returns the prefix of a rule in the status of an edge.
func ruleDestination(status []byte, name string) (netip.Prefix, error) {
	var decoded struct {
		Rules []struct {
			Name string       `json:"name"`
			To   netip.Prefix `json:"to"`
		} `json:"rules"`
	}
	if err := json.Unmarshal(status, &decoded); err != nil {
		return netip.Prefix{}, fmt.Errorf("the state of the edge cannot be read: %w", err)
	}
	names := make([]string, 0, len(decoded.Rules))
	for _, rule := range decoded.Rules {
		if rule.Name == name {
			return rule.To, nil
		}
		names = append(names, rule.Name)
	}
	return netip.Prefix{}, fmt.Errorf("%w: %q, its rules are %q", errNoRule, name, strings.Join(names, ", "))
}

// note logs the first failure, failures with another reason, and the first answer after a failure.
func (e *edgeTrigger) note(err error) {
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil && err.Error() != e.failure:
		e.failure = err.Error()
		e.log.Warn("the edge takes no orders: receivers in trouble start no copies", zap.Error(err))
	case err == nil && (e.failure != "" || !e.answered):
		e.failure, e.answered = "", true
		e.log.Info("the edge answers: receivers in trouble start copies",
			zap.Stringer("destination", e.destination))
	}
}

// readings returns the metrics of the trigger.
func (e *edgeTrigger) readings() []metrics.Reading {
	return []metrics.Reading{
		{Name: metrics.EdgeTrouble, Value: func() float64 {
			if e.troubled.Load() {
				return 1
			}
			return 0
		}},
		metrics.Counted(metrics.EdgeOrders, "accepted", e.accepted.Load),
		metrics.Counted(metrics.EdgeOrders, "failed", e.failed.Load),
	}
}
