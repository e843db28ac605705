package direct

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/lab/experiment"
)

// Source is a producer's source of clouds.
type Source struct {
	// Spec is the argument of flag --source of vollab direct.
	Spec string
	// Points is the size of the largest frame.
	Points int
	// Says is a sentence for the report.
	Says string
}

// The scenes of experiments.
const (
	// Figure is a moving person with the requested number of points: the animated figure of the test data, or the
	// synthetic figure without test data.
	Figure = "figure"
	// Desk is a single frame of a man at his desk.
	Desk = "desk-human"
)

// deskPoints is the number of points of the man at his desk.
const deskPoints = 271_864

// SourceOf returns the source of a scene with the given number of points. Without test data the synthetic figure is
// used.
func SourceOf(scene string, points int, data string) Source {
	if scene == Desk {
		points = deskPoints
		if folder := filepath.Join(data, "desk-human"); data != "" && exists(folder) {
			return Source{"ply:" + folder, points,
				"desk-human is one frame of " + strconv.Itoa(points) + " points, shown repeatedly."}
		}
		return Source{"synthetic", points,
			"Without the test data the synthetic figure with the same number of points replaces desk-human."}
	}
	if file := filepath.Join(data, "cesium-man", "CesiumMan.glb"); data != "" && exists(file) {
		return Source{"glb:" + file, points,
			"The figure is the animated cesium-man, its surface sampled at " + strconv.Itoa(points) +
				" points, in random order."}
	}
	return Source{"synthetic", points,
		"Without the test data the synthetic figure replaces the animated one, with " + strconv.Itoa(points) +
			" points."}
}

// RealSense is the Settings.Source of depth cameras.
const RealSense = "realsense"

// Cameras returns the depth cameras of the producer's host as a source with at most the given number of points.
func Cameras(points int) Source {
	return Source{RealSense, points, "The source are the RealSense cameras of the producer's host, at most " +
		strconv.Itoa(points) + " points per frame."}
}

// noCamera has parts of the producer's errors without a camera or without its library.
var noCamera = []string{"no RealSense camera", "librealsense2 is not available"}

// NoCamera returns the reason if a producer could not start because its host has no RealSense camera, otherwise "".
func NoCamera(err error) string {
	if !errors.Is(err, ErrMeeting) || !slices.ContainsFunc(noCamera, func(part string) bool {
		return strings.Contains(err.Error(), part)
	}) {
		return ""
	}
	_, reason, _ := strings.Cut(err.Error(), "--source: ")
	reason, _, _ = strings.Cut(reason, "\n")
	return "the producer's host has no camera: " + reason
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// Flags returns the flags of vollab that open the source.
func (s *Source) Flags(fps float64, settings *experiment.Settings) []string {
	return []string{
		"--source", s.Spec, "--points", strconv.Itoa(s.Points), "--fps", strconv.FormatFloat(fps, 'g', -1, 64),
		"--seed", strconv.FormatUint(settings.Seed%1000, 10),
	}
}
