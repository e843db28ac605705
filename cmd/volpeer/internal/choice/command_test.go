package choice

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestParse(t *testing.T) {
	quality := func(participant, publication string, tile int, wish Wish) Command {
		return Command{Verb: VerbQuality, Target: Target{participant, publication, tile}, Wish: wish}
	}
	tests := []struct {
		line string
		want Command
	}{
		{"", Command{}},
		{"  \t ", Command{}},
		{"stats", Command{Verb: VerbStats}},
		{"help", Command{Verb: VerbHelp}},
		{" quit ", Command{Verb: VerbQuit}},
		{"auto", quality("", "", AllTiles, Auto)},
		{"off", quality("", "", AllTiles, Off)},
		{"off body", quality("", "body", AllTiles, Off)},
		{"off alice/body 3", quality("alice", "body", 3, Off)},
		{"quality 2", quality("", "", AllTiles, Wish{terms: []string{"2"}})},
		{"quality body 2", quality("", "body", AllTiles, Wish{terms: []string{"2"}})},
		{"quality 1 high", quality("", "", 1, Wish{terms: []string{"high"}})},
		{"quality desk 0 low,high", quality("", "desk", 0, Wish{terms: []string{"low", "high"}})},
		{"quality alice/ auto", quality("alice", "", AllTiles, Auto)},
		{"q -1", quality("", "", AllTiles, Off)},
	}
	for _, test := range tests {
		got, err := Parse(test.line)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: expected %+v, got %+v, %v", test.line, test.want, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct{ line, want string }{
		{"quality", "expected a quality"},
		{"quality body x 2", `tile "x"`},
		{"quality body -1 2", `tile "-1"`},
		{"quality body 256 2", "expected 0 to 255"},
		{"quality a b c d", "3 words"},
		{"quality body ,", "expected auto, off"},
		{"quality body 1,auto", "expected auto, off"},
		{"quality body -2", "expected auto, off"},
		{"faster", `command "faster"`},
		{"quit now", "the command has no arguments"},
		{strings.Repeat("x", 5000), "5000 bytes"},
		{"quality " + strings.Repeat("0,", 70) + "1", "at most 64"},
	}
	for _, test := range tests {
		got, err := Parse(test.line)
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: expected an error with %q, got %+v, %v", test.line, test.want, got, err)
		}
	}
}

// room is alice with a body of two tiles at three qualities, a desk of descriptions and a voice, and bob with a body of
// one quality.
func room() []signal.Participant {
	body := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Tiles:     make([]volumetric.Tile, 2),
		Qualities: []volumetric.QualityLevel{{Name: "low"}, {Name: "mid"}, {Name: "1"}},
	}
	desk := volumetric.Publication{
		Name: "desk", Kind: volumetric.KindVideo, Mode: volumetric.ModeDescriptions,
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 2),
	}
	voice := volumetric.Publication{Name: "voice", Kind: volumetric.KindAudio, Tiles: make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1)}
	plain := volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Tiles: make([]volumetric.Tile, 1), Qualities: make([]volumetric.QualityLevel, 1),
	}
	return []signal.Participant{
		{Identity: "alice", Publications: []volumetric.Publication{body, desk, voice}},
		{Identity: "bob", Publications: []volumetric.Publication{plain}},
	}
}

func TestResolve(t *testing.T) {
	tests := []struct{ line, want string }{
		{"auto", `alice/body "auto"; alice/desk "auto"; bob/body "auto"`},
		{"off body", `alice/body -1; bob/body -1`},
		{"quality mid", `alice/body 1`},
		{"quality 0", `alice/body 0; alice/desk 0; bob/body 0`},
		{"quality body 1", `alice/body 2`}, // a name comes before a number
		{"quality 1 low", `alice/body:1 0`},
		{"quality desk 1,0,1", `alice/desk [0,1]`},
		{"quality bob/body 0 0", `bob/body:0 0`},
	}
	for _, test := range tests {
		command, err := Parse(test.line)
		if err != nil {
			t.Fatalf("%q: %v", test.line, err)
		}
		choices, err := Resolve(command.Target, command.Wish, room())
		if got := describe(t, choices); err != nil || got != test.want {
			t.Errorf("%q: expected %s, got %s, %v", test.line, test.want, got, err)
		}
	}
}

func describe(t *testing.T, choices []signal.Choice) string {
	t.Helper()
	var parts []string
	for _, c := range choices {
		text := c.PublicationRef.String()
		if c.Tile != nil {
			text += ":" + string(rune('0'+*c.Tile))
		}
		quality, err := c.Quality.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, text+" "+string(quality))
	}
	return strings.Join(parts, "; ")
}

func TestResolveErrors(t *testing.T) {
	tests := []struct{ line, want string }{
		{"off chair", `no participant publishes "chair"`},
		{"off carol/body", `no participant publishes "body" of "carol"`},
		{"off voice", `no participant publishes "voice"`},
		{"quality body 7 low", "tiles 0 to 1, got 7"},
		{"quality alice/body best", `no quality "best", expected one of 0 low, 1 mid, 2 1`},
		{"quality bob/body 1", `no quality "1", expected one of 0`},
		{"quality alice/body 0,1", "one quality of a tile at a time"},
	}
	for _, test := range tests {
		command, err := Parse(test.line)
		if err != nil {
			t.Fatalf("%q: %v", test.line, err)
		}
		choices, err := Resolve(command.Target, command.Wish, room())
		if !errors.Is(err, ErrNoMatch) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: expected an error with %q, got %v, %v", test.line, test.want, choices, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"quality body 2", "quality 1 high", "auto", "off alice/body 0", "stats", "quit",
		"q a/b/c 7 0,1,x", "quality / off"} {
		f.Add(seed)
	}
	participants := room()
	f.Fuzz(func(t *testing.T, line string) {
		command, err := Parse(line)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Errorf("%q: %v is not around ErrSyntax", line, err)
			}
			return
		}
		if command.Verb != VerbQuality {
			return
		}
		if again, err := ParseWish(command.Wish.String()); err != nil || !reflect.DeepEqual(again, command.Wish) {
			t.Errorf("%q: wish %q reads %+v, %v", line, command.Wish, again, err)
		}
		choices, err := Resolve(command.Target, command.Wish, participants)
		if (err == nil) != (len(choices) > 0) {
			t.Errorf("%q: %d choices and error %v", line, len(choices), err)
		}
	})
}
