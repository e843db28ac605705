package report

import (
	_ "embed"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/lab/experiment"
)

// IndexFile is the page with links to the reports of several experiments.
const IndexFile = "index.html"

//go:embed index.gohtml
var indexText string

var index = template.Must(template.New("index").Parse(indexText))

// indexRow is an experiment on the index.
type indexRow struct {
	*experiment.Result
	Page string
	// Counts are in the order of the columns; bad counts are highlighted.
	Counts []indexCount
}

// indexCount is the number of iterations with a validity.
type indexCount struct {
	Count int
	Bad   bool
}

// columns are the validities in the order of the columns.
var columns = []experiment.Validity{experiment.Valid, experiment.CPUBound, experiment.Invalid, experiment.Skipped,
	experiment.Failed}

func newIndexRow(r *experiment.Result) indexRow {
	row := indexRow{Result: r, Page: filepath.ToSlash(filepath.Join(r.Name, PageFile))}
	counts := r.Counts()
	for _, v := range columns {
		bad := v == experiment.Invalid || v == experiment.Failed
		row.Counts = append(row.Counts, indexCount{counts[v], bad && counts[v] > 0})
	}
	return row
}

// WriteIndex writes the page that links to the reports of several experiments, each in a folder of its name.
func WriteIndex(folder string, results []*experiment.Result) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var rows []indexRow
	seconds := 0.0
	for _, r := range results {
		rows = append(rows, newIndexRow(r))
		seconds += r.Seconds
	}
	return writeFile(filepath.Join(folder, IndexFile), func(w io.Writer) error {
		return index.Execute(w, struct {
			Columns []experiment.Validity
			Rows    []indexRow
			Took    time.Duration
			When    time.Time
		}{columns, rows, time.Duration(seconds * float64(time.Second)).Round(time.Second), time.Now()})
	})
}
