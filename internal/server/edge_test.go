package server

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/forward/egress"
	"github.com/volsfu/volsfu/internal/netfn/control"
	"github.com/volsfu/volsfu/internal/netfn/trigger"
)

// recordingEdge is an edge with one rule, which keeps its orders.
type recordingEdge struct {
	to string

	mu     sync.Mutex
	rule   string
	orders []control.Order
}

func (e *recordingEdge) Status() (any, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return map[string]any{"rules": []map[string]string{{"name": e.rule, "to": e.to}}}, nil
}

func (e *recordingEdge) Apply(o control.Order) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.orders = append(e.orders, o)
	return nil
}

func (e *recordingEdge) Detach(context.Context) error { return nil }

func (e *recordingEdge) rename(rule string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rule = rule
}

func (e *recordingEdge) taken() []control.Order {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.orders)
}

// growingPlane is a data plane whose receivers are sent 100 packets per step.
type growingPlane struct {
	addresses []string
	// lost are the packets of each step that each receiver loses.
	lost  []uint64
	steps uint64
	total []uint64
}

func (p *growingPlane) Receptions(to []egress.Reception) []egress.Reception {
	p.steps++
	for i, address := range p.addresses {
		p.total[i] += p.lost[i]
		to = append(to, egress.Reception{Receiver: uint64(i), Remote: netip.MustParseAddr(address), Sent: 100 * p.steps,
			Reports: p.steps, Arrived: 100*p.steps - p.total[i], Lost: p.total[i]})
	}
	return to
}

// edgeRig is a trigger without goroutine.
type edgeRig struct {
	*edgeTrigger
	plane *growingPlane
	logs  *observer.ObservedLogs
	now   time.Duration
}

func newEdgeRig(socket string, addresses ...string) *edgeRig {
	core, logs := observer.New(zap.InfoLevel)
	plane := &growingPlane{addresses: addresses, lost: make([]uint64, len(addresses)),
		total: make([]uint64, len(addresses))}
	return &edgeRig{newEdgeTrigger(config.Edge{Rule: "conference", Socket: socket}, plane, zap.New(core)), plane, logs,
		0}
}

// run steps for a time.
func (r *edgeRig) run(ctx context.Context, d time.Duration) {
	for end := r.now + d; r.now < end; {
		r.now += trigger.ReceptionInterval
		r.step(ctx, r.now)
	}
}

func serveEdge(t *testing.T, socket string, edge *recordingEdge) {
	t.Helper()
	local, err := control.Listen(socket, edge, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = local.Close(context.Background()) })
}

// TestReceiversInTroubleOrderCopies: losses behind the edge cause an order per second, losses elsewhere none.
func TestReceiversInTroubleOrderCopies(t *testing.T) {
	edge := &recordingEdge{rule: "conference", to: "10.1.0.0/16"}
	socket := filepath.Join(t.TempDir(), "studio.sock")
	serveEdge(t, socket, edge)
	r := newEdgeRig(socket, "10.1.2.3", "192.0.2.1")
	r.readRule(t.Context())
	r.plane.lost[1] = 10
	r.run(t.Context(), 3*time.Second)
	if orders := edge.taken(); len(orders) > 0 || r.troubled.Load() {
		t.Errorf("losses of a receiver that is not behind the edge: orders %+v", orders)
	}
	r.plane.lost[0] = 10
	r.run(t.Context(), 2500*time.Millisecond)
	want := control.Order{Rule: "conference", Trigger: control.Start, For: control.Duration(2 * time.Second)}
	orders := edge.taken()
	if len(orders) != 3 || orders[0] != want || orders[2] != want || !r.troubled.Load() {
		t.Errorf("orders are %+v, expected 3 of %+v", orders, want)
	}
	r.plane.lost[0] = 0
	r.run(t.Context(), 5*time.Second)
	if after := edge.taken(); len(after) != 3 || r.troubled.Load() || r.accepted.Load() != 3 || r.failed.Load() != 0 {
		t.Errorf("after the trouble the orders are %+v, %d accepted, %d failed", after, r.accepted.Load(),
			r.failed.Load())
	}
	// One line says that the edge answers, one that copies were ordered.
	if r.logs.Len() != 2 {
		t.Errorf("logged were %v", r.logs.All())
	}
}

// TestAbsentEdgeIsLoggedOnce: an edge without an answer, and one without the rule, are logged once each. The trigger
// follows an edge that starts later.
func TestAbsentEdgeIsLoggedOnce(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "studio.sock")
	r := newEdgeRig(socket, "10.1.2.3")
	warnings := func() int { return r.logs.FilterLevelExact(zap.WarnLevel).Len() }
	for range 3 {
		r.readRule(t.Context())
	}
	r.plane.lost[0] = 10
	r.run(t.Context(), 3*time.Second)
	if warnings() != 1 || r.failed.Load() != 0 {
		t.Errorf("without an edge: %d warnings and %d orders, expected one and none", warnings(), r.failed.Load())
	}
	edge := &recordingEdge{rule: "other", to: "10.1.0.0/16"}
	serveEdge(t, socket, edge)
	r.readRule(t.Context())
	r.readRule(t.Context())
	if warnings() != 2 {
		t.Errorf("without the rule: %d warnings, expected another one", warnings())
	}
	const reason = `the edge has no such rule: "conference", its rules are "other"`
	if last := r.logs.All()[r.logs.Len()-1]; fmt.Sprint(last.ContextMap()["error"]) != reason {
		t.Errorf("logged is %v, expected %q", last, reason)
	}
	edge.rename("conference")
	r.readRule(t.Context())
	r.run(t.Context(), time.Second)
	if len(edge.taken()) == 0 {
		t.Error("the edge that has appeared got no order")
	}
}
