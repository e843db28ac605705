package paper000

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/visual"
	"github.com/volsfu/volsfu/pkg/frametimes"
)

// quality is a stage whose pictures are compared.
type quality struct {
	stage `yaml:",inline"`
	// Width and Height are the size of the pictures; every Every-th frame is compared.
	Width  int `yaml:"width"`
	Height int `yaml:"height"`
	Every  int `yaml:"every"`
}

// defaultQuality has the default window of the viewer.
func defaultQuality() quality {
	return quality{stage: defaultStage(), Width: 1280, Height: 720, Every: 1}
}

// Validate implements the optional interface of experiment.Define.
func (q quality) Validate() error {
	if q.Width < 16 || q.Height < 16 || q.Width%2 != 0 || q.Height%2 != 0 || q.Every < 1 {
		return errors.New("width, height, every: expected even numbers of at least 16, and 1 or more")
	}
	return q.stage.Validate()
}

// qualityQuantities are the figures of tables 1 and 2, for each measure: mean, standard deviation within the sequence,
// smallest and largest value. PSNR and SSIM are computed from the luma.
var qualityQuantities = []experiment.Quantity{
	{Name: "vmaf", Unit: "", Label: "VMAF"},
	{Name: "vmaf_within", Unit: "", Label: "VMAF, within the sequence"},
	{Name: "vmaf_min", Unit: "", Label: "VMAF, least"},
	{Name: "vmaf_max", Unit: "", Label: "VMAF, largest"},
	{Name: "psnr", Unit: "dB", Label: "PSNR"},
	{Name: "psnr_within", Unit: "dB", Label: "PSNR, within the sequence"},
	{Name: "psnr_min", Unit: "dB", Label: "PSNR, least"},
	{Name: "psnr_max", Unit: "dB", Label: "PSNR, largest"},
	{Name: "ssim", Unit: "", Label: "SSIM"},
	{Name: "ssim_within", Unit: "", Label: "SSIM, within the sequence"},
	{Name: "ssim_min", Unit: "", Label: "SSIM, least"},
	{Name: "ssim_max", Unit: "", Label: "SSIM, largest"},
	{Name: "repeated", Unit: "%", Label: "repeated pictures"},
	{Name: "throughput", Unit: "Mbit/s", Label: "received"},
}

// runQuality measures one iteration.
func runQuality(ctx context.Context, q quality, settings experiment.Settings) (*experiment.Outcome, error) {
	n, skipped, err := q.open(ctx, &settings)
	if skipped != nil || err != nil {
		return skipped, err
	}
	p, err := n.perform(ctx, func() (session, error) { return n.begin(ctx) })
	outcome := experiment.NewOutcome()
	if err == nil {
		n.judge(outcome, p)
	}
	// Pictures are drawn after all processes have ended.
	if err := errors.Join(err, n.cast.Close()); err != nil {
		return nil, err
	}
	for _, note := range p.notes {
		outcome.Note("%s", note)
	}
	if err := q.look(ctx, outcome, p, &settings); err != nil {
		return nil, err
	}
	seconds := perSecond(p.list, p.length)
	if from := int(p.stable); from < len(seconds) {
		outcome.Sample("throughput", seconds[from:])
	}
	return outcome, nil
}

// look draws and compares the pictures of the stable state with vollab, and with a VMAF program if available.
func (q *quality) look(ctx context.Context, o *experiment.Outcome, p *performance,
	settings *experiment.Settings) error {
	vollab, err := settings.Program("vollab")
	if err != nil {
		return err
	}
	flags, err := q.compare(p, settings)
	if err != nil {
		return err
	}
	vmaf, missing := visual.FindVMAF(ctx, tools(vollab)...)
	films := settings.File("films")
	if missing == nil {
		flags = append(flags, "--films", films)
		// Two films of 10 s are 800 MB.
		defer func() { _ = os.RemoveAll(films) }()
	}
	text, err := exec.CommandContext(ctx, vollab, flags...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("vollab compare: %w: %s", err, strings.TrimSpace(string(failed.Stderr)))
	}
	if err != nil {
		return err
	}
	pictures, err := parsePictures(text)
	if err != nil {
		return err
	}
	pictures.set(o)
	if missing != nil {
		o.Note("VMAF is not measured: %v. PSNR and SSIM of the luma replace it.", missing)
		return nil
	}
	scores, err := vmaf.Scores(ctx, filepath.Join(films, "captured.y4m"), filepath.Join(films, "shown.y4m"))
	if err != nil {
		return err
	}
	o.Note("VMAF is computed by %s with libvmaf and its default model.", vmaf.Name)
	setSequence(o, "vmaf", scores)
	o.Series("VMAF", "frame", "VMAF", overFrames(scores))
	return nil
}

// tools returns folders for programs in addition to the path: the folder of vollab, and the folder filled by make deps.
func tools(program string) []string {
	folder := filepath.Dir(program)
	return []string{folder, filepath.Join(folder, "..", ".tools", "bin")}
}

