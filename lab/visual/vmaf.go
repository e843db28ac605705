package visual

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Errors of VMAF.
var (
	// ErrNoVMAF is returned if no program on this host computes VMAF.
	ErrNoVMAF = errors.New("no program with libvmaf: neither vmaf nor an ffmpeg that has the filter libvmaf")
	// ErrScores is returned if the program's output is not a list of scores.
	ErrScores = errors.New("invalid scores of VMAF")
)

// VMAF is a program that computes Video Multi-Method Assessment Fusion.
type VMAF struct {
	// Path is the path of the program, Name its kind: "vmaf" or "ffmpeg".
	Path, Name string
}

// FindVMAF searches for a program with libvmaf in the given folders, and then on the path.
func FindVMAF(ctx context.Context, folders ...string) (*VMAF, error) {
	for _, name := range []string{"vmaf", "ffmpeg"} {
		for _, path := range candidates(name, folders) {
			v := &VMAF{Path: path, Name: name}
			if v.works(ctx) {
				return v, nil
			}
		}
	}
	return nil, ErrNoVMAF
}

func candidates(name string, folders []string) (paths []string) {
	for _, folder := range folders {
		if path, err := exec.LookPath(filepath.Join(folder, name)); err == nil {
			paths = append(paths, path)
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		paths = append(paths, path)
	}
	return paths
}

// works runs the program to find out whether it supports VMAF.
func (v *VMAF) works(ctx context.Context) bool {
	if v.Name == "vmaf" {
		return exec.CommandContext(ctx, v.Path, "--version").Run() == nil
	}
	filters, err := exec.CommandContext(ctx, v.Path, "-hide_banner", "-filters").Output()
	return err == nil && strings.Contains(string(filters), " libvmaf ")
}

// maxScores bounds the size of the program's output: 64 MiB are about 100,000 frames.
const maxScores = 64 << 20

// Scores compares two films picture by picture. Scores returns a score of 0 to 100 for each picture, by the model
// vmaf_v0.6.1.
func (v *VMAF) Scores(ctx context.Context, reference, shown string) ([]float64, error) {
	folder, err := os.MkdirTemp("", "vmaf")
	if err != nil {
		return nil, fmt.Errorf("VMAF: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	log := filepath.Join(folder, "scores.json")
	var cmd *exec.Cmd
	if v.Name == "vmaf" {
		cmd = exec.CommandContext(ctx, v.Path, "--reference", reference, "--distorted", shown, "--json", "--output",
			log, "--quiet")
	} else {
		cmd = exec.CommandContext(ctx, v.Path, "-hide_banner", "-nostdin", "-loglevel", "error", "-i", shown, "-i",
			reference,
			"-lavfi", "libvmaf=log_fmt=json:log_path="+log, "-f", "null", "-")
	}
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("VMAF: %s: %w; output: %.500s", v.Path, err, said)
	}
	info, err := os.Stat(log)
	if err != nil || info.Size() > maxScores {
		return nil, fmt.Errorf("%w: %s wrote no scores, or more than %d bytes", ErrScores, v.Path, maxScores)
	}
	data, err := os.ReadFile(log)
	if err != nil {
		return nil, fmt.Errorf("VMAF: %w", err)
	}
	return parseScores(data)
}

// parseScores parses the log of libvmaf.
func parseScores(data []byte) ([]float64, error) {
	var log struct {
		Frames []struct {
			Metrics struct {
				VMAF *float64 `json:"vmaf"`
			} `json:"metrics"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(data, &log); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrScores, err)
	}
	if len(log.Frames) == 0 {
		return nil, fmt.Errorf("%w: no frames", ErrScores)
	}
	scores := make([]float64, len(log.Frames))
	for i, f := range log.Frames {
		if f.Metrics.VMAF == nil {
			return nil, fmt.Errorf("%w: frame %d has no score", ErrScores, i)
		}
		scores[i] = *f.Metrics.VMAF
	}
	return scores, nil
}
