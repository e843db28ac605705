package exposition

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const someMetrics = `# HELP messages_total Messages.
# TYPE messages_total counter
messages_total{direction="in",type="offer"} 3
messages_total{direction="out",type="offer"} 1.2e+06
messages_total{direction="out",type="an answer {}"} 7 1700000000
messages_total_odd 5
rooms NaN

delay_seconds_bucket{le="0.001"} 1
delay_seconds_bucket{le="0.01"} 1
delay_seconds_bucket{le="+Inf"} 4
delay_seconds_bucket{le="0.1"} 3
delay_seconds_sum 1.5
delay_seconds_count 4
`

func TestSeries(t *testing.T) {
	series, err := Parse(strings.NewReader(someMetrics))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		`messages_total{direction="out",type="offer"}`: 1.2e6, `messages_total{direction="out",type="an answer {}"}`: 7,
		`messages_total_odd`: 5,
	} {
		if got, err := series.Value(name); got != want || err != nil {
			t.Errorf("%s: got %g, %v; want %g", name, got, err, want)
		}
	}
	for _, absent := range []string{"absent", "messages_total"} {
		if _, err := series.Value(absent); !errors.Is(err, ErrNoMetric) {
			t.Errorf("%s: got %v, want ErrNoMetric", absent, err)
		}
	}
	sums := []struct {
		labels []string
		want   float64
	}{
		{nil, 1.2e6 + 10}, {[]string{`direction="out"`}, 1.2e6 + 7}, {[]string{`direction="in"`, `type="offer"`}, 3},
		{[]string{`ion="in"`}, 0},
	}
	for _, test := range sums {
		if got := series.Sum("messages_total", test.labels...); got != test.want {
			t.Errorf("sum of %v: got %g, want %g", test.labels, got, test.want)
		}
	}
	want := []Bucket{{time.Millisecond, 1}, {10 * time.Millisecond, 0}, {100 * time.Millisecond, 2}, {Unbounded, 1}}
	if got := series.Histogram("delay_seconds"); !slices.Equal(got, want) {
		t.Errorf("histogram: got %v, want %v", got, want)
	}
	if got := series.Histogram("messages_total"); got != nil {
		t.Errorf("histogram of what is none: got %v", got)
	}
	for _, broken := range []string{"rooms x", "rooms", `rooms{a="b"}`, `rooms{a="b"} x`} {
		if _, err := Parse(strings.NewReader(broken)); err == nil {
			t.Errorf("%q was taken for a metric", broken)
		}
	}
}

func TestSeriesDifference(t *testing.T) {
	sum := make(Series)
	sum.Add(Series{"a": 1, "b": 10}, Series{"a": 4, "b": 10, "c": 2})
	sum.Add(Series{"a": 4}, Series{"a": 5})
	if sum["a"] != 4 || sum["b"] != 0 || sum["c"] != 2 {
		t.Errorf("got %v, want a 4, b 0, c 2", sum)
	}
}

func TestQuantile(t *testing.T) {
	ms := time.Millisecond
	some := []Bucket{{ms, 50}, {2 * ms, 0}, {4 * ms, 40}, {Unbounded, 10}}
	tests := []struct {
		name    string
		buckets []Bucket
		share   float64
		want    time.Duration
	}{
		{"none", nil, 0.5, 0},
		{"nothing counted", []Bucket{{ms, 0}, {Unbounded, 0}}, 0.5, 0},
		{"end of a bucket", some, 0.5, ms},
		{"half of a bucket", some, 0.25, ms / 2},
		{"past an empty bucket", some, 0.7, 3 * ms},
		{"without bound", some, 0.99, 4 * ms},
		{"the least", some, 0, 0},
		{"all", some[:3], 1, 4 * ms},
	}
	for _, test := range tests {
		if got := Quantile(test.buckets, test.share); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
