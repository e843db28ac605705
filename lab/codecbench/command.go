package codecbench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/peer/codecs"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/draco"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// measuring has the flags of vollab codec.
type measuring struct {
	source  string
	capture capture.Options
	frames  int
	repeats int
	codecs  []string
	speeds  []int
	levels  []int
	bits    []int
	shares  []float64
	threads []int
	colors  []string
	quality []int
	colored []int
	// perceptual adds PCQM and PointSSIM.
	perceptual bool
	plots      string
	json       bool
}

// errMeasuring is returned if a flag of vollab codec is out of range. It is wrapped with the flag and the expected
// range.
var errMeasuring = errors.New("invalid ladder")

// Command returns the command vollab codec.
func Command() *cobra.Command {
	m := &measuring{capture: capture.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Measure codecs on a source: bytes, times and fidelity of every combination of parameters",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	usual := []string{"draco", "draco+jpeg"}
	if !draco.Available() {
		usual = []string{"zstd", "raw"}
	}
	f := cmd.Flags()
	f.StringVar(&m.source, "source", "synthetic", "source of the point clouds: "+strings.Join(capture.Kinds(), ", "))
	f.IntVar(&m.capture.Points, "points", 0, "largest number of points per frame; larger frames are sampled evenly; 0 "+
		"means no limit (synthetic: 40000)")
	f.IntVar(&m.capture.Seed, "seed", 0, "seed of the synthetic figure and of the order of points")
	f.IntVar(&m.frames, "frames", 1, "number of frames of the source to measure")
	f.IntVar(&m.repeats, "repeats", 5, "number of encodings of each frame; times are the minimum, and with --json "+
		"also the median")
	f.StringSliceVar(&m.codecs, "codecs", usual, "codecs to measure, of "+strings.Join(codec.Names(), ", "))
	f.IntSliceVar(&m.speeds, "speeds", nil, "speeds from 0 (smallest) to 10 (fastest); the default is all speeds that "+
		"make a difference to the codec")
	f.IntSliceVar(&m.levels, "levels", nil, "speeds as compression levels: 10 - speed")
	f.IntSliceVar(&m.bits, "bits", []int{11}, "bits per coordinate")
	f.Float64SliceVar(&m.shares, "share", []float64{100}, "shares of the points to encode, in %, evenly sampled")
	f.IntSliceVar(&m.threads, "threads", []int{1}, "number of threads and parts of a frame")
	f.StringSliceVar(&m.colors, "colors", []string{"on"}, "with colours (on), without (off), or both")
	f.IntSliceVar(&m.quality, "color-quality", []int{codec.DefaultColorQuality},
		"qualities of codecs with lossy colours, 1 to 100")
	f.IntSliceVar(&m.colored, "color-bits", []int{8},
		"bits per channel to which colours are reduced for codecs with lossless colours")
	f.BoolVar(&m.perceptual, "perceptual", false, "also compute PCQM and PointSSIM, which takes seconds per decoded "+
		"frame")
	f.StringVar(&m.plots, "plots", "", "folder for plots as SVG files")
	f.BoolVar(&m.json, "json", false, "print one JSON object instead of the table")
	return cmd
}

// measured is the JSON object that vollab codec --json prints.
type measured struct {
	Source string `json:"source"`
	Frames int    `json:"frames"`
	Peak   string `json:"peak"`
	Cores  int    `json:"cores"`
	Rows   []Row  `json:"rows"`
}

// run measures and prints the result.
func (m *measuring) run(ctx context.Context, out, console io.Writer) error {
	ladder, err := m.check()
	if err != nil {
		return err
	}
	source, err := capture.Open(m.source, m.capture)
	if err != nil {
		return fmt.Errorf("--source: %w", err)
	}
	defer func() { _ = source.Close() }()
	clouds, err := m.read(ctx, source)
	if err != nil {
		return err
	}
	bench, err := New(clouds, source.Info().Box, m.repeats)
	if err != nil {
		return err
	}
	bench.Perceptual = m.perceptual
	report := measured{Source: source.Info().Description, Frames: len(clouds),
		Peak: "longest edge of the frame's bounding box", Cores: runtime.NumCPU()}
	settings := ladder.Settings()
	last := time.Now()
	for i, s := range settings {
		row, err := bench.Run(ctx, s)
		if err != nil {
			return err
		}
		report.Rows = append(report.Rows, row)
		if time.Since(last) > time.Second {
			_, _ = fmt.Fprintf(console, "%d of %d\n", i+1, len(settings))
			last = time.Now()
		}
	}
	if err := m.plot(report.Rows, console); err != nil {
		return err
	}
	if m.json {
		return json.NewEncoder(out).Encode(report)
	}
	return Table(out, report.Rows)
}

// check parses and checks the flags.
func (m *measuring) check() (*Ladder, error) {
	speeds := append([]int{}, m.speeds...)
	for _, level := range m.levels {
		speeds = append(speeds, 10-level)
	}
	for _, test := range []struct {
		flag        string
		values      []int
		least, most int
	}{
		{"--speeds, --levels", speeds, 0, 10}, {"--bits", m.bits, 1, 30}, {"--threads", m.threads, 1, 64},
		{"--color-quality", m.quality, 1, 100},
		{"--color-bits", m.colored, 1, 8}, {"--frames", []int{m.frames}, 1, 10000},
		{"--repeats", []int{m.repeats}, 1, 10000},
	} {
		for _, v := range test.values {
			if v < test.least || v > test.most {
				return nil, fmt.Errorf("%w: %s is %d, expected %d to %d", errMeasuring, test.flag, v, test.least,
					test.most)
			}
		}
	}
	for _, share := range m.shares {
		if !(share > 0 && share <= 100) {
			return nil, fmt.Errorf("%w: --share is %g, expected more than 0 and up to 100", errMeasuring, share)
		}
	}
	ladder := &Ladder{Speeds: speeds, Bits: m.bits, Shares: m.shares, ColorQuality: m.quality, ColorBits: m.colored}
	for _, word := range m.colors {
		if word != "on" && word != "off" {
			return nil, fmt.Errorf("%w: --colors is %.32q, expected on, off or both", errMeasuring, word)
		}
		ladder.Colors = append(ladder.Colors, word == "on")
	}
	return ladder, m.choose(ladder)
}

// choose finds the codecs with the requested numbers of threads.
func (m *measuring) choose(ladder *Ladder) error {
	for _, name := range m.codecs {
		for _, threads := range m.threads {
			on := name
			if threads > 1 {
				on = fmt.Sprintf("parts:%s:%d", name, threads)
			}
			c, err := codecs.Find(on)
			if err != nil {
				return fmt.Errorf("--codecs: %w", err)
			}
			ladder.Candidates = append(ladder.Candidates, Candidate{Codec: c, Name: name, Threads: threads})
		}
	}
	return nil
}

// read reads the frames of the source.
func (m *measuring) read(ctx context.Context, source capture.Source) ([]*pointcloud.Cloud, error) {
	var clouds []*pointcloud.Cloud
	var frame capture.Frame
	for range m.frames {
		if err := source.Read(ctx, &frame); err != nil {
			return nil, fmt.Errorf("--source: %w", err)
		}
		cloud := new(pointcloud.Cloud)
		cloud.CopyFrom(&frame.Cloud)
		clouds = append(clouds, cloud)
	}
	return clouds, nil
}

// plot writes the plots that have data.
func (m *measuring) plot(rows []Row, console io.Writer) error {
	if m.plots == "" {
		return nil
	}
	if err := os.MkdirAll(m.plots, 0o755); err != nil {
		return fmt.Errorf("--plots: %w", err)
	}
	for _, p := range Plots() {
		var drawing strings.Builder
		drawn, err := p.Draw(&drawing, rows)
		if err != nil {
			return err
		}
		if !drawn {
			continue
		}
		name := filepath.Join(m.plots, "codec-"+p.Name+".svg")
		if err := os.WriteFile(name, []byte(drawing.String()), 0o644); err != nil {
			return fmt.Errorf("--plots: %w", err)
		}
		_, _ = fmt.Fprintln(console, name)
	}
	return nil
}
