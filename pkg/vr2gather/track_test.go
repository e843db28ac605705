package vr2gather_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

func TestTrack(t *testing.T) {
	cases := []struct {
		id, stream string
		want       vr2gather.Track
	}{
		{"video_1_2_1", "6", vr2gather.Track{Kind: volumetric.KindVideo, Client: 1, Tile: 2, Quality: 1}},
		{
			"video_7_3",
			"3",
			vr2gather.Track{Kind: volumetric.KindVideo, Client: 7, Tile: 3, Quality: volumetric.QualityOff},
		},
		{"audio_4294967295", "99", vr2gather.Track{Kind: volumetric.KindAudio, Client: 4294967295}},
		{"video_0_255_63", "507", vr2gather.Track{Kind: volumetric.KindVideo, Tile: 255, Quality: 63}},
	}
	for _, c := range cases {
		got, err := vr2gather.ParseTrack(c.id)
		if err != nil || got != c.want || got.ID() != c.id || got.StreamID(4) != c.stream {
			t.Errorf(
				"%s: got %+v (%s of stream %s) and %v, want %+v of stream %s",
				c.id,
				got,
				got.ID(),
				got.StreamID(4),
				err,
				c.want,
				c.stream,
			)
		}
	}
	for _, id := range []string{"", "video", "video_1", "video_1_2_3_4", "audio", "audio_1_2", "text_1",
		"video_a_1_1", "video_1_-1_0", "video_1_256_0",
		"video_1_0_64", "video__0_0", "audio_4294967296", "video_1_0_", "VIDEO_1_0_0"} {
		if got, err := vr2gather.ParseTrack(id); !errors.Is(err, vr2gather.ErrTrack) || got != (vr2gather.Track{}) {
			t.Errorf("%q: got %+v and %v, want ErrTrack", id, got, err)
		}
	}
}

func FuzzTrack(f *testing.F) {
	for _, seed := range []string{"video_1_2_3", "video_1_2", "audio_9", "video___", "audio_00000000000000000000001"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		track, err := vr2gather.ParseTrack(id)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrTrack) {
				t.Fatal(err)
			}
			return
		}
		if again, err := vr2gather.ParseTrack(track.ID()); err != nil || again != track {
			t.Fatalf("%q was read as %+v, and its id as %+v, %v", id, track, again, err)
		}
	})
}

func TestQuery(t *testing.T) {
	cases := map[string]vr2gather.Query{
		"":                                    {Tiles: 3, Qualities: 1},
		"ntiles=9&nqualities=3&clientid=2":    {Client: 2, Tiles: 9, Qualities: 3},
		"clientid=4294967295&ntiles=256":      {Client: 4294967295, Tiles: 256, Qualities: 1},
		"nqualities=64&extra=1&access_token=": {Tiles: 3, Qualities: 64},
	}
	for text, want := range cases {
		if got, err := vr2gather.ParseQuery(query(t, text), 3); err != nil || got != want {
			t.Errorf("%s: got %+v and %v, want %+v", text, got, err, want)
		}
		if got, err := vr2gather.ParseQuery(query(t, want.String()), 1); err != nil || got != want {
			t.Errorf("%s: got %+v and %v, want %+v", want, got, err, want)
		}
	}
	for _, text := range []string{"ntiles=0", "ntiles=-1", "ntiles=257", "ntiles=99999999999999999999", "ntiles=x",
		"nqualities=0", "nqualities=65",
		"clientid=-1", "clientid=4294967296", "clientid=one"} {
		if got, err := vr2gather.ParseQuery(
			query(t, text),
			1,
		); !errors.Is(err, vr2gather.ErrQuery) ||
			got != (vr2gather.Query{}) {
			t.Errorf("%s: got %+v and %v, want ErrQuery", text, got, err)
		}
	}
}

func query(t *testing.T, text string) url.Values {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"ntiles=9&nqualities=3&clientid=2", "ntiles=1000000000&nqualities=1000000000",
		"clientid=%00", "&&=", "ntiles=+1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		got, err := vr2gather.ParseQuery(values, 1)
		if err != nil {
			if !errors.Is(err, vr2gather.ErrQuery) {
				t.Fatal(err)
			}
			return
		}
		if got.Tiles < 1 || got.Tiles > volumetric.MaxTiles || got.Qualities < 1 ||
			got.Qualities > volumetric.MaxQualities {
			t.Fatalf("%q was read as %+v", text, got)
		}
	})
}
