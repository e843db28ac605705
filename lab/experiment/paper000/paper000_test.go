package paper000

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/direct"
	"github.com/volsfu/volsfu/lab/rival"
	"github.com/volsfu/volsfu/pkg/frametimes"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestFiles: every experiment can be read, with the cells of the paper.
func TestFiles(t *testing.T) {
	library, err := experiment.NewLibrary(Collection())
	if err != nil {
		t.Fatal(err)
	}
	for name, cells := range map[string]int{"gcc-congestion": 32, "e2e-breakdown": 2, "quality": 12,
		"l4s-congestion": 30, "l4s-breakdown": 8, "l4s-quality": 26} {
		e, err := library.Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if n := len(e.Cells()); n != cells || e.Iterations != 3 || e.Paper != "000" {
			t.Errorf("%s has %d cells in %d iterations, want %d in 3", name, n, e.Iterations, cells)
		}
	}
	if e, _ := library.Find("gcc-congestion"); e.Short.Seconds != 40 {
		t.Errorf("a short run of gcc-congestion takes %g s, want 40: there is no stable state before 30",
			e.Short.Seconds)
	}
}

func TestParameters(t *testing.T) {
	wrong := map[string]func(*stage){
		"sender": func(s *stage) { s.Sender = "l4s" }, "flows": func(s *stage) { s.Flows = -1 },
		"points":  func(s *stage) { s.Points = 0 },
		"startup": func(s *stage) { s.Startup = 0 }, "queue": func(s *stage) { s.Queue = "best" },
		"rate": func(s *stage) { s.Rate = "much" }, "rival": func(s *stage) { s.Rival = "reno" },
		"bitrate":   func(s *stage) { s.Bitrate, s.Sender = 25, senderServer },
		"transport": func(s *stage) { s.Sender, s.Transport = senderPion, transportL4S },
	}
	for name, change := range wrong {
		s := defaultStage()
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	q := defaultQuality()
	q.Width = 15
	if err := q.Validate(); err == nil {
		t.Error("a width of 15 is accepted")
	}
}

// TestAdaptive: the flags of vollab direct for each sender and transport.
func TestAdaptive(t *testing.T) {
	for _, test := range []struct {
		sender, transport string
		bitrate           float64
		want              string
	}{
		{senderVolsfu, transportWebRTC, 0, "--controller gcc"}, {senderVolsfu, transportL4S, 0, "--controller auto"},
		{senderPaper, transportL4S, 0, "--controller paper000 --pacing spread:20ms"},
		{senderVolsfu, transportL4S, 12.5, "--controller auto --bitrate 12.5Mbit"},
	} {
		s := defaultStage()
		s.Sender, s.Transport, s.Bitrate = test.sender, test.transport, test.bitrate
		if err := s.Validate(); err != nil {
			t.Errorf("%s over %s: %v", test.sender, test.transport, err)
		}
		if got := strings.Join(s.adaptive(), " "); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s over %s has flags %s, want %s", test.sender, test.transport, got, test.want)
		}
	}
}

// TestPhases: a run that is too short for the paper's phases has proportionally shorter phases.
func TestPhases(t *testing.T) {
	s := defaultStage()
	for length, want := range map[time.Duration][2]time.Duration{
		60 * time.Second: {5 * time.Second, 30 * time.Second}, 40 * time.Second: {5 * time.Second, 30 * time.Second},
		10 * time.Second: {2500 * time.Millisecond, 5 * time.Second},
	} {
		if competing, stable := s.phases(length); [2]time.Duration{competing, stable} != want {
			t.Errorf("in %v, competitors begin after %v and the stable state after %v, want %v", length, competing,
				stable, want)
		}
	}
}

// fly returns 10 flights a second for ten seconds: 1 Mbit each for two seconds, then 3.
func fly() (list []flight) {
	for i := range 100 {
		f := flight{At: float64(i) / 10, Bytes: 125_000, Sent: true, Whole: true, Shown: true, Transport: 20,
			Latency: 50, Estimate: 15e6}
		if i >= 20 {
			f.Bytes, f.Estimate = 375_000, 90e6
		}
		if i%20 == 19 {
			f.Whole, f.Shown, f.Transport, f.Latency = false, false, math.NaN(), math.NaN()
		}
		list = append(list, f)
	}
	return list
}

