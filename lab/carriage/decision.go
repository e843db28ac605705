package carriage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrDecisions reports an invalid file of decisions. The wrapping error names the invalid value.
var ErrDecisions = errors.New("invalid decisions")

// Decision chooses a quality for each tile.
type Decision struct {
	// At is the time since the first frame.
	At        time.Duration
	Qualities []volumetric.Quality
}

// Limits of files of decisions: a thousand per second for the longest run for which records are counted.
const (
	maxDecisions    = 1 << 20
	maxDecisionLine = 4096
)

// ReadDecisions reads decisions. Each line has a time in seconds and a quality for each tile, separated by commas.
// Lines are in the order of time and have the same number of tiles. A first line that begins with t_s names the columns
// and is skipped.
func ReadDecisions(in io.Reader) ([]Decision, error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, maxDecisionLine), maxDecisionLine)
	var list []Decision
	for line := 1; scanner.Scan(); line++ {
		text := strings.TrimSpace(scanner.Text())
		if text == "" || line == 1 && strings.HasPrefix(text, "t_s") {
			continue
		}
		d, err := parseDecision(text)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if n := len(list); n > 0 && (d.At < list[n-1].At || len(d.Qualities) != len(list[0].Qualities)) {
			return nil, fmt.Errorf("line %d: %w: at %v for %d tiles, expected not before %v and %d tiles", line,
				ErrDecisions, d.At, len(d.Qualities), list[n-1].At, len(list[0].Qualities))
		}
		if len(list) == maxDecisions {
			return nil, fmt.Errorf("%w: more than %d", ErrDecisions, maxDecisions)
		}
		list = append(list, d)
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDecisions, err)
	}
	return list, nil
}

func parseDecision(text string) (Decision, error) {
	fields := strings.Split(text, ",")
	seconds, err := strconv.ParseFloat(fields[0], 64)
	if err != nil || !(seconds >= 0 && seconds <= math.MaxInt32) || len(fields) < 2 ||
		len(fields) > 1+volumetric.MaxTiles {
		return Decision{}, fmt.Errorf("%w: %.64q, expected seconds and 1 to %d qualities", ErrDecisions, text,
			volumetric.MaxTiles)
	}
	d := Decision{At: time.Duration(seconds * float64(time.Second))}
	for _, field := range fields[1:] {
		q, err := strconv.Atoi(strings.TrimSpace(field))
		if err != nil || q < int(volumetric.QualityOff) || q >= volumetric.MaxQualities {
			return Decision{}, fmt.Errorf("%w: quality %.16q, expected -1 to %d", ErrDecisions, field,
				volumetric.MaxQualities-1)
		}
		d.Qualities = append(d.Qualities, volumetric.Quality(q))
	}
	return d, nil
}

// WriteDecisions writes decisions in the format of ReadDecisions.
func WriteDecisions(out io.Writer, list []Decision) error {
	w := bufio.NewWriter(out)
	for i, d := range list {
		if i == 0 {
			_, _ = w.WriteString("t_s")
			for tile := range d.Qualities {
				_, _ = fmt.Fprintf(w, ",q%d", tile)
			}
			_, _ = w.WriteString("\n")
		}
		_, _ = w.WriteString(strconv.FormatFloat(d.At.Seconds(), 'f', -1, 64))
		for _, q := range d.Qualities {
			_, _ = fmt.Fprintf(w, ",%d", q)
		}
		_, _ = w.WriteString("\n")
	}
	return w.Flush()
}

// outcome is the outcome of a decision on one tile. It is guarded by the watcher's lock.
type outcome struct {
	tile            int
	before, quality volumetric.Quality
	at              time.Duration
	sent            time.Time
	// first, decoded and shown are the times of the first frames of the quality.
	first, decoded, shown time.Time
	superseded            bool
}

// decide plays the decisions until the context ends.
func (w *Watcher) decide(ctx context.Context, begun time.Time) {
	for _, d := range w.config.Decisions {
		timer := time.NewTimer(begun.Add(d.At).Sub(wallclock.Now()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if qualities, changed := w.choose(d, begun); changed {
			// An end that fails here delivers no more frames either, which shows in the counts.
			_ = w.end.Choose(ctx, qualities)
		}
	}
}

// choose records a decision as sent now, and reports whether the decision changes any quality.
func (w *Watcher) choose(d Decision, begun time.Time) (qualities []volumetric.Quality, changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := wallclock.Now()
	for i, t := range w.tiles {
		if d.Qualities[i] == t.quality {
			continue
		}
		changed = true
		if t.open != nil {
			t.open.superseded = true
		}
		o := &outcome{tile: i, before: t.quality, quality: d.Qualities[i], at: now.Sub(begun), sent: now}
		t.quality, t.open = d.Qualities[i], o
		if o.quality == volumetric.QualityOff {
			t.open = nil // no frame shows that the decision is in force
			continue
		}
		w.outcomes = append(w.outcomes, o)
	}
	return w.qualities(), changed
}

// recordFirst records a frame as the first frame of a decision's quality if the frame began to arrive after the
// decision was sent.
func (w *Watcher) recordFirst(t *watchedTile, in *incoming, a *Arrival) {
	o := t.open
	switch {
	case o == nil || in.frame.Quality != o.quality || a.First.Before(o.sent):
		return
	case o.first.IsZero():
		o.first = a.First
	}
	in.decision = o
	if !o.shown.IsZero() {
		t.open = nil
	}
}

// decided adds the outcomes of the decisions.
func (w *Watcher) decided(s *Received) {
	var first, decoded, shown sample
	after := func(o *outcome, t time.Time, into *sample) float64 {
		if t.IsZero() {
			return -1
		}
		into.add(t.Sub(o.sent))
		return milliseconds(t.Sub(o.sent))
	}
	for _, o := range w.outcomes {
		s.Decisions = append(s.Decisions, DecisionOutcome{
			At: o.at.Seconds(), Tile: o.tile, Before: int(o.before), Quality: int(o.quality),
			FirstPacket: after(o, o.first, &first), Decoded: after(o, o.decoded, &decoded),
			Shown: after(o, o.shown, &shown), Superseded: o.superseded,
		})
	}
	s.DecisionLatency, s.DecisionDecoded, s.DecisionShown = first.percentiles(), decoded.percentiles(),
		shown.percentiles()
}
