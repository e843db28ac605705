package daemon

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/control"
)

// ledger records the orders that leases carry out, as text.
type ledger struct {
	mu     sync.Mutex
	orders []string
	err    error
}

func (l *ledger) apply(o control.Order) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.orders = append(l.orders, o.Rule+" "+o.Copies+o.Trigger)
	}
	return l.err
}

func (l *ledger) check(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.orders, want) {
		t.Errorf("the orders are %q, expected %q", l.orders, want)
	}
	l.orders = nil
}

// refuse makes the following orders fail, or succeed for nil.
func (l *ledger) refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func seconds(n int) control.Duration { return control.Duration(time.Duration(n) * time.Second) }

// pass lets time pass in the bubble of a test.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var edge ledger
		l := newLeases([]string{"a", "b"}, edge.apply)
		defer l.close()
		do := func(o control.Order) {
			t.Helper()
			if err := l.order(o); err != nil {
				t.Fatal(err)
			}
		}
		do(control.Order{Rule: "a", Copies: "all", For: seconds(10)})
		do(control.Order{Rule: "a", Trigger: control.Start, For: seconds(5)})
		edge.check(t, "a all", "a start")
		pass(6 * time.Second)
		edge.check(t, "a stop")
		pass(5 * time.Second)
		edge.check(t, "a configured")

		// A trigger that is repeated does not stop in between.
		do(control.Order{Rule: "a", Trigger: control.Start, For: seconds(5)})
		pass(4 * time.Second)
		do(control.Order{Rule: "a", Trigger: control.Start, For: seconds(5)})
		pass(4 * time.Second)
		edge.check(t, "a start", "a start")
		pass(2 * time.Second)
		edge.check(t, "a stop")

		// A later order without a limit stays.
		do(control.Order{Rule: "a", Copies: "all", For: seconds(5)})
		do(control.Order{Rule: "a", Copies: "off"})
		pass(time.Minute)
		edge.check(t, "a all", "a off")

		// An order for every rule ends for the rules that have no later order.
		do(control.Order{Copies: "all", For: seconds(5)})
		do(control.Order{Rule: "b", Copies: "off"})
		pass(time.Minute)
		edge.check(t, " all", "b off", "a configured")
	})
}

func TestRefusedOrderKeepsTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var edge ledger
		l := newLeases([]string{"a"}, edge.apply)
		if err := l.order(control.Order{Rule: "a", Copies: "all", For: seconds(5)}); err != nil {
			t.Fatal(err)
		}
		edge.refuse(control.ErrOrder)
		if err := l.order(control.Order{Rule: "a", Copies: "nowhere"}); !errors.Is(err, control.ErrOrder) {
			t.Errorf("the error is %v", err)
		}
		edge.refuse(nil)
		pass(6 * time.Second)
		edge.check(t, "a all", "a configured")

		if err := l.order(control.Order{Rule: "a", Copies: "all", For: seconds(5)}); err != nil {
			t.Fatal(err)
		}
		l.close()
		pass(6 * time.Second)
		edge.check(t, "a all")
	})
}
