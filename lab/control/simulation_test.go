package control

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/congestion"
	"github.com/volsfu/volsfu/internal/congestion/pacing"
	"github.com/volsfu/volsfu/internal/feedback"
)

// cases returns short runs of all cases, with every queue and pacing mode.
func cases(t *testing.T) map[string]Options {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "link.csv")
	if err := os.WriteFile(trace, []byte("t_s,mbps\n0,20\n1,8\n2,0.2\n3,12\n4,10\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	of := func(seconds float64, queue string, mode pacing.Mode) Options {
		o := short(seconds)
		o.Queue, o.Pacing, o.LinkBPS = queue, mode, 20e6
		return o
	}
	return map[string]Options{
		"steady:5":       of(3, "", pacing.Default),
		"steady:20":      of(3, "codel", pacing.Burst5ms),
		"steady:10":      of(3, "dualpi2", pacing.Default),
		"loss:1":         of(3, "paper000", pacing.Default),
		"ramp":           of(2, "fifo:10", "spread:20ms"),
		"drop":           of(27, "fifo:30", pacing.Default),
		"trace:" + trace: of(5, "", pacing.Default),
		"cliff":          of(17, "", pacing.Default),
		"cubic:2":        of(16, "", pacing.Off),
		"prague:2":       of(8, "", pacing.Default),
		"room:3":         of(18, "", pacing.Default),
		"bleach:mark":    of(13, "", pacing.Default),
		"fair:2":         of(3, "fq", pacing.Default),
		"loss:5":         of(3, "", pacing.Default),
	}
}

// TestConservation: in every case only the queue and the link lose packets, and each frame begins once.
func TestConservation(t *testing.T) {
	for text, o := range cases(t) {
		t.Run(strings.SplitN(text, ":", 2)[0], func(t *testing.T) {
			s := run(t, text, o)
			for _, h := range s.hops {
				checkHop(t, h, len(s.competitors) > 0 && h == s.hops[0])
			}
			for _, f := range s.flows {
				checkFlow(t, f)
			}
		})
	}
}

// checkHop checks the packets of a bottleneck's flows against those of its link.
func checkHop(t *testing.T, h *hop, endless bool) {
	t.Helper()
	stats := h.link.Stats()
	var offered, transmitted uint64
	for _, w := range h.queue.flows {
		offered += w.offered
		transmitted += w.transmitted
		waiting := len(w.waiting[classic]) + len(w.waiting[lowLatency])
		if w.discarded+uint64(waiting) != w.offered-w.transmitted {
			t.Errorf("%d packets were offered, %d transmitted, %d discarded and %d wait", w.offered, w.transmitted,
				w.discarded, waiting)
		}
	}
	if offered != stats.Sent-stats.DroppedECN || transmitted != offered-stats.DroppedQueue-uint64(h.queue.Len()) {
		t.Errorf("%d packets were offered and %d transmitted, by the link's books %+v with %d waiting", offered,
			transmitted, stats, h.queue.Len())
	}
	if left := offered - stats.Delivered - stats.DroppedQueue - stats.LostRandom; !endless && left != 0 {
		t.Errorf("%d packets are still on the way after the end: %+v", left, stats)
	}
}

