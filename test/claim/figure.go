package claim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// figureMark stands before a figure in what a test logs.
const figureMark = "figure: "

// Figure writes a line of a report as tests log it, for a check to read: a mark, and the line as JSON.
func Figure(l Line) string {
	text, err := json.Marshal(l)
	if err != nil {
		// Lines hold texts and finite numbers only.
		panic(fmt.Sprintf("claim: a line that is no JSON: %v", err))
	}
	return figureMark + string(text)
}

// ReadFigure reads a line that a test has logged, with the name of the file that the testing package puts before it. It
// is not ok for whatever else tests say.
func ReadFigure(logged string) (l Line, ok bool) {
	_, text, found := strings.Cut(logged, figureMark)
	if !found {
		return l, false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&l); err != nil || l.Name == "" {
		return Line{}, false
	}
	return l, true
}
