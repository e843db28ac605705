package vr2gather

import (
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// QualityKept is the entry of a QualityChoice for a tile whose quality does not change. On the wire
// the entry is empty or unreadable.
const QualityKept volumetric.Quality = -2

// QualityChoice contains the quality that a receiver requests for each tile of a publisher. A
// message contains any number of choices:
//
//	CLIENT,QUALITY OF TILE 0,QUALITY OF TILE 1,…;CLIENT,…
type QualityChoice struct {
	// Client is the publisher's id. No publisher has id 0; VR2Gather always sends 0, whichever
	// publisher is meant.
	Client uint32
	// Qualities contains one entry per tile in the message, at most volumetric.MaxTiles:
	// volumetric.QualityOff, a quality of 0 or more, or QualityKept. Qualities that the publisher
	// does not have are returned, too.
	Qualities []volumetric.Quality
}

// ParseQualityChoices parses the value of a quality message, or the text of a control datagram. ParseQualityChoices
// returns everything that can be parsed: a message may name some publishers and some tiles only, and end in NULs and
// spaces. unread counts the entries of tiles that could not be parsed, and the choices whose client is not a number or
// that name more tiles than a publication may have. Every negative number is volumetric.QualityOff.
func ParseQualityChoices(value string) (choices []QualityChoice, unread int) {
	for decision := range strings.SplitSeq(clean(value), ";") {
		if strings.TrimSpace(decision) == "" {
			continue
		}
		id, rest, _ := strings.Cut(decision, ",")
		client, err := parseNumber(id)
		if err != nil || strings.Count(rest, ",") > volumetric.MaxTiles {
			unread++
			continue
		}
		choice := QualityChoice{Client: client}
		// Some writers end a list with a comma, after which nothing follows.
		if rest = strings.TrimSuffix(strings.TrimSpace(rest), ","); rest != "" {
			unread += choice.parse(rest)
		}
		if len(choice.Qualities) > volumetric.MaxTiles {
			unread++
			continue
		}
		choices = append(choices, choice)
	}
	return choices, unread
}

// parse parses the entries of the tiles and returns the number of entries that could not be parsed.
func (c *QualityChoice) parse(fields string) (unread int) {
	for field := range strings.SplitSeq(fields, ",") {
		quality := QualityKept
		if field = strings.TrimSpace(field); field != "" {
			n, err := strconv.ParseInt(field, 10, 32)
			switch {
			case err != nil:
				unread++
			case n < 0:
				quality = volumetric.QualityOff
			default:
				quality = volumetric.Quality(n)
			}
		}
		c.Qualities = append(c.Qualities, quality)
	}
	return unread
}

// Append appends the choice to dst, followed by a semicolon. Without the semicolon the original
// server loses the last tile. Choices may be concatenated.
func (c QualityChoice) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, uint64(c.Client), 10)
	for _, quality := range c.Qualities {
		dst = append(dst, ',')
		if quality != QualityKept {
			dst = strconv.AppendInt(dst, int64(quality), 10)
		}
	}
	return append(dst, ';')
}
