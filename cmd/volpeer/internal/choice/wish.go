// Package choice reads what a person at the terminal wants to see and turns it into choices of the signalling protocol;
// and it measures how long a choice takes until it shows. Nothing in it has goroutines or clocks of its own.
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

// Errors of reading and of matching. They are wrapped with what was read and what was expected.
var (
	ErrSyntax  = errors.New("cannot read")
	ErrNoMatch = errors.New("nothing matches")
)

// Wish is a quality as people write it: auto, off, a name, a number, or several with commas between for publications of
// descriptions.
type Wish struct {
	auto  bool
	terms []string // none is off
}

// Auto and Off are the wishes without a quality.
var (
	Auto = Wish{auto: true}
	Off  = Wish{}
)

// IsAuto tells whether the wish leaves everything to the server.
func (w Wish) IsAuto() bool { return w.auto }

// maxTerms is the number of qualities that a publication may have.
const maxTerms = volumetric.MaxQualities

// ParseWish reads a wish. Whether a name or number exists is only known with a publication at hand.
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
			return Wish{}, fmt.Errorf("%w quality %.32q: expected auto, off, a name, a number from 0, or a list of these with commas", ErrSyntax, text)
		}
	}
	return Wish{terms: terms}, nil
}

// String writes the wish as ParseWish reads it.
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

// Selection is the wish in terms of a publication's qualities, or an error around ErrNoMatch.
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

// find looks for a name first, then takes the term for a number.
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
