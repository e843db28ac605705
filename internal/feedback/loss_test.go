package feedback

import "testing"

// TestLoss adds the reports of a path step by step.
func TestLoss(t *testing.T) {
	type counts struct{ expected, lost int64 }
	repeated := func(n int, c counts) (all []counts) {
		for range n {
			all = append(all, c)
		}
		return all
	}
	for _, test := range []struct {
		name    string
		reports []counts
		want    float64
	}{
		{"nothing", nil, 0},
		{"no loss", repeated(5, counts{600, 0}), 0},
		{"too few packets", []counts{{30, 3}}, 0},
		{"few that add up", []counts{{40, 2}, {40, 2}}, 0.05},
		{"one in twenty", repeated(10, counts{600, 30}), 0.05},
		{"everything", repeated(3, counts{100, 100}), 1},
		{"packets that arrived late", []counts{{100, 10}, {100, -10}}, 0},
		{"more arrived than expected", []counts{{100, -5}}, 0},
		{"a pause", append(repeated(10, counts{600, 30}), repeated(100, counts{})...), 0.05},
		{"numbers that go backwards", []counts{{100, 10}, {-100, 50}}, 0.1},
		{"a loss that begins", []counts{{600, 0}, {600, 0}, {600, 0}, {600, 60}}, 0.025},
		{"a loss that is over", append(repeated(10, counts{600, 60}), repeated(4, counts{600, 0})...), 0},
	} {
		var l Loss
		for _, r := range test.reports {
			l.Add(r.expected, r.lost)
		}
		if got := l.Share(); got != test.want {
			t.Errorf("%s: the share is %v, expected %v", test.name, got, test.want)
		}
	}
}
