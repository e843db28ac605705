package bridge

import (
	"fmt"
	"slices"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func cloud(name string, tiles, qualities int) volumetric.Publication {
	return volumetric.Publication{
		Name: name, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives, VR2Gather: true,
		Tiles: make([]volumetric.Tile, tiles), Qualities: make([]volumetric.QualityLevel, qualities),
	}
}

func sound(name string) volumetric.Publication {
	p := cloud(name, 1, 1)
	p.Kind = volumetric.KindAudio
	return p
}

func TestNumbersComeFromNames(t *testing.T) {
	d := NewDirectory(4)
	for _, step := range []struct {
		participant string
		want        uint32
	}{{"3", 3}, {"user-7", 7}, {"other-7", 1000}, {"ada", 1001}, {"4", 1002}, {"0", 1003}, {"99999999999",
		1004}, {"1005", 1005}, {"grace", 1006}} {
		if got := d.Published(step.participant, cloud("body", 1, 1)); !got.Admitted || got.Client != step.want {
			t.Errorf("%s is %+v, expected number %d", step.participant, got, step.want)
		}
	}
	d.Left("user-7")
	if d.Present(7) || !d.Present(3) {
		t.Error("expected 3 to be here, and 7 no more")
	}
	if got := d.Published("7", cloud("body", 1, 1)); got.Client != 7 {
		t.Errorf("a number that is free again is not given: %+v", got)
	}
}

func TestOnlyVR2GatherFormatsAreAdmitted(t *testing.T) {
	d := NewDirectory(0)
	draco, layers := cloud("body", 1, 1), cloud("body", 1, 3)
	draco.VR2Gather, layers.Mode = false, volumetric.ModeDescriptions
	for _, p := range []volumetric.Publication{draco, layers} {
		if got := d.Published("1", p); got.Admitted || got.Reason == "" {
			t.Errorf("%+v is carried", p)
		}
	}
	if !d.Published("1", cloud("body", 2, 3)).Admitted || !d.Published("1", sound("voice")).Admitted ||
		d.Published("1", cloud("desk", 1, 1)).Admitted {
		t.Error("expected one cloud and one sound of each publisher")
	}
	body, desk := volumetric.PublicationRef{Participant: "1",
		Publication: "body"}, volumetric.PublicationRef{Participant: "1", Publication: "desk"}
	if _, ok := d.Client(desk); ok {
		t.Error("what is not carried has a client")
	}
	if n, ok := d.Client(body); !ok || n != 1 {
		t.Errorf("the publisher of %v is %d", body, n)
	}
	d.Unpublished(body)
	if _, ok := d.Client(body); ok || !d.Published("1", cloud("desk", 1, 1)).Admitted {
		t.Error("expected another cloud in place of the one that ended")
	}
	for i := range 2 * maxClients {
		d.Published(fmt.Sprint("user", i), cloud("body", 1, 1))
	}
	if len(d.members) != maxClients || len(d.names) != maxClients {
		t.Errorf("%d members have %d numbers, expected %d", len(d.members), len(d.names), maxClients)
	}
}

func TestChoices(t *testing.T) {
	for text, test := range map[string]struct {
		want    []string
		ignored int
	}{
		"1,1,1;":              {[]string{"1/body/0 1", "1/body/1 1"}, 0},
		"1,1,2;2,-1,0,1\x00 ": {[]string{"1/body/0 1", "1/body/1 2", "2/body/0 -1", "2/body/1 0", "2/body/2 1"}, 0},
		"0,1,1":               {[]string{"1/body/0 1", "1/body/1 1", "3/body/0 1", "3/body/1 1"}, 0},
		"0,1,1,1,1":           {nil, 1},
		"1,,2":                {[]string{"1/body/1 2"}, 0},
		"1,7,2,0":             {[]string{"1/body/1 2"}, 2},
		"9,1;4,1;x,1":         {nil, 3},
		"":                    {nil, 0},
	} {
		d := NewDirectory(5)
		d.Published("1", cloud("body", 2, 3))
		d.Published("2", cloud("body", 3, 3))
		d.Published("3", cloud("body", 2, 3))
		d.Published("4", sound("voice"))
		choices, ignored := d.Choices(text)
		var got []string
		for _, c := range choices {
			quality := volumetric.QualityOff
			if len(c.Quality.Qualities) == 1 {
				quality = c.Quality.Qualities[0]
			}
			got = append(got, fmt.Sprintf("%v/%d %d", c.PublicationRef, *c.Tile, quality))
		}
		if !slices.Equal(got, test.want) || ignored != test.ignored {
			t.Errorf("%q: %q, %d ignored; expected %q, %d", text, got, ignored, test.want, test.ignored)
		}
		if again, _ := d.Choices(text); len(again) != 0 {
			t.Errorf("%q: what was asked for is asked for again: %v", text, again)
		}
		d.Refused(choices)
		if again, _ := d.Choices(text); len(again) != len(choices) {
			t.Errorf("%q: %d of %d are asked for again after the server refused", text, len(again), len(choices))
		}
	}
}

// TestForeignPublications checks that with transcoding, points of other codecs and Opus are admitted, and nothing else.
func TestForeignPublications(t *testing.T) {
	points := cloud("body", 1, 1)
	points.VR2Gather, points.Codec.MIMEType = false, volumetric.MIMEVolumetric
	film := points
	film.Codec.MIMEType = "video/H264"
	music := sound("voice")
	music.VR2Gather, music.Codec.MIMEType = false, volumetric.MIMEOpus
	noise := music
	noise.Codec.MIMEType = "audio/PCMU"
	described := points
	described.Mode = volumetric.ModeDescriptions
	for _, test := range []struct {
		publication volumetric.Publication
		carried     bool
	}{{points, true}, {film, false}, {music, true}, {noise, false}, {described, false}} {
		if NewDirectory(1).Published("ada", test.publication).Admitted {
			t.Errorf("%+v is carried though nothing is transcoded", test.publication)
		}
		d := NewDirectory(1)
		d.AdmitForeign()
		if got := d.Published("ada", test.publication); got.Admitted != test.carried {
			t.Errorf("%+v is carried: %+v", test.publication, got)
		}
	}
}
