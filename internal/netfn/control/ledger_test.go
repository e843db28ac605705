package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// pollOf polls as the edge studio, and fails the test on an error.
func pollOf(t *testing.T, l *ledger, run string, now time.Time, results ...result) []Order {
	t.Helper()
	orders, _, err := l.poll("studio", "192.0.2.1:40000", poll{run, json.RawMessage(`{}`), results}, now)
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

func orderOf(t *testing.T, l *ledger, o Order, now time.Time) string {
	t.Helper()
	id, err := l.order("studio", o, now)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestOrderIsSentUntilItIsCarriedOut(t *testing.T) {
	l := newLedger()
	if _, err := l.order("studio", Order{Copies: "all"}, noon); !errors.Is(err, ErrNoEdge) {
		t.Errorf("an order for an unknown edge: %v", err)
	}
	if orders := pollOf(t, l, "run1", noon); len(orders) != 0 {
		t.Errorf("a new edge has the orders %v", orders)
	}
	id := orderOf(t, l, Order{Rule: "a", Copies: "all"}, noon)
	for range 2 {
		if orders := pollOf(t, l, "run1", noon); len(orders) != 1 || orders[0].ID != id {
			t.Errorf("the orders are %v, expected %s", orders, id)
		}
	}
	if state, err := l.outcome("studio", id); state != Pending || err != nil {
		t.Errorf("the order is %q, %v", state, err)
	}
	if orders := pollOf(t, l, "run1", noon, result{ID: id}); len(orders) != 0 {
		t.Errorf("an order that is carried out is sent again: %v", orders)
	}
	if state, err := l.outcome("studio", id); state != Applied || err != nil {
		t.Errorf("the order is %q, %v", state, err)
	}
	// An edge that has started again has the copies of its configuration.
	if orders := pollOf(t, l, "run2", noon); len(orders) != 1 || orders[0].ID != id {
		t.Errorf("after a restart the orders are %v, expected %s", orders, id)
	}
}

func TestRefusedOrder(t *testing.T) {
	l := newLedger()
	pollOf(t, l, "run1", noon)
	id := orderOf(t, l, Order{Rule: "typo", Copies: "all"}, noon)
	pollOf(t, l, "run1", noon, result{ID: id, Error: `unknown rule "typo"` + strings.Repeat("é", 400)})
	state, err := l.state("studio", noon)
	if err != nil || len(state.Orders) != 1 || state.Orders[0].State != Refused || len(state.Orders[0].Error) > 400 {
		t.Errorf("the state is %+v, %v", state, err)
	}
	if _, err := l.outcome("studio", id); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "typo") {
		t.Errorf("the outcome is %v", err)
	}
	// The operator has the reason, and the order is gone.
	if _, err := l.outcome("studio", id); !errors.Is(err, ErrOrder) || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("the outcome is %v", err)
	}
	// Results of unknown orders change nothing.
	pollOf(t, l, "run1", noon, result{ID: "nothing"}, result{ID: id})
}

func TestLimitedOrders(t *testing.T) {
	l := newLedger()
	pollOf(t, l, "run1", noon)
	orderOf(t, l, Order{Rule: "a", Trigger: Start, For: Duration(10 * time.Second)}, noon)
	if orders := pollOf(t, l, "run1", noon.Add(4*time.Second)); len(orders) != 1 ||
		orders[0].For != Duration(6*time.Second) {
		t.Errorf("after 4 of 10 s the orders are %+v", orders)
	}
	if orders := pollOf(t, l, "run2", noon.Add(10*time.Second)); len(orders) != 0 {
		t.Errorf("after 10 s the orders are %+v", orders)
	}
}

func TestOrdersReplaceOthers(t *testing.T) {
	l := newLedger()
	pollOf(t, l, "run1", noon)
	rules := func() []string {
		var list []string
		for _, o := range pollOf(t, l, "run1", noon) {
			list = append(list, o.Rule+" "+o.Copies+o.Trigger)
		}
		return list
	}
	orderOf(t, l, Order{Rule: "a", Copies: "all"}, noon)
	orderOf(t, l, Order{Rule: "b", Copies: "all"}, noon)
	orderOf(t, l, Order{Rule: "a", Trigger: Start}, noon)
	orderOf(t, l, Order{Rule: "a", Copies: "off"}, noon)
	if got := rules(); !slices.Equal(got, []string{"b all", "a start", "a off"}) {
		t.Errorf("the orders are %q", got)
	}
	orderOf(t, l, Order{Copies: "auto"}, noon)
	if got := rules(); !slices.Equal(got, []string{"a start", " auto"}) {
		t.Errorf("the orders are %q", got)
	}
}

func TestBounds(t *testing.T) {
	l := newLedger()
	for i := range maxEdges {
		if _, _, err := l.poll(fmt.Sprint(i), "", poll{Run: "r"}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := l.poll("one more", "", poll{Run: "r"}, noon); !errors.Is(err, ErrFull) {
		t.Errorf("edge %d: %v", maxEdges+1, err)
	}
	for i := range maxOrders {
		if _, err := l.order("0", Order{Rule: fmt.Sprint(i), Copies: "all"}, noon); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.order("0", Order{Rule: "one more", Copies: "all"}, noon); !errors.Is(err, ErrOrder) {
		t.Errorf("order %d: %v", maxOrders+1, err)
	}
	if err := l.forget("0"); err != nil {
		t.Error(err)
	}
	if err := l.forget("0"); !errors.Is(err, ErrNoEdge) {
		t.Errorf("forgetting twice: %v", err)
	}
	for _, p := range []poll{{Run: ""}, {Run: strings.Repeat("r", 65)}, {Run: "r", Results: make([]result, 129)}} {
		if err := p.validate(); !errors.Is(err, ErrRequest) {
			t.Errorf("a poll with %d bytes of run and %d results: %v", len(p.Run), len(p.Results), err)
		}
	}
}

func TestConnected(t *testing.T) {
	l := newLedger()
	pollOf(t, l, "run1", noon)
	for after, want := range map[time.Duration]bool{0: true, 10 * time.Second: true, 11 * time.Second: false} {
		if state, err := l.state("studio", noon.Add(after)); err != nil || state.Connected != want {
			t.Errorf("after %v: %+v, %v", after, state, err)
		}
	}
}

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "orders.json")
	l := newLedger()
	if err := l.load(path); err != nil {
		t.Errorf("a file that does not exist: %v", err)
	}
	pollOf(t, l, "run1", noon)
	id := orderOf(t, l, Order{Rule: "a", Copies: "fibre,lte"}, noon)
	orderOf(t, l, Order{Rule: "a", Trigger: Start, For: Duration(time.Minute)}, noon)
	if err := l.save(path, noon); err != nil {
		t.Fatal(err)
	}
	again := newLedger()
	if err := again.load(path); err != nil {
		t.Fatal(err)
	}
	// The trigger is over by then.
	if orders := pollOf(t, again, "run1", noon.Add(2*time.Minute)); len(orders) != 1 || orders[0].ID != id ||
		orders[0].Copies != "fibre,lte" {
		t.Errorf("the orders are %+v", orders)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v, expected one file", entries, err)
	}
	for _, text := range []string{"", "{", `{"edges":{"a":[{"id":"x"}]}}`, `{"edges":{"":[{"id":"x","copies":"all"}]}}`,
		`{"edges":{"a":[{"copies":"all"}]}}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := newLedger().load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: the error is %v, expected one that names the file", text, err)
		}
	}
	if err := l.save(filepath.Join(path, "below"), noon); err == nil {
		t.Error("a file below a file can be written")
	}
}
