package vr2gather

import (
	"strconv"
	"strings"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// QualityKept stands in a QualityChoice for a tile whose quality stays as it is. It is not on the wire: there the place is empty, or unreadable.
const QualityKept volumetric.Quality = -2

// QualityChoice says which quality of each tile of a publisher a receiver wants. A message holds any number of them:
//
//	CLIENT,QUALITY OF TILE 0,QUALITY OF TILE 1,…;CLIENT,…
type QualityChoice struct {
	// Client is the publisher's id. 0 is nobody's: VR2Gather sends it whoever is meant.
	Client uint32
	// Qualities holds one entry per tile, as many as the message names, at most volumetric.MaxTiles: volumetric.QualityOff, a quality of 0 or
	// more, or QualityKept. Qualities that the publisher does not have are passed on.
	Qualities []volumetric.Quality
}

// ParseQualityChoices reads the value of a quality message, or the text of a control datagram. It always gives what can be read: a message may name some
// publishers and some tiles only, and end in NULs and spaces. Unread counts what could not be read: places of tiles, and whole choices whose
// client is not a number or which name more tiles than a publication may have. Any number below 0 is volumetric.QualityOff.
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
		// Some writers end a list with a comma: nothing is meant behind it.
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

// parse reads the places of the tiles and returns how many of them could not be read.
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

// Append appends the choice to dst, with a semicolon behind it, without which the original server loses the last tile. Choices follow each other.
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
