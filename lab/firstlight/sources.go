package firstlight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// Sources runs the conference of the demo with captures of real people, and compares shown frames with captured frames,
// point by point.
type Sources struct {
	Progress lab.Progress
	Seconds  int
	// Data is the folder of the test data.
	Data  string
	Cases []SourceCase
	// Frames is the number of shown frames compared for each source.
	Frames int
}

// SourceCase is one kind of source, its folder in the test data and its frame rate.
type SourceCase struct {
	Kind, Folder string
	Rate         float64
}

// NewSources returns the check of the claim.
func NewSources(progress lab.Progress) *Sources {
	return &Sources{
		Progress: progress, Seconds: 20, Data: lab.TestData(), Frames: 24,
		Cases: []SourceCase{{"rgbd", "seated-human/rgbd", 24}, {"ply", "seated-human/ply", 30}},
	}
}

// Name implements lab.Check.
func (s *Sources) Name() string {
	return "the demo with real captures, shown frames compared with captured ones"
}

// Run implements lab.Check.
func (s *Sources) Run(ctx context.Context) ([]claim.Line, error) {
	var lines []claim.Line
	for _, c := range s.Cases {
		dir, err := filepath.Abs(filepath.Join(s.Data, c.Folder))
		if err != nil {
			return lines, err
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			lines = append(lines, claim.Skip(c.Kind, fmt.Sprintf("test data not found at %s; set %s", dir,
				lab.TestDataVariable)))
			continue
		}
		found, err := s.measure(ctx, c, dir)
		lines = append(lines, found...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", c.Kind, err)
		}
	}
	return lines, nil
}

// measure runs the conference with one source.
func (s *Sources) measure(ctx context.Context, c SourceCase, dir string) (lines []claim.Line, err error) {
	saved, err := os.MkdirTemp("", "volsfu-lab-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(saved)) }()
	spec := c.Kind + ":" + dir
	s.Progress.Say("%s for %d s", c.Kind, s.Seconds)
	show, err := scene{source: spec, rate: c.Rate}.play(ctx, s.Seconds, saved)
	if err != nil {
		return nil, err
	}
	lines = show.lines(c.Kind+": ", c.Rate)
	if show.ended != nil {
		return lines, show.ended
	}
	s.Progress.Say("comparing %d frames", s.Frames)
	original, err := readOriginal(ctx, spec)
	if err != nil {
		return lines, err
	}
	names, err := filepath.Glob(filepath.Join(saved, "*.ply"))
	if err != nil {
		return lines, err
	}
	outcome, err := original.compare(ctx, evenly(afterStart(names, int(startingSeconds*c.Rate)), s.Frames))
	if err != nil {
		return lines, err
	}
	return append(lines, outcome.lines(c.Kind+": ")...), nil
}

// afterStart returns the names of saved frames without the first count of each publication. names is sorted; a name
// consists of the publication, the frame's number and the type.
func afterStart(names []string, count int) []string {
	var kept []string
	publication, seen := "", 0
	for _, name := range names {
		frame := strings.TrimSuffix(name, filepath.Ext(name))
		if of := strings.TrimSuffix(frame, filepath.Ext(frame)); of != publication {
			publication, seen = of, 0
		}
		if seen++; seen > count {
			kept = append(kept, name)
		}
	}
	return kept
}

// evenly picks count names, spread over all.
func evenly(names []string, count int) []string {
	if len(names) <= count {
		return names
	}
	var picked []string
	for i := range count {
		picked = append(picked, names[i*len(names)/count])
	}
	return picked
}
