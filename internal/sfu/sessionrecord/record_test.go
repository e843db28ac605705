package sessionrecord

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/subscriber"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// body returns a publication of two tiles in three qualities.
func body() *volumetric.Publication {
	return &volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec: volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		Tiles: []volumetric.Tile{
			{Box: volumetric.BoundingBox{Max: [3]float32{1, 1, 1}}},
			{Box: volumetric.BoundingBox{Min: [3]float32{1, 0, 0}, Max: [3]float32{2, 1, 1}}},
		},
		Qualities: []volumetric.QualityLevel{{Bitrate: 1e6}, {Bitrate: 2e6}, {Bitrate: 4e6}},
	}
}

// fullRecord returns a record with all fields.
func fullRecord() *Record {
	yes, tile, ref := true, 1, volumetric.PublicationRef{Participant: "alice", Publication: "body"}
	c := &Record{
		Join: signal.Join{
			Version: signal.Version, Room: "room", Identity: "alice", Receive: true, ReceiveData: true,
			DataChannel: true, MessageChannel: true, Pauses: true, FrameTimes: true, DeadlineMS: 100,
			Multipath:     &signal.Multipath{Redundancy: signal.RedundancyAll},
			BitrateLimits: signal.BitrateLimits{Max: 5e6, Min: 1e6, Start: 2e6},
			Publications:  []volumetric.Publication{*body()},
		},
		Joined: time.Unix(1_795_188_600, 0), Permissions: signal.SetPermissions{Publish: &yes},
		Attributes:  map[string]string{"name": "Älice <&>"},
		Muted:       []signal.MuteState{{Publication: "body", Own: true, Operator: true}},
		Poses:       []signal.Pose{{Publication: "body", Orientation: signal.Rotation{0, 0, 0, 1}, Scale: 2}},
		Viewpoint:   &signal.Viewpoint{At: 5, Orientation: signal.Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1.5},
		Arrangement: []signal.Placement{{PublicationRef: ref, Orientation: signal.Rotation{0, 0, 0, 1}}},
		Traced:      true, DataReceived: 7, DataSent: 1 << 40,
	}
	choices := subscriber.NewChoices(2)
	choices.SetAll([]signal.Choice{
		{PublicationRef: ref, Quality: signal.Auto()},
		{PublicationRef: ref, Tile: &tile, Quality: signal.Selection{Qualities: []volumetric.Quality{0, 2}}},
	})
	c.Choices = choices.Stored()
	return c
}

// TestRecordIsLossless encodes and decodes a record.
func TestRecordIsLossless(t *testing.T) {
	first, err := json.Marshal(fullRecord())
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Errorf("the record is\n%s, after decoding\n%s", first, second)
	}
	if choices := decoded.AllChoices(); len(choices) != 2 || choices[0].Tile != nil || *choices[1].Tile != 1 {
		t.Errorf("the choices are %+v", choices)
	}
}

// TestInvalidRecords checks that a record has nothing that a client could not have requested.
func TestInvalidRecords(t *testing.T) {
	for name, change := range map[string]func(*Record){
		"version":      func(c *Record) { c.Join.Version = 9 },
		"publication":  func(c *Record) { c.Join.Publications[0].Qualities = nil },
		"choice":       func(c *Record) { c.Choices[0].Participant = "" },
		"viewpoint":    func(c *Record) { c.Viewpoint.FOV = 0 },
		"arrangement":  func(c *Record) { c.Arrangement[0].Publication = "" },
		"muting":       func(c *Record) { c.Muted[0].Publication = "" },
		"pose":         func(c *Record) { c.Poses[0].Orientation = signal.Rotation{} },
		"data message": func(c *Record) { c.DataReceived = -1 },
		"attributes":   func(c *Record) { c.Attributes["x"] = strings.Repeat("x", signal.MaxAttributeBytes) },
	} {
		c := fullRecord()
		change(c)
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(text); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: got %v, expected ErrRecord", name, err)
		}
	}
	for _, text := range []string{"", "{}", "null", "[]", strings.Repeat(" ", MaxRecordBytes) + "{}"} {
		if _, err := Decode([]byte(text)); !errors.Is(err, ErrRecord) {
			t.Errorf("%.10q: got %v, expected ErrRecord", text, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	text, err := json.Marshal(fullRecord())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"join":{"version":1},"choices":[{"participant":"a","publication":"b","tiles":{"-1":3}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Decode(data)
		if err != nil {
			return
		}
		first, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if len(first) > MaxRecordBytes {
			return
		}
		again, err := Decode(first)
		if err != nil {
			t.Fatalf("%v: %s", err, first)
		}
		second, err := json.Marshal(again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Fatalf("%s\nbecomes\n%s", first, second)
		}
	})
}
