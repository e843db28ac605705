package choice

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Help is the help text of the commands.
const Help = `commands:
  quality [[PARTICIPANT/]PUBLICATION] [TILE] QUALITY   QUALITY: auto, off, a name, a number from 0, or a list as 0,2
  auto [[PARTICIPANT/]PUBLICATION] [TILE]              let the server decide
  off [[PARTICIPANT/]PUBLICATION] [TILE]               receive nothing
  stats                                                print the figures so far
  help                                                 print this
  quit                                                 end`

// Verb is the kind of a command.
type Verb uint8

// The verbs. An empty line is VerbNone.
const (
	VerbNone Verb = iota
	VerbQuality
	VerbStats
	VerbHelp
	VerbQuit
)

// AllTiles is the tile number of a Target that covers all tiles.
const AllTiles = -1

// Target selects tiles. An empty name matches every participant or publication.
type Target struct {
	Participant, Publication string
	Tile                     int
}

// Everything selects every tile of every publication.
var Everything = Target{Tile: AllTiles}

// Command is one parsed line. Target and Wish are set for VerbQuality only.
type Command struct {
	Verb   Verb
	Target Target
	Wish   Wish
}

// maxLine is the largest line in bytes: more than two names of maximum length, a tile number and a wish.
const maxLine = 4096

// Parse parses one line. Errors wrap ErrSyntax.
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
		return Command{}, fmt.Errorf("%w %q: the command has no arguments, got %.32q", ErrSyntax, verb, arguments[0])
	}
	return Command{Verb: simple}, nil
}

// parseQuality parses the target of a wish. A single word that is a number selects a tile, any other word a
// publication.
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

// Matches reports whether the target covers the publication.
func (t Target) Matches(ref volumetric.PublicationRef) bool {
	return (t.Participant == "" || t.Participant == ref.Participant) && (t.Publication == "" ||
		t.Publication == ref.Publication)
}

// Resolve translates a wish for a target into choices of the signalling protocol. The result has one choice for each
// published video that the target matches and that has the tile and the qualities. If there is no such publication, the
// error has the reasons and wraps ErrNoMatch.
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
		return nil, fmt.Errorf("%w: no participant publishes %s", ErrNoMatch, target)
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

// String describes the publications of the target in messages to users.
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
