package control

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzPoll checks that any poll is refused, or answered with orders that are valid.
func FuzzPoll(f *testing.F) {
	f.Add([]byte(`{"run":"a","status":{},"results":[{"id":"x","error":"no rule"}]}`))
	f.Add([]byte(`{"run":"","status":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := newLedger()
		pollOf(t, l, "before", noon)
		orderOf(t, l, Order{Rule: "a", Copies: "all"}, noon)
		var p poll
		if decode(bytes.NewReader(data), &p) != nil || p.validate() != nil {
			return
		}
		orders, first, err := l.poll("studio", "", p, noon)
		if err != nil || first != (p.Run != "before") || len(orders) != 1 || orders[0].Validate() != nil {
			t.Errorf("the answer is %+v, %v, %v", orders, first, err)
		}
		if state, err := l.state("studio", noon); err != nil {
			t.Error(err)
		} else if _, err := json.Marshal(state); err != nil {
			t.Errorf("the state cannot be shown: %v", err)
		}
	})
}

// FuzzStore checks that any file is refused, or has orders that are written and read again.
func FuzzStore(f *testing.F) {
	f.Add([]byte(`{"edges":{"studio":[{"id":"x","copies":"all","made":"2026-11-20T12:00:00Z","state":"applied"}]}}`))
	f.Add([]byte(`{"edges":{"studio":[{"id":"x","trigger":"start","for":"1m","expires":"2026-11-20T12:00:00Z"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, again := newLedger(), newLedger()
		if l.decode(bytes.NewReader(data)) != nil {
			return
		}
		if err := again.decode(bytes.NewReader(l.encode(noon))); err != nil {
			t.Errorf("what was written cannot be read: %v", err)
		}
		for _, name := range again.names() {
			if got, want := len(again.edges[name].orders), len(l.edges[name].orders); got != want {
				t.Errorf("%q has %d orders, expected %d", name, got, want)
			}
		}
	})
}
