package netem_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

func TestReadRateTrace(t *testing.T) {
	ms := time.Millisecond
	tests := []struct {
		name, text string
		expected   netem.RateTrace
	}{
		{"one row", "t_s,mbps\n0,5\n", netem.RateTrace{Steps: []netem.RateStep{{0, 5e6}}, Duration: second}},
		{"the last row as long as the one before", "t_s,mbps\n0.000,12.9\n1.000,0.000\n1.500,7.440\n", netem.RateTrace{
			Steps: []netem.RateStep{{0, 12_900_000}, {second, 0}, {1500 * ms, 7_440_000}}, Duration: 2 * second,
		}},
		{"rows at the same time", "t_s,mbps\n0,8\n1,0.36\n8.2,0\n8.2,0\n8.2,16.9\n9,7.4\n", netem.RateTrace{
			Steps:    []netem.RateStep{{0, 8e6}, {second, 360_000}, {8200 * ms, 16_900_000}, {9 * second, 7_400_000}},
			Duration: 9800 * ms,
		}},
		{"other columns, another beginning", "mbps,loss,t_s\r\n3,x,100\r\n4,y, 101\r\n", netem.RateTrace{
			Steps: []netem.RateStep{{0, 3e6}, {second, 4e6}}, Duration: 2 * second,
		}},
	}
	for _, test := range tests {
		got, err := netem.ReadRateTrace(strings.NewReader(test.text))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		} else if !slices.Equal(got.Steps, test.expected.Steps) || got.Duration != test.expected.Duration || got.Loop {
			t.Errorf("%s: %+v, expected %+v", test.name, got, test.expected)
		}
	}
}

func TestReadRateTraceErrors(t *testing.T) {
	tests := []struct {
		text  string
		parts []string // expected parts of the message
	}{
		{"", []string{"empty", "t_s", "mbps"}},
		{"t_s,mbps\n", []string{"no rows"}},
		{"0,12.9\n", []string{"line 1", `"0,12.9"`, "t_s", "mbps"}},
		{"t_s,rate\n0,1\n", []string{`"t_s,rate"`, "mbps"}},
		{"t_s,mbps\n0,1\n1\n", []string{"line 3", "wrong number of fields"}},
		{"t_s,mbps\n0,1\n1,\"2\n", []string{"line 3"}},
		{"t_s,mbps\n0,1\none,1\n", []string{"line 3", "t_s", `"one"`, "number"}},
		{"t_s,mbps\n0,-1\n", []string{"line 2", "mbps", `"-1"`, "0 to 1e+06"}},
		{"t_s,mbps\n0,NaN\n", []string{"line 2", "mbps", "NaN"}},
		{"t_s,mbps\n0,Inf\n", []string{"line 2", "mbps"}},
		{"t_s,mbps\n1e300,1\n", []string{"line 2", "t_s", "3.6e+06"}},
		{"t_s,mbps\n0,1\n2,1\n1,1\n", []string{"line 4", "t_s is 1", "no earlier time"}},
	}
	for _, test := range tests {
		trace, err := netem.ReadRateTrace(strings.NewReader(test.text))
		if !errors.Is(err, netem.ErrTrace) {
			t.Errorf("%q: error %v, expected ErrTrace", test.text, err)
			continue
		}
		if trace.Steps != nil {
			t.Errorf("%q: trace %+v beside an error", test.text, trace)
		}
		for _, part := range test.parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %q does not name %q", test.text, err, part)
			}
		}
	}
	for _, r := range []io.Reader{iotest.ErrReader(os.ErrPermission),
		io.MultiReader(strings.NewReader("t_s,mbps\n0,1\n"), iotest.ErrReader(os.ErrPermission))} {
		if _, err := netem.ReadRateTrace(r); !errors.Is(err, os.ErrPermission) || errors.Is(err, netem.ErrTrace) {
			t.Errorf("error %v, expected that of the reader", err)
		}
	}
}

