package vr2gather_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestQualityChoices(t *testing.T) {
	const off, kept = volumetric.QualityOff, vr2gather.QualityKept
	type choices = []vr2gather.QualityChoice
	of := func(client uint32, qualities ...volumetric.Quality) vr2gather.QualityChoice {
		return vr2gather.QualityChoice{Client: client, Qualities: qualities}
	}
	cases := map[string]struct {
		value  string
		want   choices
		unread int
	}{
		"one":                   {"1,0,2", choices{of(1, 0, 2)}, 0},
		"the last tile counts":  {"1,1,1" + strings.Repeat("\x00", 1291), choices{of(1, 1, 1)}, 0},
		"NULs within a buffer":  {"2,1;\x00stale,1,1\x00", choices{of(2, 1)}, 0},
		"two":                   {"1,0,1;2,1,0;", choices{of(1, 0, 1), of(2, 1, 0)}, 0},
		"nobody's id":           {"0,1,1,1", choices{of(0, 1, 1, 1)}, 0},
		"off":                   {"3,-1,-7,1", choices{of(3, off, off, 1)}, 0},
		"spaces":                {" 1 , 0 , 1 ; ", choices{of(1, 0, 1)}, 0},
		"client alone":          {"5", choices{of(5)}, 0},
		"comma at the end":      {"1,2,", choices{of(1, 2)}, 0},
		"empty place":           {"1,,2", choices{of(1, kept, 2)}, 0},
		"unreadable place":      {"1,x,2", choices{of(1, kept, 2)}, 1},
		"cut in a number":       {"1,2,-", choices{of(1, 2, kept)}, 1},
		"unreadable client":     {"a,1;2,1", choices{of(2, 1)}, 1},
		"negative client":       {"-1,1;2,1", choices{of(2, 1)}, 1},
		"quality beyond limits": {"1,99,99999999999", choices{of(1, 99, kept)}, 1},
		"nothing":               {"", nil, 0},
		"zeros only":            {strings.Repeat("\x00", 1296), nil, 0},
		"separators":            {";;, ;", nil, 1},
		"too many tiles":        {"1" + strings.Repeat(",0", volumetric.MaxTiles+1) + ";2,1", choices{of(2, 1)}, 1},
		"far too many tiles":    {"1" + strings.Repeat(",0", 10*volumetric.MaxTiles), nil, 1},
	}
	for name, c := range cases {
		got, unread := vr2gather.ParseQualityChoices(c.value)
		if !reflect.DeepEqual(got, c.want) || unread != c.unread {
			t.Errorf("%s: got %v and %d unread, want %v and %d", name, got, unread, c.want, c.unread)
		}
	}
	full := "1" + strings.Repeat(",0", volumetric.MaxTiles)
	if got, unread := vr2gather.ParseQualityChoices(
		full + ",",
	); unread != 0 || len(got) != 1 ||
		len(got[0].Qualities) != volumetric.MaxTiles {
		t.Errorf("got %v and %d unread, want %d tiles", got, unread, volumetric.MaxTiles)
	}
}

// The original server parses every entry of a message forwarded by a peer and drops the last one,
// with the NULs after it. The semicolon takes the place of the last entry.
func TestQualityChoiceAppend(t *testing.T) {
	text := vr2gather.QualityChoice{
		Client:    1,
		Qualities: []volumetric.Quality{0, volumetric.QualityOff, vr2gather.QualityKept, 2},
	}.Append(
		nil,
	)
	text = vr2gather.QualityChoice{Client: 2}.Append(text)
	if string(text) != "1,0,-1,,2;2;" {
		t.Errorf("got %q", text)
	}
}

func FuzzQualityChoices(f *testing.F) {
	for _, seed := range []string{"1,1,1\x00\x00", "0,2;1,-1,0;", ";;,,;", "4294967295,2147483647,-2147483648", "x,1",
		" 1 , 2 ;\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		choices, unread := vr2gather.ParseQualityChoices(value)
		if unread < 0 || len(choices)+unread > len(value) {
			t.Fatalf("%d choices and %d unread of %d bytes", len(choices), unread, len(value))
		}
		var text []byte
		for _, choice := range choices {
			if len(choice.Qualities) > volumetric.MaxTiles {
				t.Fatalf("%d tiles", len(choice.Qualities))
			}
			for _, quality := range choice.Qualities {
				if quality < vr2gather.QualityKept {
					t.Fatalf("quality %d", quality)
				}
			}
			text = choice.Append(text)
		}
		again, unread := vr2gather.ParseQualityChoices(string(text))
		// A kept entry at the end of a list is not written as an entry.
		if unread != 0 || fmt.Sprint(trimKept(again)) != fmt.Sprint(trimKept(choices)) {
			t.Fatalf("%q was read as %v, written as %q and read as %v", value, choices, text, again)
		}
	})
}

// trimKept removes kept entries at the end of each list.
func trimKept(choices []vr2gather.QualityChoice) []vr2gather.QualityChoice {
	for i := range choices {
		c := &choices[i]
		for len(c.Qualities) > 0 && c.Qualities[len(c.Qualities)-1] == vr2gather.QualityKept {
			c.Qualities = c.Qualities[:len(c.Qualities)-1]
		}
	}
	return choices
}
