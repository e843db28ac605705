package timing

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/pkg/frametimes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = slog.New(slog.DiscardHandler)

// record is a frame whose stages take a millisecond each.
func record(frame int64) frametimes.Record {
	r := frametimes.Record{Frame: frame, Bytes: 100}
	r.Clocks[frametimes.Sender] = frametimes.Clock{Source: frametimes.SourceEstimated, Offset: 5 * time.Millisecond,
		Bound: 300 * time.Microsecond}
	for s := range frametimes.Stamp(frametimes.Stamps) {
		r.Set(s, time.Unix(1_800_000_000, 0).Add(time.Duration(s)*time.Millisecond))
	}
	return r
}

func records(n int) <-chan frametimes.Record {
	all := make(chan frametimes.Record, n)
	for i := range n {
		all <- record(int64(i))
	}
	close(all)
	return all
}

func TestRecorder(t *testing.T) {
	for name, read := range map[string]func(io.Reader, func(*frametimes.Record) error) error{
		"times.jsonl": frametimes.ReadJSONL, "times.CSV": frametimes.ReadCSV,
	} {
		path := filepath.Join(t.TempDir(), name)
		registry := prometheus.NewPedanticRegistry()
		r, err := NewRecorder(path, registry, silent)
		if err != nil {
			t.Fatal(err)
		}
		r.Run(records(20))
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		if err := read(file, func(got *frametimes.Record) error {
			if want := record(int64(count)); *got != want {
				t.Errorf("%s: read %+v, expected %+v", name, *got, want)
			}
			count++
			return nil
		}); err != nil || count != 20 {
			t.Errorf("%s: %d records, %v, expected 20", name, count, err)
		}
		_ = file.Close()
		layers := r.Layers()
		if layers.Frames != 20 || layers.Complete != 20 || len(layers.Layers) != frametimes.LayerCount ||
			len(layers.Clocks) != 1 {
			t.Errorf("%s: summed up as %+v", name, layers)
		}
		for _, l := range layers.Layers {
			if l.Name == "service" && (l.Mean != float64(frametimes.Shown) || l.Bound != 0.3 || l.Frames != 20) {
				t.Errorf("%s: the service is %+v", name, l)
			}
		}
		if n := testutil.CollectAndCount(registry, layerSeconds); n != frametimes.LayerCount {
			t.Errorf("%s: %d series, expected one for each layer", name, n)
		}
		problems, err := testutil.GatherAndLint(registry)
		if err != nil || len(problems) > 0 {
			t.Errorf("metrics: %v, %v", problems, err)
		}
	}
}

// TestRecorderWithoutFile records layers only.
func TestRecorderWithoutFile(t *testing.T) {
	r, err := NewRecorder("", nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	r.Run(records(3))
	if got := r.Layers(); got.Frames != 3 || r.Close() != nil {
		t.Errorf("summed up as %+v", got)
	}
	if _, err := NewRecorder(filepath.Join(t.TempDir(), "no", "such", "folder"), nil, silent); err == nil {
		t.Error("a file in no folder is written")
	}
}

// TestRecorderFails checks that a failing file is reported once, and that layers continue.
func TestRecorderFails(t *testing.T) {
	r, err := NewRecorder(filepath.Join(t.TempDir(), "times.jsonl"), nil, silent)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.file.Close()
	r.Run(records(2000))
	if err := r.Close(); err == nil || r.Layers().Frames != 2000 {
		t.Errorf("error is %v after %d frames", err, r.Layers().Frames)
	}
}

func TestListener(t *testing.T) {
	l, err := Listen("127.0.0.1:0", silent)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecorder("", l.Registerer(), silent)
	if err != nil {
		t.Fatal(err)
	}
	r.Run(records(5))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + l.Address() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	for _, want := range []string{layerSeconds + `_count{layer="service"} 5`, "go_goroutines"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("no %s in what is served, %v", want, err)
		}
	}
	if _, err := Listen(l.Address(), silent); err == nil {
		t.Error("two listen at one address")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}