// compare returns the flags of vollab compare.
func (q *quality) compare(p *performance, settings *experiment.Settings) ([]string, error) {
	flags := append([]string{"compare"}, q.produce(&p.source, settings)...)
	flags = append(flags, "--width", strconv.Itoa(q.Width), "--height", strconv.Itoa(q.Height), "--every",
		strconv.Itoa(q.Every))
	if file := filepath.Join(settings.Data, "viewports", "loot.csv"); settings.Data != "" {
		if _, err := os.Stat(file); err == nil {
			flags = append(flags, "--viewpoint", file)
		}
	}
	from, until := p.compared(q.FPS)
	flags = append(flags, "--from", from.String(), "--until", until.String())
	if p.prepared == nil {
		return append(flags, "--log", settings.File("frames.jsonl")), nil
	}
	list := settings.File("shown.jsonl")
	if err := writeShown(list, p.sent, p.received, q.FPS); err != nil {
		return nil, err
	}
	return append(flags, "--frames", p.prepared.Path, "--shown", list), nil
}

// compared returns the beginning and the end of the stable state, by the time since the source's first frame. The
// stable state ends with the run, not with the last frame that arrived, so that missing frames at the end count as
// well. For vollab direct, the stable state ends with the last frame that the producer reported, because the log does
// not contain frames that were not encoded at the end.
func (p *performance) compared(fps float64) (from, until time.Duration) {
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	if p.prepared != nil {
		return seconds(p.stable + p.since), seconds(p.length + p.since)
	}
	last := int64(-1)
	for i := range p.frames {
		if f := &p.frames[i]; f.Capture != 0 {
			last = max(last, f.SourceFrame)
		}
	}
	// The times are half a frame interval after the last frame and before the next one.
	return seconds(p.stable + p.since), seconds(min(p.length+p.since, (float64(last)+0.5)/fps))
}

// pictures is the output of vollab compare.
type pictures struct {
	Repeated int `json:"repeated"`
	Frames   []struct {
		Number int64   `json:"number"`
		PSNR   float64 `json:"psnr_db"`
		SSIM   float64 `json:"ssim"`
	} `json:"frames"`
}

// errPictures reports invalid output of vollab compare.
var errPictures = errors.New("pictures compared")

func parsePictures(text []byte) (*pictures, error) {
	var p pictures
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", errPictures, err)
	}
	if len(p.Frames) == 0 || p.Repeated < 0 || p.Repeated > len(p.Frames) {
		return nil, fmt.Errorf("%w: %d of %d repeated, expected one or more frames, and at most as many repeated ones",
			errPictures, p.Repeated, len(p.Frames))
	}
	return &p, nil
}

func (p *pictures) set(o *experiment.Outcome) {
	var psnr, ssim []float64
	for _, f := range p.Frames {
		psnr, ssim = append(psnr, f.PSNR), append(ssim, f.SSIM)
	}
	setSequence(o, "psnr", psnr)
	setSequence(o, "ssim", ssim)
	o.Set("repeated", share(p.Repeated, len(p.Frames)))
	o.Series("PSNR", "frame", "dB", overFrames(psnr))
	o.Series("SSIM", "frame", "SSIM", overFrames(ssim))
}

// setSequence sets the figures of tables 1 and 2 of one measure: mean, deviation within the sequence, smallest and
// largest value.
func setSequence(o *experiment.Outcome, measure string, scores []float64) {
	s := visual.SequenceOf(scores)
	o.Sample(measure, scores)
	o.Set(measure+"_within", s.Deviation)
	o.Set(measure+"_min", s.Min)
	o.Set(measure+"_max", s.Max)
}

func overFrames(scores []float64) (points [][2]float64) {
	for i, s := range scores {
		points = append(points, [2]float64{float64(i), s})
	}
	return points
}

// shownFrame is a line of the list for vollab compare: the quality at which a captured frame was shown.
type shownFrame struct {
	Number  int64 `json:"number"`
	Quality int   `json:"quality"`
}

// shownFrames returns the captured frames that were decoded. The publisher's first frame shows the first prepared
// frame.
func shownFrames(sent, received []frametimes.Record, fps float64) (list []shownFrame) {
	first := int64(math.MaxInt64)
	for i := range sent {
		if at := sent[i].Times[frametimes.Captured]; at != 0 {
			first = min(first, at)
		}
	}
	captured := make(map[int64]int64, len(sent))
	for i := range sent {
		captured[sent[i].Frame] = sent[i].Times[frametimes.Captured]
	}
	for i := range received {
		r := &received[i]
		if at := captured[r.Frame]; at != 0 && r.Has(frametimes.Decoded) {
			list = append(list, shownFrame{int64(math.Round(float64(at-first) / 1e9 * fps)), int(r.Track.Quality)})
		}
	}
	return list
}

// writeShown writes the list.
func writeShown(name string, sent, received []frametimes.Record, fps float64) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(file)
	for _, f := range shownFrames(sent, received, fps) {
		err = errors.Join(err, encoder.Encode(f))
	}
	return errors.Join(err, file.Close())
}
