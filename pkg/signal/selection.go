package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Selection is what a receiver wants of a tile: in JSON "auto", one quality (-1 is off), or a list of qualities (ModeDescriptions).
type Selection struct {
	// Auto leaves it to the server; the rest is then empty.
	Auto bool
	// Qualities are the wanted ones in ascending order; none is off.
	Qualities []volumetric.Quality
}

// Auto leaves the quality to the server.
func Auto() Selection { return Selection{Auto: true} }

// Only wants one quality; QualityOff wants nothing.
func Only(q volumetric.Quality) Selection {
	if q < 0 {
		return Selection{}
	}
	return Selection{Qualities: []volumetric.Quality{q}}
}

// Wants tells whether the selection names the quality.
func (s Selection) Wants(q volumetric.Quality) bool { return slices.Contains(s.Qualities, q) }

// MarshalJSON writes the shortest of the three forms.
func (s Selection) MarshalJSON() ([]byte, error) {
	switch {
	case s.Auto:
		return []byte(`"auto"`), nil
	case len(s.Qualities) == 0:
		return []byte(`-1`), nil
	case len(s.Qualities) == 1:
		return json.Marshal(s.Qualities[0])
	default:
		return json.Marshal(s.Qualities)
	}
}

// errSelection says what a selection may look like.
var errSelection = errors.New(`quality: expected "auto", -1, a quality, or a list of qualities`)

// UnmarshalJSON reads any of the three forms. Qualities come out ascending and once each.
func (s *Selection) UnmarshalJSON(data []byte) error {
	if string(data) == `"auto"` {
		*s = Auto()
		return nil
	}
	// Pointers tell null, which encoding/json would pass over, from a number.
	var one *volumetric.Quality
	if err := json.Unmarshal(data, &one); err == nil && one != nil && *one >= volumetric.QualityOff {
		*s = Only(*one)
		return nil
	}
	var many []*volumetric.Quality
	if err := json.Unmarshal(data, &many); err != nil || many == nil || len(many) > volumetric.MaxQualities {
		return fmt.Errorf("%w, got %.32s", errSelection, data)
	}
	qualities := make([]volumetric.Quality, 0, len(many))
	for _, q := range many {
		if q == nil || *q < 0 {
			return fmt.Errorf("%w, got %.32s", errSelection, data)
		}
		qualities = append(qualities, *q)
	}
	if len(qualities) == 0 {
		*s = Selection{}
		return nil
	}
	slices.Sort(qualities)
	*s = Selection{Qualities: slices.Clip(slices.Compact(qualities))}
	return nil
}

// UnmarshalJSON reads a choice; one that does not say which quality is wrong, not off.
func (c *Choice) UnmarshalJSON(data []byte) error {
	var read struct {
		volumetric.PublicationRef
		Tile    *int       `json:"tile"`
		Quality *Selection `json:"quality"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if read.Quality == nil {
		return fmt.Errorf("%w, got nothing", errSelection)
	}
	*c = Choice{PublicationRef: read.PublicationRef, Tile: read.Tile, Quality: *read.Quality}
	return nil
}