// FuzzReadRateTrace expects for any text an error that wraps the sentinel, or a trace with consistent figures that a
// link follows.
func FuzzReadRateTrace(f *testing.F) {
	for _, text := range []string{
		"", "t_s,mbps\n", "t_s,mbps\n0,5\n", "t_s,mbps\n0.000,12.9\n1.000,0.000\n1.500,7.440\n",
		"t_s,mbps\n0,8\n8.2,0\n8.2,0\n8.2,16.9\n9,7.4\n",
		"mbps,loss,t_s\n3,x,100\n4,y,101\n", "t_s,mbps\n0,0\n", "t_s,mbps\n0,1\n1,\"2\n",
		"t_s,mbps\n0,1000000\n3600000,1e-6\n", "t_s,mbps\n0,1\n1e-9,2\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := netem.ReadRateTrace(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, netem.ErrTrace) {
				t.Fatalf("error %v does not wrap the sentinel", err)
			}
			return
		}
		mean, highest := trace.Mean(), trace.Max()
		if mean < 0 || mean > highest {
			t.Fatalf("mean %d, max %d", mean, highest)
		}
		var end time.Duration
		for _, o := range trace.Outages() {
			if o.Start < end || o.End <= o.Start || o.End > trace.Duration || trace.RateAt(o.Start) >= netem.OutageBPS {
				t.Fatalf("outages %v of %+v", trace.Outages(), trace)
			}
			end = o.End
		}
		trace.Loop = true
		// A packet takes as many rounds of a looping trace as necessary; only short ones are followed.
		if trace.Validate() != nil || mean < 1_000_000 || trace.Duration < time.Millisecond {
			return
		}
		link := newLink(t, netem.DefaultConfig(), 1)
		setRate(t, link, trace, epoch)
		for range 10 {
			link.Send(&netem.Packet{Size: 1200}, epoch)
		}
		drain(link)
		checkConservation(t, link.Stats())
	})
}

// TestRealTraces compares the parsed WiFi traces with sums over their lines computed by awk.
func TestRealTraces(t *testing.T) {
	root := os.Getenv("VOLSFU_TESTDATA")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "data") // two folders above the root of the module
	}
	dir := filepath.Join(root, "network-traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: test data not found at %s; set VOLSFU_TESTDATA", dir)
	}
	tests := []struct {
		file          string
		mean, highest int // bit/s
		outages       int
		down          time.Duration // of all outages
	}{
		{"wifi_cafe_231115-154511.csv", 7_621_967, 21_700_000, 1, 7200 * time.Millisecond},
		{"wifi_campus_231115-202702.csv", 64_206_380, 117_000_000, 5, 9 * second},
		{"wifi_office_231114-154408.csv", 9_809_116, 39_900_000, 9, 19_020 * time.Millisecond},
		{"wifi_restr_231115-133108.csv", 9_594_509, 32_700_000, 0, 0},
	}
	for _, test := range tests {
		trace := openTrace(t, filepath.Join(dir, test.file))
		if err := trace.Validate(); err != nil {
			t.Errorf("%s: %v", test.file, err)
		}
		if trace.Duration != 200*second || trace.Mean() != test.mean || trace.Max() != test.highest {
			t.Errorf("%s: %v, mean %d, max %d; expected 200s, %d and %d", test.file, trace.Duration, trace.Mean(),
				trace.Max(), test.mean, test.highest)
		}
		var down time.Duration
		for _, o := range trace.Outages() {
			down += o.End - o.Start
		}
		if len(trace.Outages()) != test.outages || down != test.down {
			t.Errorf("%s: down for %v in %v; expected %v in %d outages", test.file, down, trace.Outages(), test.down,
				test.outages)
		}
	}
}

func openTrace(t *testing.T, path string) netem.RateTrace {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	trace, err := netem.ReadRateTrace(file)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}
