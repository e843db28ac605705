package subscriber

import (
	"fmt"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func described(tiles, qualities int, mode volumetric.Mode) *volumetric.Publication {
	return &volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: mode,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, qualities),
	}
}

var alicesBody = volumetric.PublicationRef{Participant: "alice", Publication: "body"}

func choiceOf(tile int, s signal.Selection) signal.Choice {
	c := signal.Choice{PublicationRef: alicesBody, Quality: s}
	if tile >= 0 {
		c.Tile = &tile
	}
	return c
}

func several(q ...volumetric.Quality) signal.Selection { return signal.Selection{Qualities: q} }

func TestLaterChoicesReplaceEarlierOnes(t *testing.T) {
	c := NewChoices(10)
	first, second := volumetric.TileRef{PublicationRef: alicesBody},
		volumetric.TileRef{PublicationRef: alicesBody, Tile: 1}
	expect := func(tile volumetric.TileRef, want volumetric.Quality) {
		t.Helper()
		if got := decide(c.Of(tile), described(2, 3, volumetric.ModeAlternatives), nil); got != want {
			t.Errorf("tile %d: got quality %d, want %d", tile.Tile, got, want)
		}
	}
	expect(first, 2)
	c.SetAll([]signal.Choice{choiceOf(0, signal.Only(0))})
	expect(first, 0)
	expect(second, 2)
	c.SetAll([]signal.Choice{choiceOf(-1, signal.Only(1))})
	expect(first, 1)
	expect(second, 1)
	c.SetAll([]signal.Choice{choiceOf(1, signal.Only(volumetric.QualityOff))})
	expect(first, 1)
	expect(second, volumetric.QualityOff)
	c.SetAll([]signal.Choice{choiceOf(-1, signal.Auto())})
	expect(second, 2)
}

func TestChoicesAreLimited(t *testing.T) {
	c := NewChoices(3)
	for i := range 5 {
		choice := signal.Choice{PublicationRef: volumetric.PublicationRef{Participant: fmt.Sprint(i),
			Publication: "body"}, Quality: signal.Auto()}
		if _, kept := c.SetAll([]signal.Choice{choice}); kept != (i < 3) {
			t.Errorf("choice %d: kept is %v, want %v", i, kept, i < 3)
		}
	}
	again := signal.Choice{PublicationRef: volumetric.PublicationRef{Participant: "0", Publication: "body"},
		Quality: signal.Only(1)}
	if changed, kept := c.SetAll([]signal.Choice{again}); !changed || !kept {
		t.Error("a choice that replaces one was refused")
	}
}

// TestChoicesForAbsentPublicationsAreReplaced fills the limit with choices for publications that do not exist any more.
func TestChoicesForAbsentPublicationsAreReplaced(t *testing.T) {
	c := NewChoices(3)
	of := func(participant int) signal.Choice {
		return signal.Choice{PublicationRef: volumetric.PublicationRef{Participant: fmt.Sprint(participant),
			Publication: "body"}, Quality: signal.Only(0)}
	}
	exists := func(ref volumetric.PublicationRef) bool { return ref.Participant == "0" }
	stored := func(participant int) bool {
		return !c.Of(volumetric.TileRef{PublicationRef: of(participant).PublicationRef}).Auto
	}
	for i := range 5 {
		if _, kept := c.SetAllFor([]signal.Choice{of(i)}, exists); !kept || !stored(i) || !stored(0) {
			t.Errorf("choice %d: kept is %v; expected that it is stored, and that of publication 0 stays", i, kept)
		}
	}
	if stored(1) || stored(2) || !stored(3) {
		t.Error("expected that the third choice beyond publication 0 replaces the first two")
	}
	_, kept := c.SetAllFor([]signal.Choice{of(5), of(6), of(7)}, exists)
	if kept || stored(5) || !stored(3) || !stored(4) {
		t.Errorf("a list beyond the limit: kept is %v, expected a refusal without effect", kept)
	}
}

func TestCheckChoice(t *testing.T) {
	tests := []struct {
		name   string
		choice signal.Choice
		mode   volumetric.Mode
		ok     bool
	}{
		{"whole publication", choiceOf(-1, signal.Only(2)), volumetric.ModeAlternatives, true},
		{"off", choiceOf(1, signal.Only(volumetric.QualityOff)), volumetric.ModeAlternatives, true},
		{"no such tile", choiceOf(2, signal.Auto()), volumetric.ModeAlternatives, false},
		{"no such quality", choiceOf(0, signal.Only(3)), volumetric.ModeAlternatives, false},
		{"two alternatives", choiceOf(0, several(0, 1)), volumetric.ModeAlternatives, false},
		{"two descriptions", choiceOf(0, several(0, 2)), volumetric.ModeDescriptions, true},
	}
	for _, test := range tests {
		if err := CheckChoice(test.choice, described(2, 3, test.mode)); (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	if err := CheckChoice(choiceOf(99, signal.Only(99)), nil); err != nil {
		t.Errorf("a choice for a publication that does not exist yet: got %v", err)
	}
}

func TestDecide(t *testing.T) {
	p := described(1, 3, volumetric.ModeDescriptions)
	one := volumetric.Quality(1)
	tests := []struct {
		name        string
		selection   signal.Selection
		description *volumetric.Quality
		want        volumetric.Quality
	}{
		{"auto is the highest", signal.Auto(), nil, 2},
		{"a quality that the publication does not have any more", signal.Only(7), nil, 2},
		{"off", several(), nil, volumetric.QualityOff},
		{"a description by itself", signal.Auto(), &one, 1},
		{"a wanted description", several(0, 1), &one, 1},
		{"an unwanted description", several(0, 2), &one, volumetric.QualityOff},
	}
	for _, test := range tests {
		if got := decide(test.selection, p, test.description); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