// checkFlow checks a receiver's counters against each other.
func checkFlow(t *testing.T, f *flow) {
	t.Helper()
	l := f.ledger
	if len(l.order) == 0 || len(l.order) != len(l.frames) {
		t.Fatalf("%d frames began, %d of them different", len(l.order), len(l.frames))
	}
	var goodput, bytes int64
	var fragments uint64
	complete := 0
	for _, record := range l.frames {
		bytes += int64(record.bytes - record.unsentBytes)
		fragments += uint64((record.bytes+fragmentSize-1)/fragmentSize - record.unsent)
		if record.unsent > 0 && record.complete > 0 {
			t.Errorf("a frame was ended with %d fragments unsent, and was complete %v after its capture", record.unsent,
				record.complete-record.captured)
		}
		if record.complete == 0 {
			continue
		}
		complete++
		goodput += int64(record.bytes)
		if delay := record.complete - record.captured; delay < f.receiver.rtt/2 {
			t.Errorf("a frame was complete %v after its capture, faster than the path", delay)
		}
	}
	if goodput != l.goodput || complete == 0 {
		t.Errorf("%d frames with %d bytes are complete, expected %d bytes", complete, goodput, l.goodput)
	}
	// Every frame that began was sent to its end or until it could no longer be complete in time, with its headers and
	// nothing else.
	if media := l.sentBytes[feedback.Media]; media < bytes || float64(media) > 1.6*float64(bytes) {
		t.Errorf("media took %d bytes on the wire for %d of payload", media, bytes)
	}
	sent := uint64(0)
	for _, st := range f.server.streams {
		sent += uint64(st.next)
	}
	if l.sentBytes[feedback.Parity] == 0 && sent != fragments {
		t.Errorf("%d packets of media were sent of frames that have %d", sent, fragments)
	}
	if history := f.server.history.Stats(); history.Sent < sent || history.Sent != f.watched.offered {
		t.Errorf("%d packets of media were sent, %d numbered and %d offered to the link", sent, history.Sent,
			f.watched.offered)
	}
	if f.server.Held() != 0 {
		t.Errorf("%d packets wait for the pacer after the end", f.server.Held())
	}
}

// TestSeed: case, options and seed determine a run bit by bit, and a different seed changes the run.
func TestSeed(t *testing.T) {
	for text, o := range cases(t) {
		t.Run(strings.SplitN(text, ":", 2)[0], func(t *testing.T) {
			trace := func(seed uint64) string {
				o.Seed = seed
				s := run(t, text, o)
				var plot bytes.Buffer
				if err := s.Record().Plot(&plot); err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("%+v %+v %s", s.hops[0].link.Stats(), s.flows[0].server.Stats(), plot.String())
			}
			first := trace(3)
			if trace(3) != first {
				t.Error("the same seed gives two different runs")
			}
			if trace(4) == first {
				t.Error("another seed gives the same run")
			}
		})
	}
}

// TestFigures: a run of each case has its figures, under the documented names.
func TestFigures(t *testing.T) {
	always := []string{"utilisation", "share_of_capacity", "queue_ms", "frame_latency_ms", "frames_sent",
		"frames_undecodable", "frames_dropped_whole", "repair_overhead", "padding_overhead", "codepoints"}
	own := map[string][]string{
		"ramp": {"seconds_to_target"}, "drop": {"recovery_seconds", "queue_seconds", "quality_seconds"},
		"trace": {"recovery_seconds"},
		"cubic": {"share_of_fair", "others"}, "fair": {"jain_index"}, "cliff": {"cliff"},
		"prague": {"share_of_fair", "others"}, "room": {"room", "jain_index"}, "bleach": {"fallback_seconds"},
	}
	optional := []string{"seconds_to_target", "recovery_seconds", "share_of_fair", "jain_index", "cliff", "room",
		"fallback_seconds"}
	for text, o := range cases(t) {
		name := strings.SplitN(text, ":", 2)[0]
		t.Run(name, func(t *testing.T) {
			var out, text2 bytes.Buffer
			result := run(t, text, o).Record().Result()
			if err := result.WriteJSON(&out); err != nil {
				t.Fatal(err)
			}
			var figures map[string]any
			if err := json.Unmarshal(out.Bytes(), &figures); err != nil {
				t.Fatal(err)
			}
			for _, key := range append(always, own[name]...) {
				if figures[key] == nil {
					t.Errorf("there is no %s in %s", key, out.String())
				}
			}
			for _, key := range optional {
				wanted := strings.Contains(strings.Join(own[name], " "), key)
				if figures[key] != nil && !wanted {
					t.Errorf("there is %s, which the case does not have", key)
				}
			}
			if err := result.WriteText(&text2); err != nil || !strings.Contains(text2.String(), "frames sent") {
				t.Errorf("got %v and %q", err, text2.String())
			}
		})
	}
}

