package cwipc

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/sequence"
	"github.com/volsfu/volsfu/pkg/pointcloud"
)

// extension is the extension of dumps.
const extension = ".cwipcdump"

// Recording is a sequence of dumps.
type Recording struct {
	files []string
	heads []Header
}

// Open reads the headers of a file, or of the files named *.cwipcdump of a folder. Errors name the file.
func Open(path string) (*Recording, error) {
	files := []string{path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cwipc recording: %w; expected a file *%s or a folder of such files", err, extension)
	case err != nil:
		return nil, fmt.Errorf("cwipc recording: %w", err)
	case info.IsDir():
		if files, err = sequence.Files(path, extension); err != nil {
			return nil, err
		}
	}
	r := &Recording{files: files}
	for _, name := range files {
		var head Header
		err := reading(name, func(file *bufio.Reader) (err error) {
			head, err = ReadHeader(file)
			return err
		})
		if err != nil {
			return nil, err
		}
		r.heads = append(r.heads, head)
	}
	return r, nil
}

// reading opens a file for a function and adds the file's name to its error.
func reading(name string, read func(*bufio.Reader) error) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := read(bufio.NewReader(file)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Len returns the number of frames.
func (r *Recording) Len() int { return len(r.files) }

// CellSize returns the edge of the cube that a point of the first frame stands for, in metres; 0 if unknown.
func (r *Recording) CellSize() float64 { return r.heads[0].CellSize }

// longest is the maximum duration of a recording and the maximum interval of two frames. Times beyond it are of
// different recordings.
const (
	longest     = 24 * time.Hour
	longestStep = 10 * time.Second
)

// Times returns the capture times of the frames since the first one. ok is false if the frames have no usable times:
// equal or descending ones, as of converted sequences, or steps of more than 10 s.
func (r *Recording) Times() (times []time.Duration, ok bool) {
	for i, head := range r.heads {
		since := head.Milliseconds - r.heads[0].Milliseconds
		if head.Milliseconds < r.heads[0].Milliseconds || since > uint64(longest.Milliseconds()) {
			return nil, false
		}
		at := time.Duration(since) * time.Millisecond
		if i > 0 && (at <= times[i-1] || at-times[i-1] > longestStep) {
			return nil, false
		}
		times = append(times, at)
	}
	return times, len(times) > 1
}

// FrameRate returns the mean number of frames per second by the capture times, or 0 without usable times. Rates near a
// whole number are rounded to it, because the times are whole milliseconds.
func (r *Recording) FrameRate() float64 {
	times, ok := r.Times()
	if !ok {
		return 0
	}
	rate := float64(len(times)-1) / times[len(times)-1].Seconds()
	if whole := math.Round(rate); whole > 0 && math.Abs(rate-whole) < 0.02*whole {
		return whole
	}
	return rate
}

// Load replaces the cloud's points by the points of one frame, in the order of the file. The error names the file.
func (r *Recording) Load(index int, into *pointcloud.Cloud) error {
	return reading(r.files[index], func(file *bufio.Reader) error {
		_, err := Read(file, into)
		return err
	})
}
