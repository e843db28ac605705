package choice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Help says what may be typed.
const Help = `commands:
  quality [[PARTICIPANT/]PUBLICATION] [TILE] QUALITY   QUALITY: auto, off, a name, a number from 0, or a list as 0,2
  auto [[PARTICIPANT/]PUBLICATION] [TILE]              let the server decide
  off [[PARTICIPANT/]PUBLICATION] [TILE]               receive nothing
  stats                                                print the figures so far
  help                                                 print this
  quit                                                 end`

// Verb is what a command does.
type Verb uint8

// The verbs. VerbNone is an empty line.
const (
	VerbNone Verb = iota
	VerbQuality
	VerbStats
	VerbHelp
	VerbQuit
)

// AllTiles is the tile number of a target that is all tiles.
const AllTiles = -1

// Target is what a choice is for; what is left empty matches all.
type Target struct {
	Participant, Publication string
	Tile                     int
}

// Everything is every tile of every publication.
var Everything = Target{Tile: AllTiles}

// Command is one line that was typed. Target and Wish are for VerbQuality.
type Command struct {
	Verb   Verb
	Target Target
	Wish   Wish
}

// maxLine is more than two names of the longest sort, a number and a wish take.
const maxLine = 4096

// Parse reads one line. Errors are around ErrSyntax.
func Parse(line string) (Command, error) {
	if len(line) > maxLine {
		return Command{}, fmt.Errorf("%w line: %d bytes, expected at most %d", ErrSyntax, len(line), maxLine)
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return Command{Verb: VerbNone}, nil
	}
	verb, arguments := words[0], words[1:]
	switch verb {
	case "quality", "q":
		if len(arguments) == 0 {
			return Command{}, fmt.Errorf("%w %q: expected a quality", ErrSyntax, verb)
		}
		return parseQuality(arguments[:len(arguments)-1], arguments[len(arguments)-1])
	case "auto", "off":
		return parseQuality(arguments, verb)
	}
	simple, ok := map[string]Verb{"stats": VerbStats, "help": VerbHelp, "?": VerbHelp, "quit": VerbQuit,
		"exit": VerbQuit}[verb]
	switch {
	case !ok:
		return Command{}, fmt.Errorf("%w command %.32q: expected quality, auto, off, stats, help or quit", ErrSyntax,
			verb)
	case len(arguments) > 0:
		return Command{}, fmt.Errorf("%w %q: it takes nothing, got %.32q", ErrSyntax, verb, arguments[0])
	}
	return Command{Verb: simple}, nil
}

// parseQuality reads where a wish is for. A single word that is a number is a tile.
func parseQuality(where []string, wish string) (Command, error) {
	c := Command{Verb: VerbQuality, Target: Everything}
	var err error
	if c.Wish, err = ParseWish(wish); err != nil {
		return Command{}, err
	}
	publication, tile := "", ""
	switch len(where) {
	case 0:
	case 1:
		if _, err := strconv.Atoi(where[0]); err == nil {
			tile = where[0]
		} else {
			publication = where[0]
		}
	case 2:
		publication, tile = where[0], where[1]
	default:
		return Command{}, fmt.Errorf("%w target: got %d words, expected a publication, a tile, or both", ErrSyntax,
			len(where))
	}
	if tile != "" {
		n, err := strconv.Atoi(tile)
		if err != nil || n < 0 || n >= volumetric.MaxTiles {
			return Command{}, fmt.Errorf("%w tile %.32q: expected 0 to %d", ErrSyntax, tile, volumetric.MaxTiles-1)
		}
		c.Target.Tile = n
	}
	c.Target.Publication = publication
	if participant, name, ok := strings.Cut(publication, "/"); ok {
		c.Target.Participant, c.Target.Publication = participant, name
	}
	return c, nil
}

// Matches tells whether the target takes in a publication.
func (t Target) Matches(ref volumetric.PublicationRef) bool {
	return (t.Participant == "" || t.Participant == ref.Participant) && (t.Publication == "" ||
		t.Publication == ref.Publication)
}

// Resolve is the command in terms of what is published now: one choice for every publication of video that the target
// matches and that has the tile and the qualities. Where there is none the error says why, around ErrNoMatch.
func Resolve(target Target, wish Wish, participants []signal.Participant) ([]signal.Choice, error) {
	var choices []signal.Choice
	var problems []error
	for _, participant := range participants {
		for i := range participant.Publications {
			p := &participant.Publications[i]
			ref := volumetric.PublicationRef{Participant: participant.Identity, Publication: p.Name}
			if p.Kind != volumetric.KindVideo || !target.Matches(ref) {
				continue
			}
			choice, err := target.choose(ref, p, wish)
			if err != nil {
				problems = append(problems, err)
				continue
			}
			choices = append(choices, choice)
		}
	}
	switch {
	case len(choices) > 0:
		return choices, nil
	case len(problems) > 0:
		return nil, errors.Join(problems...)
	default:
		return nil, fmt.Errorf("%w: nobody publishes %s", ErrNoMatch, target)
	}
}

func (t Target) choose(ref volumetric.PublicationRef, p *volumetric.Publication, wish Wish) (signal.Choice, error) {
	choice := signal.Choice{PublicationRef: ref}
	if t.Tile != AllTiles {
		if t.Tile >= len(p.Tiles) {
			return choice, fmt.Errorf("%w: %s has tiles 0 to %d, got %d", ErrNoMatch, ref, len(p.Tiles)-1, t.Tile)
		}
		tile := t.Tile
		choice.Tile = &tile
	}
	var err error
	choice.Quality, err = wish.Selection(p)
	return choice, err
}

// String names the target's publications for people.
func (t Target) String() string {
	switch {
	case t.Participant != "" && t.Publication != "":
		return fmt.Sprintf("%q of %q", t.Publication, t.Participant)
	case t.Participant != "":
		return fmt.Sprintf("anything as %q", t.Participant)
	case t.Publication != "":
		return strconv.Quote(t.Publication)
	default:
		return "video"
	}
}