// TestSteady: on a link with enough capacity all frames arrive, and most of the link is used.
func TestSteady(t *testing.T) {
	r := run(t, "steady:20", short(14)).Record().Result()
	if r.Utilisation < 0.8 || r.Utilisation > 1.1 || r.ShareOfCapacity >= r.Utilisation {
		t.Errorf("utilisation %.2f, %.2f of the link's rate", r.Utilisation, r.ShareOfCapacity)
	}
	if r.FramesUndecodable > 0 || r.FramesSent < 12*frameRate*tiles {
		t.Errorf("%d of %d frames undecodable", r.FramesUndecodable, r.FramesSent)
	}
	if r.Queue.P50 > r.Queue.P95 || r.Queue.P95 > r.Queue.P99 || r.Queue.P99 > r.Queue.Max || r.Queue.Max > 51 {
		t.Errorf("times in the queue %+v, which holds 50 ms", r.Queue)
	}
}

// TestShortQueue: frames that leave in bursts need a queue of 20 ms. They overflow a queue half as long once, and the
// frames after that are spread evenly.
func TestShortQueue(t *testing.T) {
	for _, queue := range []string{"fifo:10", "fifo:15"} {
		t.Run(queue, func(t *testing.T) {
			o := short(20)
			o.Queue = queue
			r := run(t, "steady:100", o).Record().Result()
			if r.FramesUndecodable > 0 || r.PacketsDiscarded > 1000 {
				t.Errorf("%d frames undecodable, %d packets dropped by the queue", r.FramesUndecodable,
					r.PacketsDiscarded)
			}
			if r.Utilisation < 0.8 {
				t.Errorf("utilisation %.3f", r.Utilisation)
			}
		})
	}
}

// TestDropsWhole: a frame that has waited too long is dropped before any of its packets is sent.
func TestDropsWhole(t *testing.T) {
	o := short(3)
	o.Estimator.Probe.Enabled = false
	// One tile stays on at its lowest quality, 5.3 Mbit/s; the estimate has room for a third of this rate.
	o.Estimator.Max, o.LinkBPS = 2e6, 300e6
	r := run(t, "loss:0", o).Record().Result()
	if r.FramesDroppedWhole == 0 || r.FramesUndecodable > 0 {
		t.Errorf("%d frames dropped whole, %d undecodable", r.FramesDroppedWhole, r.FramesUndecodable)
	}
}

// TestEndsWhatExpires: if the link collapses under a frame that has begun, packets that wait beyond the deadline are
// neither sent nor retransmitted. Whether a frame has begun when the estimate falls depends on the phase of the fall in
// the frame interval.
func TestEndsWhatExpires(t *testing.T) {
	ended, undecodable := 0, int64(0)
	for phase := range 8 {
		trace := filepath.Join(t.TempDir(), "link.csv")
		steps := fmt.Sprintf("t_s,mbps\n0,100\n2.%03d,0.5\n4,50\n", 4*phase)
		if err := os.WriteFile(trace, []byte(steps), 0o600); err != nil {
			t.Fatal(err)
		}
		s := run(t, "trace:"+trace, short(6))
		for _, f := range s.flows {
			checkFlow(t, f)
			for _, record := range f.ledger.frames {
				if record.unsent > 0 {
					ended++
				}
			}
		}
		undecodable += int64(s.Record().Result().FramesUndecodable)
	}
	if ended == 0 || int64(ended) > undecodable {
		t.Errorf("%d frames were ended, %d are undecodable, expected some", ended, undecodable)
	}
}

