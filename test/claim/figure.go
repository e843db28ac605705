package claim

import (
	"encoding/json"
	"fmt"
	"strings"
)

// figureMark precedes a figure in a test's log.
const figureMark = "figure: "

// Figure formats a line for a test's log: figureMark and the line as JSON. Checks of the lab read the log.
func Figure(l Line) string {
	text, err := json.Marshal(l)
	if err != nil {
		// Lines hold texts and finite numbers only.
		panic(fmt.Sprintf("claim: a line that is no JSON: %v", err))
	}
	return figureMark + string(text)
}

// ReadFigure parses a line of a test's log, with the file name that the testing package prepends. ok is false if the
// log line is not a figure.
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
