package rival

import (
	"errors"
	"strings"
	"testing"
)

const pragueSummary = `{"seconds":1,"mbps":30,"samples":[{"t_s":0.5,"mbps":20,"alpha":0.1},{"t_s":1.5,"mbps":35}]}`

func TestParseSummary(t *testing.T) {
	rates, err := parseSummary([]byte(pragueSummary))
	if err != nil || len(rates) != 2 || rates[0] != (Rate{0, 0.5, 20e6}) || rates[1] != (Rate{0.5, 1.5, 35e6}) {
		t.Fatalf("got %+v, %v", rates, err)
	}
	for text, want := range map[string]string{"": "JSON", "{}": "no sample",
		`{"samples":[{"t_s":0}]}`: "more than 0", `{"samples":[{"t_s":1e9}]}`: "at most a day",
		`{"samples":[{"t_s":2},{"t_s":1}]}`: "more than 2"} {
		if _, err := parseSummary([]byte(text)); !errors.Is(err, ErrPrague) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTogether adds two flows with different intervals.
func TestTogether(t *testing.T) {
	sum := together([][]Rate{{{0, 2, 10e6}}, {{0, 0.5, 20e6}, {0.5, 1.5, 30e6}}})
	want := []Rate{{0, 1, 35e6}, {1, 2, 40e6}}
	if len(sum) != len(want) || sum[0] != want[0] || sum[1] != want[1] {
		t.Errorf("got %+v, want %+v", sum, want)
	}
}

// TestReceiving: the address of a receiver, among other messages.
func TestReceiving(t *testing.T) {
	r := make(receiving, 1)
	for _, line := range []string{"starting\n", `{"ready":""}`, `{"ready":"10.0.0.2:40001"}` + "\n",
		`{"ready":"again"}`} {
		if n, err := r.Write([]byte(line)); err != nil || n != len(line) {
			t.Fatalf("wrote %d of %d bytes, %v", n, len(line), err)
		}
	}
	if got := <-r; got != "10.0.0.2:40001" {
		t.Errorf("got %q", got)
	}
}

func FuzzParseSummary(f *testing.F) {
	f.Add([]byte(pragueSummary))
	f.Add([]byte(`{"samples":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rates, err := parseSummary(text)
		if (err == nil) == (len(rates) == 0) {
			t.Errorf("%d rates and %v", len(rates), err)
		}
		if err == nil && len(together([][]Rate{rates, rates})) == 0 {
			t.Error("no second of these rates")
		}
	})
}