func TestMeasure(t *testing.T) {
	list := fly()
	p := &performance{
		flights: &flights{list: list, estimates: estimates(list), bound: 0.25}, stable: 5, length: 10, began: 2,
		rates: []rival.Rate{{From: 0, Until: 3, BPS: 100e6}, {From: 3, Until: 8, BPS: 120e6}},
		queue: queueing{dropped: 7},
	}
	o := experiment.NewOutcome()
	p.measure(o)
	for figure, want := range map[string]float64{
		// Every two seconds one frame is lost.
		"throughput": (27 + 30 + 27 + 30 + 27) / 5.0, "throughput_max": 30,
		"throughput_startup": (10 + 9 + 30 + 27 + 30) / 5.0, "convergence": 0, "estimate": 90, "estimate_90": 2,
		"undecodable": 6, "unsent": 0, "transport": 20, "transport_max": 20, "latency": 50, "competitors": 120,
		"queue_dropped": 7, "time_bound": 25,
	} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 0.01 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
	names := make(map[string]bool)
	for _, line := range o.Lines {
		names[line.Name] = true
	}
	if !names["received"] || !names["estimate"] || !names["competitors"] || !names["transport"] {
		t.Errorf("series %v", names)
	}
	for _, f := range o.Figures {
		known := false
		for _, q := range congestionQuantities {
			known = known || q.Name == f.Name
		}
		if !known {
			t.Errorf("figure %s is not listed", f.Name)
		}
	}
}

func TestConvergence(t *testing.T) {
	// Alone on the link the rate is 72. Competitors begin after 4.5 s, and the rate reaches 30 from above, or from
	// below.
	fell := []float64{72, 72, 72, 72, 72, 60, 50, 40, 32, 30, 29, 31, 30, 28, 32, 30, 30, 30}
	rose := []float64{72, 72, 72, 72, 72, 12, 12, 15, 20, 22, 27, 29, 31, 30, 28, 32, 30, 30}
	for name, test := range map[string]struct {
		rates  []float64
		begin  float64
		stable int
		want   float64
	}{
		"as before":  {[]float64{30, 30, 30, 30, 30, 10, 10, 10, 10, 10, 30, 30, 30, 30, 30, 30}, 5, 10, 5},
		"from above": {fell, 4.5, 12, 7 - 4.5}, "from below": {rose, 4.5, 12, 9 - 4.5}, "alone": {rose[8:], 0, 4, 1},
		"never":                  {[]float64{10, 10, 10, 10, 10, 10, 90, 90}, 0, 6, -1},
		"without a stable state": {[]float64{1, 2}, 0, 2, -1}, "without arrivals": {make([]float64, 9), 0, 1,
			-1}, "too short": {[]float64{1, 1, 1, 1}, 0, 1, -1},
	} {
		got, ok := convergence(test.rates, test.begin, test.stable)
		if ok != (test.want >= 0) || ok && got != test.want {
			t.Errorf("%s: got %g %v, expected %g", name, got, ok, test.want)
		}
	}
	if _, ok := firstAbove([][2]float64{{0, 12.5}, {1, 40}}, 89); ok {
		t.Error("40 is above 89")
	}
}

// TestFlightsOfLog checks the flights of a log of vollab direct.
func TestFlightsOfLog(t *testing.T) {
	frames := []direct.Frame{
		{Capture: 1_000_000, Encoded: 1_010_000, FirstSent: 1_015_000, LastReceived: 1_030_000, Decoded: 1_040_000,
			Bytes: 10, Outcome: direct.Intact, Estimate: 20e6, Bound: "rate"},
		{Capture: 1_500_000, FirstSent: 1_510_000, Bytes: 10, Outcome: "lost", Bound: "time"},
		{Capture: 2_000_000, Outcome: direct.Unsent, Bound: "time"}, {Outcome: "unmatched"},
	}
	began := time.UnixMicro(1_000_000)
	list := flightsOf(frames, began)
	if len(list) != 3 || !list[0].Whole || list[0].Transport != 20 || list[0].Latency != 40 || list[1].Whole ||
		!list[1].Sent || list[2].Sent || list[2].At != 1 {
		t.Errorf("got %+v", list)
	}
	if got := boundByTime(frames, began, 0.5); got != 1 {
		t.Errorf("from half a second on, the share bound by time is %g, want 1", got)
	}
}

// record returns a peer's record, with stamps in milliseconds after a time.
func record(frame int64, quality int, begin time.Time, stamps map[frametimes.Stamp]int) frametimes.Record {
	var r frametimes.Record
	r.Frame, r.Track.Quality, r.Bytes = frame, volumetric.Quality(quality), 1000*(quality+1)
	for stamp, ms := range stamps {
		r.Set(stamp, begin.Add(time.Duration(ms)*time.Millisecond))
	}
	return r
}

