package codecbench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
)

// measure runs vollab codec.
func measure(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	root := Command()
	root.SilenceUsage, root.SilenceErrors = true, true
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(arguments)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCodecCommand(t *testing.T) {
	plots := filepath.Join(t.TempDir(), "plots")
	out, err := measure(t, "--points", "500", "--codecs", "raw,zstd", "--share", "100,50", "--colors", "on,off",
		"--levels", "3,10", "--threads", "1,2", "--repeats", "1",
		"--json", "--plots", plots)
	if err != nil {
		t.Fatal(err)
	}
	var got measured
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if len(got.Rows) != 2*2*2*2*2 || got.Frames != 1 || got.Source == "" {
		t.Errorf("got %d rows of %d frames", len(got.Rows), got.Frames)
	}
	for _, r := range got.Rows {
		if r.Bytes == 0 || r.Points != 500 && r.Points != 250 || r.Level+r.Speed != 10 || r.PointToPoint == nil {
			t.Errorf("got %+v", r)
		}
	}
	if files, err := os.ReadDir(plots); err != nil || len(files) < 4 {
		t.Errorf("got %d plots, %v", len(files), err)
	}
	table, err := measure(t, "--points", "500", "--codecs", "raw", "--repeats", "1")
	if err != nil || !strings.HasPrefix(table, "| codec") || strings.Count(table, "\n") != 3 {
		t.Errorf("got %q, %v", table, err)
	}
}

// TestPerceptual: frames with colours have PCQM and PointSSIM, which get worse with fewer bits.
func TestPerceptual(t *testing.T) {
	arguments := []string{"--points", "5000", "--codecs", "raw", "--bits", "11,8", "--colors", "on,off",
		"--repeats", "1", "--perceptual"}
	out, err := measure(t, append(arguments, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var got measured
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	rows := make(map[int]Row)
	for _, r := range got.Rows {
		if !r.Colors {
			if r.PCQM != nil || r.PointSSIM != nil {
				t.Errorf("got %+v for a frame without colours", r)
			}
			continue
		}
		if r.PCQM == nil || r.PointSSIM == nil || r.PointSSIM.Color == nil || r.PointSSIM.Geometry == nil {
			t.Fatalf("got %+v, want perceptual measures", r)
		}
		rows[r.Bits] = r
	}
	fine, coarse := rows[11], rows[8]
	if *fine.PCQM >= *coarse.PCQM || *fine.PointSSIM.Color <= *coarse.PointSSIM.Color ||
		*fine.PointSSIM.Geometry <= *coarse.PointSSIM.Geometry {
		t.Errorf("11 bits: %g, %+v; 8 bits: %g, %+v; want worse values for fewer bits", *fine.PCQM, *fine.PointSSIM,
			*coarse.PCQM, *coarse.PointSSIM)
	}
	table, err := measure(t, arguments...)
	if err != nil || !strings.Contains(table, "PCQM | PointSSIM |") || strings.Count(table, "\n") != 6 {
		t.Errorf("got %q, %v", table, err)
	}
}

func TestCodecCommandErrors(t *testing.T) {
	for arguments, want := range map[string]error{
		"--levels 11": errMeasuring, "--speeds -1": errMeasuring, "--bits 0": errMeasuring, "--share 0": errMeasuring,
		"--share 101": errMeasuring,
		"--threads 0": errMeasuring, "--colors some": errMeasuring, "--color-quality 0": errMeasuring,
		"--color-bits 9": errMeasuring, "--frames 0": errMeasuring,
		"--repeats 0": errMeasuring, "--codecs nothing": codec.ErrUnknown, "--source nothing": capture.ErrUnknownSource,
	} {
		if _, err := measure(t, strings.Fields(arguments)...); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", arguments, err, want)
		}
	}
}
