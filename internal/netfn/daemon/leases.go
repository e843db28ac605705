package daemon

import (
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/netfn/control"
)

// leases carries out orders and ends those with a time limit. leases is safe for concurrent use.
type leases struct {
	// rules are the names of all rules.
	rules []string
	// apply carries out an order without its limit.
	apply func(control.Order) error

	mu sync.Mutex
	// current has the timers of the limited orders in force.
	current map[subject]*time.Timer
}

// subject is the subject of an order: the copies or the trigger of a rule.
type subject struct {
	rule    string
	trigger bool
}

func newLeases(rules []string, apply func(control.Order) error) *leases {
	return &leases{rules: rules, apply: apply, current: make(map[subject]*time.Timer)}
}

// order carries out an order, and ends the limit of the order that it replaces. An order that is refused changes
// nothing.
func (l *leases) order(o control.Order) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.apply(o); err != nil {
		return err
	}
	rules := []string{o.Rule}
	if o.Rule == "" {
		rules = l.rules
	}
	for _, rule := range rules {
		s := subject{rule, o.Trigger != ""}
		if timer := l.current[s]; timer != nil {
			timer.Stop()
			delete(l.current, s)
		}
		if o.For > 0 {
			var timer *time.Timer
			timer = time.AfterFunc(time.Duration(o.For), func() { l.end(s, &timer) })
			l.current[s] = timer
		}
	}
	return nil
}

// end ends the order of a timer, unless a later order has replaced it. The timer is read under the mutex.
func (l *leases) end(s subject, timer **time.Timer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current[s] != *timer {
		return
	}
	delete(l.current, s)
	ending := control.Order{Rule: s.rule, Copies: control.Configured}
	if s.trigger {
		ending = control.Order{Rule: s.rule, Trigger: control.Stop}
	}
	// The rule is known: it has taken an order before.
	_ = l.apply(ending)
}

// close ends all limits without carrying anything out.
func (l *leases) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, timer := range l.current {
		timer.Stop()
	}
	clear(l.current)
}
