package signal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Selection is a receiver's request for a tile. In JSON a selection is "auto", one quality (-1 is
// off), or a list of qualities (ModeDescriptions).
type Selection struct {
	// Auto leaves the decision to the server. Qualities is then empty.
	Auto bool
	// Qualities contains the requested qualities in ascending order. An empty list means off.
	Qualities []volumetric.Quality
}

// Auto returns a selection that leaves the decision to the server.
func Auto() Selection { return Selection{Auto: true} }

// Only returns a selection of one quality, or of nothing for QualityOff.
func Only(q volumetric.Quality) Selection {
	if q < 0 {
		return Selection{}
	}
	return Selection{Qualities: []volumetric.Quality{q}}
}

// Wants reports whether the selection contains quality q.
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

// errSelection describes the valid forms of a selection.
var errSelection = errors.New(`quality: expected "auto", -1, a quality, or a list of qualities`)

// UnmarshalJSON decodes any of the three forms. The resulting qualities are ascending and unique.
func (s *Selection) UnmarshalJSON(data []byte) error {
	if string(data) == `"auto"` {
		*s = Auto()
		return nil
	}
	// Pointers distinguish a number from null, which encoding/json would ignore.
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

// UnmarshalJSON decodes a choice. A choice without a quality is an error, not off.
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
		return fmt.Errorf("%w, but the choice has no quality", errSelection)
	}
	*c = Choice{PublicationRef: read.PublicationRef, Tile: read.Tile, Quality: *read.Quality}
	return nil
}
