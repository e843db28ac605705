package lab

import (
	"errors"
	"strings"
	"testing"
)

func TestFindSeries(t *testing.T) {
	const text = `# HELP messages_total Messages.
# TYPE messages_total counter
messages_total{direction="in",type="offer"} 3
messages_total{direction="out",type="offer"} 1.2e+06
messages_total_odd 5
rooms NaN
rooms_broken x
`
	tests := []struct {
		series string
		want   float64
		err    bool
	}{
		{`messages_total{direction="out",type="offer"}`, 1.2e6, false},
		{`messages_total_odd`, 5, false},
		{`messages_total`, 0, true},
		{`rooms_broken`, 0, true},
	}
	for _, test := range tests {
		t.Run(test.series, func(t *testing.T) {
			got, err := findSeries(strings.NewReader(text), test.series)
			if got != test.want || (err != nil) != test.err {
				t.Errorf("got %g, %v; want %g", got, err, test.want)
			}
		})
	}
	if _, err := findSeries(strings.NewReader(text), "absent"); !errors.Is(err, ErrNoMetric) {
		t.Errorf("got %v, want ErrNoMetric", err)
	}
}
