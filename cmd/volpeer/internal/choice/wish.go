// Package choice parses the quality commands of a user at the terminal and translates the commands into choices of the
// signalling protocol. The package also measures the time from a choice to the first frame of the chosen quality. The
// package has no goroutines and reads no clock.
package choice

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Errors of parsing and of matching. The errors are wrapped with the input and the expected form.
var (
	ErrSyntax  = errors.New("cannot read")
	ErrNoMatch = errors.New("nothing matches")
)

// Wish is a quality as written by users: auto, off, a name, a number, or a comma-separated list for publications in
// volumetric.ModeDescriptions.
type Wish struct {
	auto  bool
	terms []string // empty means off
}

// Auto leaves the quality to the server. Off requests no data.
var (
	Auto = Wish{auto: true}
	Off  = Wish{}
)

// IsAuto reports whether the wish leaves the quality to the server.
func (w Wish) IsAuto() bool { return w.auto }

// maxTerms is the largest number of qualities of a publication.
const maxTerms = volumetric.MaxQualities

// ParseWish parses a wish. Selection checks later whether the names and numbers exist in a publication.
func ParseWish(text string) (Wish, error) {
	switch text {
	case "auto":
		return Auto, nil
	case "off", "-1":
		return Off, nil
	}
	terms := strings.Split(text, ",")
	if len(terms) > maxTerms {
		return Wish{}, fmt.Errorf("%w quality: %d in a list, expected at most %d", ErrSyntax, len(terms), maxTerms)
	}
	for _, term := range terms {
		if term == "" || term == "auto" || term == "off" || strings.HasPrefix(term, "-") {
			return Wish{}, fmt.Errorf(
				"%w quality %.32q: expected auto, off, a name, a number from 0, or a comma-separated list of names "+
					"and numbers",
				ErrSyntax, text)
		}
	}
	return Wish{terms: terms}, nil
}

// String returns the wish in the syntax of ParseWish.
func (w Wish) String() string {
	switch {
	case w.auto:
		return "auto"
	case len(w.terms) == 0:
		return "off"
	default:
		return strings.Join(w.terms, ",")
	}
}

// Selection translates the wish into the qualities of a publication. Errors wrap ErrNoMatch.
func (w Wish) Selection(p *volumetric.Publication) (signal.Selection, error) {
	if w.auto {
		return signal.Auto(), nil
	}
	if p.Mode == volumetric.ModeAlternatives && len(w.terms) > 1 {
		return signal.Selection{}, fmt.Errorf("%w: %q sends one quality of a tile at a time, got the list %.64q",
			ErrNoMatch, p.Name, w)
	}
	var s signal.Selection
	for _, term := range w.terms {
		q, err := find(p, term)
		if err != nil {
			return signal.Selection{}, err
		}
		s.Qualities = append(s.Qualities, q)
	}
	slices.Sort(s.Qualities)
	s.Qualities = slices.Compact(s.Qualities)
	return s, nil
}

// find returns the quality with the name term, or else the quality with that number.
func find(p *volumetric.Publication, term string) (volumetric.Quality, error) {
	for q, level := range p.Qualities {
		if level.Name == term {
			return volumetric.Quality(q), nil
		}
	}
	if q, err := strconv.Atoi(term); err == nil && q >= 0 && q < len(p.Qualities) {
		return volumetric.Quality(q), nil
	}
	var names []string
	for q, level := range p.Qualities {
		names = append(names, strings.TrimSpace(fmt.Sprintf("%d %s", q, level.Name)))
	}
	return 0, fmt.Errorf("%w: %q has no quality %.32q, expected one of %s", ErrNoMatch, p.Name, term,
		strings.Join(names, ", "))
}