// TestLadderFlights: frames of both peers are joined. Frames before the run and further qualities of one capture are
// ignored.
func TestLadderFlights(t *testing.T) {
	begin := time.Unix(1000, 0)
	sent := []frametimes.Record{
		record(2, 1, begin, map[frametimes.Stamp]int{frametimes.Captured: 133, frametimes.Encoded: 140}),
		record(0, 0, begin, map[frametimes.Stamp]int{frametimes.Captured: -33}),
		record(1, 0, begin, map[frametimes.Stamp]int{frametimes.Captured: 100, frametimes.Encoded: 102,
			frametimes.FirstSent: 103}),
		record(1, 1, begin, map[frametimes.Stamp]int{frametimes.Captured: 100, frametimes.Encoded: 103}),
	}
	received := []frametimes.Record{
		record(0, 0, begin, map[frametimes.Stamp]int{frametimes.LastReceived: 0, frametimes.Decoded: 5}),
		record(1, 0, begin, map[frametimes.Stamp]int{frametimes.LastReceived: 118}),
		// complete, and shown from the second arrival
		record(1, 1, begin, map[frametimes.Stamp]int{frametimes.LastReceived: 122, frametimes.Decoded: 130}),
		record(1, 0, begin, map[frametimes.Stamp]int{frametimes.LastReceived: 150}), // late, and shown before
	}
	list := ladderFlights(sent, received, begin)
	if len(list) != 2 || list[0].At != 0.1 || !list[0].Shown || list[0].Bytes != 2000 || list[0].Transport != 20 ||
		list[0].Latency != 30 || list[1].Whole || !math.IsNaN(list[1].Transport) {
		t.Errorf("got %+v", list)
	}
	if got := before(sent, begin); math.Abs(got-0.033) > 1e-9 {
		t.Errorf("the first frame was captured %g s before, want 0.033", got)
	}
	shown := shownFrames(sent, received, 30)
	if fmt.Sprint(shown) != "[{0 0} {4 1}]" {
		t.Errorf("shown frames: %v", shown)
	}
	name := filepath.Join(t.TempDir(), "shown.jsonl")
	if err := writeShown(name, sent, received, 30); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(name)
	if !bytes.Equal(text, []byte("{\"number\":0,\"quality\":0}\n{\"number\":4,\"quality\":1}\n")) {
		t.Errorf("the list: %s", text)
	}
}

func TestPictures(t *testing.T) {
	p, err := parsePictures([]byte(`{"repeated":1,"frames":[{"number":0,"psnr_db":30,"ssim":0.9},
		{"number":1,"shown":0,"psnr_db":20,"ssim":0.7}]}`))
	if err != nil {
		t.Fatal(err)
	}
	o := experiment.NewOutcome()
	p.set(o)
	for figure, want := range map[string]float64{"psnr": 25, "psnr_within": 5, "psnr_min": 20, "psnr_max": 30,
		"ssim": 0.8, "repeated": 50} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
	for _, text := range []string{"", "{}", `{"repeated":2,"frames":[{}]}`, `{"frames":1}`} {
		if _, err := parsePictures([]byte(text)); !errors.Is(err, errPictures) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParsePictures(f *testing.F) {
	f.Add([]byte(`{"repeated":1,"frames":[{"number":0,"psnr_db":30,"ssim":0.9}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := parsePictures(text); err == nil && (len(p.Frames) == 0 || p.Repeated > len(p.Frames)) {
			t.Errorf("%+v", p)
		}
	})
}

// TestStages: the remainder of the stages is waits, and frames captured after the run do not count.
func TestStages(t *testing.T) {
	frames := []direct.Frame{{
		Capture: 1_000_000, Taken: 1_002_000, Encoded: 1_022_000, FirstSent: 1_023_000, LastReceived: 1_053_000,
		DecodeBegun: 1_054_000, Decoded: 1_068_000, Shown: 1_073_000, Outcome: direct.Intact,
	}}
	late := frames[0]
	late.Capture += 2_000_000
	late.Shown += 3_000_000
	p := &performance{flights: &flights{frames: append(frames, late)}, length: 2}
	s := p.stagesOfLog(&network{Metered: &direct.Metered{Began: time.UnixMicro(1_000_000)}})
	o := experiment.NewOutcome()
	s.set(o)
	for figure, want := range map[string]float64{"encoding": 20, "transport": 31, "decoding": 14, "rendering": 5,
		"waits": 3, "end_to_end": 73} {
		if got, ok := o.Figure(figure); !ok || math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: got %g, want %g", figure, got, want)
		}
	}
}
