package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/pkg/signal"
)

// ErrPath is wrapped with the line of a camera path that is invalid.
var ErrPath = errors.New("invalid camera path")

// Path is a camera path: views at increasing times, at least one. A Path does not change.
type Path struct{ stops []stop }

// stop has a time and the numbers of a view as ParseView takes them: position, yaw and pitch in degrees.
type stop struct {
	at      time.Duration
	numbers [5]float64
}

// maxStops bounds a path: an hour with ten views per second.
const maxStops = 36_000

// ReadPath reads a camera path. Every line has the time in seconds and a view: SECONDS X,Y,Z,YAW,PITCH, as ParseView
// takes the view. Empty lines and lines that begin with # are ignored. Errors wrap ErrPath or are those of the reader.
func ReadPath(r io.Reader) (*Path, error) {
	p := &Path{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		time, view, _ := strings.Cut(line, " ")
		s, err := parseStop(time, strings.TrimSpace(view))
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: line %d: %w", ErrPath, n, err)
		case len(p.stops) > 0 && s.at <= p.stops[len(p.stops)-1].at:
			return nil, fmt.Errorf("%w: line %d: %v is not after the time of the view before", ErrPath, n, s.at)
		case len(p.stops) == maxStops:
			return nil, fmt.Errorf("%w: line %d: more than %d views", ErrPath, n, maxStops)
		}
		p.stops = append(p.stops, s)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(p.stops) == 0 {
		return nil, fmt.Errorf("%w: no view, expected lines SECONDS X,Y,Z,YAW,PITCH", ErrPath)
	}
	return p, nil
}

// maxPathTime is the longest time of a path: a day.
const maxPathTime = 86_400

func parseStop(seconds, view string) (stop, error) {
	at, err := strconv.ParseFloat(seconds, 64)
	if err != nil || !(at >= 0 && at <= maxPathTime) {
		return stop{}, fmt.Errorf("the time is %.20q, expected 0 to %d seconds", seconds, maxPathTime)
	}
	numbers, err := parseNumbers(view)
	return stop{time.Duration(at * float64(time.Second)), numbers}, err
}

// At returns the view at a time, interpolated between the views before and after. The yaw takes the shorter way.
func (p *Path) At(elapsed time.Duration) View {
	next, found := slices.BinarySearchFunc(p.stops, elapsed,
		func(s stop, at time.Duration) int { return int(s.at - at) })
	switch {
	case found:
		return viewOf(p.stops[next].numbers)
	case next == 0:
		return viewOf(p.stops[0].numbers)
	case next == len(p.stops):
		return viewOf(p.stops[next-1].numbers)
	}
	from, to := p.stops[next-1], p.stops[next]
	share := float64(elapsed-from.at) / float64(to.at-from.at)
	numbers := from.numbers
	for i := range numbers {
		difference := to.numbers[i] - from.numbers[i]
		if i == 3 {
			difference = math.Remainder(difference, 360)
		}
		numbers[i] += share * difference
	}
	return viewOf(numbers)
}

// parseNumbers parses the numbers of a view: three for the position, and optionally yaw and pitch.
func parseNumbers(text string) (numbers [5]float64, err error) {
	words := strings.Split(text, ",")
	if len(words) < 3 || len(words) > 5 {
		return numbers, fmt.Errorf("%w, got %.32q", ErrView, text)
	}
	for i, word := range words {
		if numbers[i], err = strconv.ParseFloat(strings.TrimSpace(word), 64); err != nil ||
			!(math.Abs(numbers[i]) <= signal.MaxCoordinate) {
			return numbers, fmt.Errorf("%w, got %.32q", ErrView, text)
		}
	}
	return numbers, nil
}