// TestParity: parity is sent if retransmissions would be too late, and is not sent otherwise.
func TestParity(t *testing.T) {
	share := func(rtt time.Duration) (*Simulation, float64) {
		o := short(8)
		o.RTT = rtt
		s := run(t, "loss:5", o)
		l := s.flows[0].ledger
		return s, float64(l.sentBytes[feedback.Parity]) / float64(l.sentBytes[feedback.Media])
	}
	if _, parity := share(20 * time.Millisecond); parity > 0 {
		t.Errorf("parity takes %.3f of media at 20 ms", parity)
	}
	s, parity := share(150 * time.Millisecond)
	if parity < 0.02 || parity > 0.25 {
		t.Errorf("parity takes %.3f of media at 150 ms", parity)
	}
	if r := s.Record().Result(); r.undecodable() > 0.03 {
		t.Errorf("%d of %d frames undecodable", r.FramesUndecodable, r.FramesSent)
	}
}

func TestPlot(t *testing.T) {
	var plot bytes.Buffer
	if err := run(t, "steady:5", short(3)).Record().Plot(&plot); err != nil {
		t.Fatal(err)
	}
	text := plot.String()
	if err := xml.Unmarshal(plot.Bytes(), new(struct{ XMLName xml.Name })); err != nil {
		t.Fatal(err)
	}
	for _, curve := range []string{"capacity", "estimate", "sent", "decodable media", "largest delay", "at the queue",
		"in all"} {
		if !strings.Contains(text, ">"+curve+"<") {
			t.Errorf("expected a curve named %s", curve)
		}
	}
	if strings.Contains(text, "NaN") {
		t.Error("expected every point to have a place")
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := NewSimulation("steady:5", short(3))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestRefusedCases(t *testing.T) {
	for _, c := range []struct {
		name, text string
		change     func(*Options)
		err        error
	}{
		{"no such case", "steep:5", nil, ErrCase},
		{"no rate", "steady", nil, ErrCase},
		{"no number", "loss:many", nil, ErrCase},
		{"one receiver", "fair:1", nil, ErrCase},
		{"no number of receivers", "fair:many", nil, ErrCase},
		{"half a flow", "cubic:1.5", nil, ErrCase},
		{"no Prague flow", "prague:0", nil, ErrCase},
		{"one participant", "room:1", nil, ErrCase},
		{"no such treatment", "bleach:keep", nil, ErrCase},
		{"a cliff that does not come", "cliff", func(o *Options) { o.Duration = 15 * time.Second }, ErrCase},
		{"no path of competitors", "prague:1", func(o *Options) { o.RivalRTT = time.Hour }, ErrCase},
		{"not a party that joins", "prague:1", func(o *Options) { o.Joins = "all" }, ErrCase},
		{"not a party that joins an idle link", "ramp", func(o *Options) { o.Joins = "all" }, ErrCase},
		{"competitors that do not come", "prague:1", func(o *Options) {
			o.Joins, o.Duration = JoinRivals, 5*time.Second
		}, ErrCase},
		{"no trace", "trace:/nowhere.csv", nil, os.ErrNotExist},
		{"no such queue", "ramp", func(o *Options) { o.Queue = "lifo" }, ErrCase},
		{"a queue without length", "ramp", func(o *Options) { o.Queue = "fifo:0" }, ErrCase},
		{"no such controller", "ramp", func(o *Options) { o.Estimator.Controller = "pid" }, congestion.ErrConfig},
		{"no such pacing", "ramp", func(o *Options) { o.Pacing = "slowly" }, pacing.ErrMode},
		{"no such feedback", "ramp", func(o *Options) { o.Feedback = "by post" }, ErrCase},
		{"no link", "ramp", func(o *Options) { o.LinkBPS = -1 }, ErrCase},
		{"no time", "ramp", func(o *Options) { o.Duration = time.Millisecond }, ErrCase},
		{"no path", "ramp", func(o *Options) { o.RTT = time.Hour }, ErrCase},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := short(3)
			if c.change != nil {
				c.change(&o)
			}
			if _, err := NewSimulation(c.text, o); !errors.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
		})
	}
}
