package leaderboard

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"figure": Figure.String, "cell": func(b *Board, entry, name string) string { return b.cell(entry, name) },
	"link": func(b *Board, entry, name string) string { return b.linkCell(entry, name) }, "join": strings.Join,
	"seconds": func(s float64) string { return fmt.Sprintf("%.0f", s) },
}).Parse(pageText))

// String returns the mean with its interval.
func (f Figure) String() string {
	if f.N == 0 {
		return "–"
	}
	if f.Interval == nil || f.Interval.Low == f.Interval.High {
		return short(f.Mean)
	}
	return fmt.Sprintf("%s (%s to %s)", short(f.Mean), short(f.Interval.Low), short(f.Interval.High))
}

// short formats a figure with three significant digits, and at most two decimals.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Row is the line of an entry over some links.
type Row struct {
	Entry                                                        Entry
	Utilisation, OfLink, Latency, Worst, Undecodable, DroppedAll Figure
}

// rows returns the entries over links.
func (b *Board) rows(links []Link) (rows []Row) {
	for _, e := range b.Entries {
		if e.Skipped != "" {
			continue
		}
		of := func(f func(*Cell) float64) Figure {
			return b.over(e.Name, links, func(c *Cell) (float64, bool) { return f(c), true })
		}
		rows = append(rows, Row{Entry: e, Utilisation: of(func(c *Cell) float64 { return c.Utilisation }),
			OfLink:      of(func(c *Cell) float64 { return c.OfLink }),
			Latency:     of(func(c *Cell) float64 { return c.Latency }),
			Undecodable: of(func(c *Cell) float64 { return c.Undecodable }),
			DroppedAll:  of(func(c *Cell) float64 { return c.Dropped })})
	}
	return rows
}

// HeldOut returns the lines over links that were not used to change GCC, Tuned those over the others.
func (b *Board) HeldOut() []Row { return b.rows(b.part(false)) }

// Tuned is described at HeldOut.
func (b *Board) Tuned() []Row { return b.rows(b.part(true)) }

// HeldOutLinks and TunedLinks return the links of the two parts.
func (b *Board) HeldOutLinks() []Link { return b.part(false) }

// TunedLinks is described at HeldOutLinks.
func (b *Board) TunedLinks() []Link { return b.part(true) }

// Compared returns the entries that were run.
func (b *Board) Compared() (run []Entry) {
	for _, e := range b.Entries {
		if e.Skipped == "" {
			run = append(run, e)
		}
	}
	return run
}

// Controllers returns the entries that were run, without the yardsticks.
func (b *Board) Controllers() []Entry {
	return slices.DeleteFunc(b.Compared(), func(e Entry) bool { return e.Yardstick })
}

// Sections returns the cases of RFC 8867 that were run.
func (b *Board) Sections() (run []string) {
	for _, s := range sections {
		for i := range b.Cells {
			if b.Cells[i].Case == s {
				run = append(run, s)
				break
			}
		}
	}
	return run
}

// cell returns the figures of an entry in a case of RFC 8867.
func (b *Board) cell(entry, name string) string {
	of := func(f func(*Cell) (float64, bool)) Figure { return figureOf(b.values(entry, name, f)) }
	all := func(f func(*Cell) float64) Figure {
		return of(func(c *Cell) (float64, bool) { return f(c), true })
	}
	text := all(func(c *Cell) float64 { return c.OfLink }).String() + " %"
	fair := of(func(c *Cell) (float64, bool) {
		if c.OfFair == nil {
			return 0, false
		}
		return *c.OfFair, true
	})
	if fair.N > 0 {
		text = "of fair " + fair.String()
	}
	text += "; " + all(func(c *Cell) float64 { return c.Latency }).String() + " ms; " +
		all(func(c *Cell) float64 { return c.Undecodable }).String() + " %"
	jain := of(func(c *Cell) (float64, bool) {
		if c.Jain == nil {
			return 0, false
		}
		return *c.Jain, true
	})
	if jain.N > 0 {
		text += "; J " + jain.String()
	}
	return text
}

// linkCell returns the mean figures of an entry on a link.
func (b *Board) linkCell(entry, name string) string {
	mean := func(f func(*Cell) float64) string {
		return short(figureOf(b.values(entry, name, func(c *Cell) (float64, bool) { return f(c), true })).Mean)
	}
	return mean(func(c *Cell) float64 { return c.Utilisation }) + "; " +
		mean(func(c *Cell) float64 { return c.Latency }) + "; " + mean(func(c *Cell) float64 { return c.Undecodable })
}

// Page returns the page in Markdown. The page follows from the content alone.
func (b *Board) Page() ([]byte, error) {
	var text bytes.Buffer
	err := page.Execute(&text, b)
	return text.Bytes(), err
}

// WriteJSON writes the content of the board.
func (b *Board) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(b)
}

// The files of a board in a folder.
const (
	pageName    = "leaderboard.md"
	contentName = "leaderboard.json"
	imageFolder = "images"
)

// Write writes the page, its content and its plots to a folder.
func (b *Board) Write(folder string) error {
	text, err := b.Page()
	if err != nil {
		return err
	}
	var content bytes.Buffer
	if err := b.WriteJSON(&content); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(folder, imageFolder), 0o755); err != nil {
		return err
	}
	err = b.writePlots(filepath.Join(folder, imageFolder))
	return errors.Join(err, os.WriteFile(filepath.Join(folder, contentName), content.Bytes(), 0o644),
		os.WriteFile(filepath.Join(folder, pageName), text, 0o644))
}

// ErrPage reports a page that does not follow from its content.
var ErrPage = errors.New("leaderboard.md was changed by hand")

// CheckPage checks that the page in a folder follows from its content.
func CheckPage(folder string) error {
	content, err := os.ReadFile(filepath.Join(folder, contentName))
	if err != nil {
		return err
	}
	var b Board
	if err := json.Unmarshal(content, &b); err != nil {
		return err
	}
	want, err := b.Page()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(folder, pageName))
	if err != nil {
		return err
	}
	if bytes.Equal(got, want) {
		return nil
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	return fmt.Errorf("%w: line %d", ErrPage, 1+bytes.Count(got[:at], []byte("\n")))
}
