package rival

import (
	"errors"
	"math"
	"strings"
	"testing"
)

const iperf = `{"start":{"version":"iperf 3.12"},"intervals":[
{"streams":[{"bits_per_second":1}],"sum":{"start":0,"end":1,"bits_per_second":100e6}},
{"sum":{"start":1,"end":2,"bits_per_second":150e6}},{"sum":{"start":2,"end":2.5,"bits_per_second":50e6}}],"end":{}}`

func TestParseRates(t *testing.T) {
	rates, err := ParseRates([]byte(iperf))
	if err != nil || len(rates) != 3 || rates[1] != (Rate{1, 2, 150e6}) {
		t.Fatalf("got %+v, %v", rates, err)
	}
	for _, test := range []struct{ from, until, want float64 }{{0, 2, 125e6}, {1.5, 2.5, 100e6}, {0, 100, 110e6},
		{3, 4, 0}} {
		if got := MeanRate(rates, test.from, test.until); math.Abs(got-test.want) > 1 {
			t.Errorf("from %g to %g s it was %g, want %g", test.from, test.until, got, test.want)
		}
	}
	for text, want := range map[string]string{"": "JSON", "{}": "no interval",
		`{"error":"unable to connect"}`: "unable to connect", `{"intervals":1}`: "JSON"} {
		if _, err := ParseRates([]byte(text)); !errors.Is(err, ErrIperf) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseRates(f *testing.F) {
	f.Add([]byte(iperf))
	f.Add([]byte(`{"intervals":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if rates, err := ParseRates(text); (err == nil) == (len(rates) == 0) {
			t.Errorf("%d rates and %v", len(rates), err)
		}
	})
}
