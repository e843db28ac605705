package lab

import (
	"testing"
	"time"
)

func TestPercentiles(t *testing.T) {
	var hundred Distribution
	for i := range 100 {
		// The values are added out of order.
		hundred.Add(time.Duration((i*37)%100+1) * time.Millisecond)
	}
	var one, none Distribution
	one.Add(7 * time.Second)
	tests := []struct {
		name  string
		d     *Distribution
		share float64
		want  time.Duration
	}{
		{"median of a hundred", &hundred, 0.5, 50 * time.Millisecond},
		{"p99 of a hundred", &hundred, 0.99, 99 * time.Millisecond},
		{"just above p99", &hundred, 0.991, 100 * time.Millisecond},
		{"all", &hundred, 1, 100 * time.Millisecond},
		{"a share of none", &hundred, 0, time.Millisecond},
		{"p99 of one", &one, 0.99, 7 * time.Second},
		{"without values", &none, 0.5, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.d.Percentile(test.share); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	hundred.Add(time.Hour)
	if hundred.Max() != time.Hour || hundred.Count() != 101 {
		t.Errorf("the maximum of %d values is %v, want 1 h of 101 values", hundred.Count(), hundred.Max())
	}
	if got := Milliseconds(1500 * time.Microsecond); got != 1.5 {
		t.Errorf("1500 µs are %g ms", got)
	}
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := Median(test.values); got != test.want {
			t.Errorf("median of %v is %g, want %g", test.values, got, test.want)
		}
	}
}
