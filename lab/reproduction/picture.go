package reproduction

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/report"
	"github.com/volsfu/volsfu/lab/plot"
)

// Picture is a plot of our results in a file beside the page.
type Picture struct {
	// File is the name of the file, 001-sfu-fig3-stages.svg for plot stages of sfu-fig3 in paper 001.
	File  string `json:"file"`
	Title string `json:"title"`
	// Hash is the SHA-256 of the file in hexadecimal digits.
	Hash string `json:"sha256"`

	// svg is the content of the file, nil if the picture was read from the content of a page.
	svg []byte
}

// draw draws the plots of an item. A plot without data, or of an experiment without a result, has no picture.
func (c *Compared) draw(results map[string]*experiment.Result) error {
	for _, p := range c.Plots {
		result := results[p.Run]
		if result == nil {
			continue
		}
		drawn, err := p.find(result.Experiment)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		err = report.Draw(result, drawn, &b)
		if errors.Is(err, plot.ErrEmpty) {
			continue
		}
		if err != nil {
			return fmt.Errorf("experiment %s, plot %s: %w", p.Run, p.Name, err)
		}
		c.Pictures = append(c.Pictures, Picture{File: fmt.Sprintf("%s-%s-%s.svg", c.Paper, p.Run, p.Name),
			Title: drawn.Title, Hash: hashOf(b.Bytes()), svg: b.Bytes()})
	}
	return nil
}

// hashOf returns a SHA-256 in hexadecimal digits.
func hashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// writePictures writes the pictures of all items to a folder.
func (r *Reproduction) writePictures(folder string) (failed error) {
	for i := range r.Items {
		for _, p := range r.Items[i].Pictures {
			failed = errors.Join(failed, os.WriteFile(filepath.Join(folder, p.File), p.svg, 0o644))
		}
	}
	return failed
}

// checkPictures checks that the pictures of a paper in a folder are those of the content.
func (r *Reproduction) checkPictures(folder string) error {
	known := make(map[string]bool)
	for i := range r.Items {
		for _, p := range r.Items[i].Pictures {
			svg, err := os.ReadFile(filepath.Join(folder, p.File))
			if err != nil {
				return err
			}
			if hashOf(svg) != p.Hash {
				return fmt.Errorf("paper %s: %w: %s", r.Paper, ErrPage, p.File)
			}
			known[p.File] = true
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, r.Paper+"-*.svg"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if file := filepath.Base(name); !known[file] {
			return fmt.Errorf("paper %s: %w: the page does not have %s", r.Paper, ErrPage, file)
		}
	}
	return nil
}
