package pipeline

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	// maxProject bounds the median time of making a cloud of depth and colours, in milliseconds.
	maxProject = 4
	// maxPath bounds the median latency from a frame's capture to its decoding at a watcher, in milliseconds.
	maxPath = 60
	// projectImages images are taken from the recording, so that no image stays in the processor's caches; each is
	// projected projectTurns times.
	projectImages, projectTurns = 16, 20
)

// path measures the whole path of a depth camera's images.
type path struct {
	progress lab.Progress
	data     string
	seconds  int
}

// recordingOf returns the folder of a recording of the test data, or the reason of its absence.
func recordingOf(data string, folders ...string) (dir, why string, err error) {
	if dir, err = filepath.Abs(filepath.Join(append([]string{data}, folders...)...)); err != nil {
		return "", "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Sprintf("test data not found at %s; set %s", dir, lab.TestDataVariable), nil
	}
	return dir, "", nil
}

func (p *path) run(ctx context.Context) ([]claim.Line, error) {
	dir, why, err := recordingOf(p.data, "seated-human", "rgbd")
	if err != nil || why != "" {
		return skipped("seated person", why), err
	}
	images, camera, background, err := load(dir, projectImages)
	if err != nil {
		return nil, err
	}
	made, err := project(ctx, images, camera, background)
	if err != nil {
		return nil, err
	}
	lines := []claim.Line{
		claim.AtMost("depth and colours → cloud without background, p50", lab.Milliseconds(made.took.Percentile(0.5)),
			"ms", maxProject),
		claim.Information("depth and colours → cloud without background, p95",
			lab.Milliseconds(made.took.Percentile(0.95)), "ms"),
		claim.Information("pixels of an image", float64(camera.Width*camera.Height), ""),
		claim.Information("points of a cloud", made.points, ""),
	}
	more, err := p.play(ctx, dir, made.took.Percentile(0.5))
	return append(lines, more...), err
}

// load reads images, evenly spread over a recording, and the recording's camera and background.
func load(dir string, count int) ([]depth.Image, depth.Camera, depth.Background, error) {
	var camera depth.Camera
	var background depth.Background
	folder, err := rgbd.OpenFolder(dir)
	if err != nil {
		return nil, camera, background, err
	}
	in := folder.Intrinsics()
	background.Near, background.Far = in.Near, in.Far
	if camera, err = in.Camera("lab"); err != nil {
		return nil, camera, background, err
	}
	images := make([]depth.Image, min(count, folder.Len()))
	for i := range images {
		if err := folder.LoadImage(i*folder.Len()/len(images), &images[i]); err != nil {
			return nil, camera, background, err
		}
	}
	return images, camera, background, nil
}

// projected is the time of making clouds, and their mean number of points.
type projected struct {
	took   lab.Distribution
	points float64
}

// project makes clouds on all processors, after a turn that does not count.
func project(ctx context.Context, images []depth.Image, camera depth.Camera,
	background depth.Background) (made projected, err error) {
	options := depth.DefaultOptions()
	options.Background = background
	projector, err := depth.NewProjector(camera, options)
	if err != nil {
		return made, err
	}
	var cloud pointcloud.Cloud
	for turn := range projectTurns + 1 {
		for i := range images {
			if err := ctx.Err(); err != nil {
				return made, err
			}
			cloud.Reset()
			begun := time.Now()
			if err := projector.Project(&images[i], &cloud); err != nil {
				return made, err
			}
			if turn > 0 {
				made.took.Add(time.Since(begun))
				made.points += float64(cloud.Len()) / float64(projectTurns*len(images))
			}
		}
	}
	return made, nil
}

// play sends the recording to a watcher. Clouds of recordings are made in advance, so the time to make a cloud is added
// to the latency.
func (p *path) play(ctx context.Context, dir string, making time.Duration) ([]claim.Line, error) {
	const name = "the whole path"
	programs, err := findPrograms()
	if err != nil {
		return nil, err
	}
	if why, err := programs.lacksDraco(ctx); err != nil || why != "" {
		return skipped(name, why), err
	}
	p.progress.Say("  the whole path for %d s", p.seconds)
	outcome, err := scene{
		publish: []string{"--source", "rgbd:" + dir, "--fps", fmt.Sprint(rate), "--points", "0", "--tiles", "4",
			"--codec", "draco", "--qualities", "all=100%:11"},
		seconds: p.seconds,
	}.play(ctx, programs)
	if err != nil {
		return nil, err
	}
	whole := outcome.watched.Latency.median() + lab.Milliseconds(making)
	lines := []claim.Line{claim.AtMost(name+", making the cloud and from capture to decoded, p50", whole, "ms",
		maxPath)}
	lines = append(lines, outcome.watched.lines(name+": ")...)
	return append(lines, outcome.published.Encode.lines(name+": cutting and encoding a frame")...), nil
}
