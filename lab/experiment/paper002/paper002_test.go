package paper002

import (
	"errors"
	"math"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFiles: every experiment can be read, with the cells of the paper.
func TestFiles(t *testing.T) {
	library, err := experiment.NewLibrary(Collection())
	if err != nil {
		t.Fatal(err)
	}
	for name, cells := range map[string]int{
		"draco-levels": 41, "draco-colourless": 28, "draco-resolution": 40, "draco-threads": 40, "draco-combined": 20,
		"latency-variance": 4,
	} {
		e, err := library.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		short, bits := 0, make(map[string]int)
		for _, c := range e.Cells() {
			if c.Short {
				short++
			}
			value, _ := c.Parameters.Value("bits")
			bits[value]++
		}
		if n := len(e.Cells()); n != cells || short == 0 || e.Paper != "002" || bits["11"] < cells/2 ||
			bits["16"] < cells/2-1 {
			t.Errorf("%s has %d cells, %d of them short, with %v bits; want %d and some, and half of them with 16 bits",
				name, n, short, bits, cells)
		}
	}
	if e, err := library.Find("link-capacity"); err != nil || len(e.Cells()) != 3 || e.Paper != "002" {
		t.Errorf("expected link-capacity with 3 cells, got %v", err)
	}
}

func TestParameters(t *testing.T) {
	wrong := map[string]func(*streaming){
		"scene": func(s *streaming) { s.Scene = "room" }, "level": func(s *streaming) { s.Level = 11 },
		"bits":  func(s *streaming) { s.Bits = 0 },
		"share": func(s *streaming) { s.Share = 101 }, "threads": func(s *streaming) { s.Threads = 0 },
		"points": func(s *streaming) { s.Points = 0 }, "fps": func(s *streaming) { s.FPS = math.NaN() },
		"link": func(s *streaming) { s.Link = "rate=fast" }, "back": func(s *streaming) { s.Back = "delay" },
	}
	for name, change := range wrong {
		s := defaultStreaming()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	s := defaultStreaming()
	s.Share, s.Threads, s.Colors, s.Level, s.Clouds, s.FPS = 50, 2, false, 4, 1000, 7.5
	got := strings.Join(s.produce(&direct.Source{Spec: "synthetic", Points: 1000}, &experiment.Settings{}), " ")
	for _, want := range []string{"--points 500", "--codec parts:draco:2", "--speed 6", "--no-colors",
		"--mode paper002", "--gap 60µs", "--fps 7.5", "--count 1008"} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// frames returns ten frames, 100 ms apart. Every second frame arrives. Each frame takes 50 ms to encode, 20 to send, 30
// to decode and 10 to draw.
func frames() (list []direct.Frame) {
	for i := range 10 {
		at := direct.Instant(1_000_000 + 100_000*i)
		f := direct.Frame{
			Number: uint32(i), Capture: at, Captured: at + 5_000, Sampled: at + 10_000, Encoded: at + 55_000,
			FirstSent: at + 55_000, LastSent: at + 75_000, LastReceived: at + 95_000, Points: 1000,
			Bytes: 1_000_000,
			Wire:  1_100_000, Outcome: "lost",
		}
		if i%2 == 0 {
			f.Outcome, f.Reassembled, f.DecodeBegun, f.Decoded, f.Shown = direct.Intact, at+120_000, at+120_000,
				at+150_000, at+160_000+direct.Instant(i)*1000
		}
		list = append(list, f)
	}
	return list
}

func TestMeasure(t *testing.T) {
	s := defaultStreaming()
	o := experiment.NewOutcome()
	s.measure(o, frames())
	for figure, want := range map[string]float64{
		"producer_processing": 50, "compression": 45, "producer_transmission": 20, "pc_size": 1, "fps": 10,
		"decompression": 30, "rendering": 14, "consumer_processing": 44,
		"consumer_transmission": 200, "next_frame": 25, "end_to_end": 164, "end_to_end_min": 160, "end_to_end_p95": 168,
		"end_to_end_deviation": math.Sqrt(8), "reliability": 50, "bitrate": 11,
		"bitrate30": 33, "bits_per_point": 8000,
	} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
	if len(o.Lines) != 1 || len(o.Lines[0].Points) != 5 || o.Lines[0].Points[4] != [2]float64{8, 168} {
		t.Errorf("series %+v", o.Lines)
	}
	s.Clouds = 4
	o = experiment.NewOutcome()
	if s.measure(o, frames()); len(o.Lines[0].Points) != 2 || len(o.Notes) != 0 {
		t.Errorf("want two of four clouds, got %+v, notes %q", o.Lines, o.Notes)
	}
	s.Clouds = 11
	o = experiment.NewOutcome()
	if s.measure(o, frames()); len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "10 of 11 clouds") {
		t.Errorf("no note of the missing cloud: %q", o.Notes)
	}
	o = experiment.NewOutcome()
	if s.measure(o, frames()[:1]); o.Validity != experiment.Invalid {
		t.Errorf("with one frame: %s", o.Validity)
	}
	lost := frames()
	for i := range lost {
		lost[i].Outcome, lost[i].Reassembled = "corrupt", 0
	}
	o = experiment.NewOutcome()
	s.measure(o, lost)
	if got, _ := o.Figure("reliability"); got != 0 || len(o.Notes) == 0 {
		t.Errorf("without arrivals: %g %%, notes %v", got, o.Notes)
	}
}

// TestHeldRate: the capture rate is the highest that the slowest stage, and all processors together, can sustain.
func TestHeldRate(t *testing.T) {
	for _, test := range []struct {
		l    load
		want float64
	}{
		{load{produce: 20, consume: 25, interval: 33.3, busy: 0.4}, 30},
		// 1.3 times 26 ms is 33.8 ms, more than the 33.33 ms of the camera.
		{load{produce: 26, consume: 10, interval: 33.3, busy: 0.4}, 15},
		{load{produce: 50, consume: 95, interval: 100, busy: 0.5}, 7.5},
		// Both processors are busy while a frame takes 100 ms. At 75 % the frame takes 133 ms, the interval of every
		// fourth frame.
		{load{produce: 95, consume: 80, interval: 100, busy: 1}, 7.5},
		{load{produce: 5000}, 30.0 / 195},
	} {
		if got := test.l.rate(); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v: got %g per second, want %g", test.l, got, test.want)
		}
	}
	got, err := loadOf(frames(), 0.9)
	if want := (load{produce: 50, consume: 44, interval: 100, busy: 0.9}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := loadOf(frames()[:1], 0.9); !errors.Is(err, errTrial) {
		t.Errorf("with one frame: %v", err)
	}
}
