package guest

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/e2ee"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestFlat(t *testing.T) {
	ref := volumetric.PublicationRef{Participant: "alice", Publication: "object"}
	track := volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: ref, Tile: 3}, Quality: 2}
	pose := client.Pose{Position: [3]float64{1, 2, 3}, Scale: 1, Priority: 1, Boxes: make([]volumetric.BoundingBox, 1)}
	off := volumetric.QualityOff
	tests := []struct {
		event client.Event
		want  Event
		json  string
	}{
		{client.Connected{}, Event{Kind: Connected, Tile: -1, Quality: off, Description: off}, ""},
		{
			client.Interrupted{Err: errors.New("broken")},
			Event{Kind: Interrupted, Text: "broken", Tile: -1, Quality: off, Description: off},
			"",
		},
		{client.Resumed{}, Event{Kind: Resumed, Tile: -1, Quality: off, Description: off}, ""},
		{
			client.Closing{Code: signal.CodeDraining, Message: "tonight", Grace: time.Second},
			Event{
				Kind:        Closing,
				Text:        "draining: tonight",
				Delay:       time.Second,
				Tile:        -1,
				Quality:     off,
				Description: off,
			}, "",
		},
		{
			client.ParticipantJoined{Participant: signal.Participant{Identity: "alice"}},
			Event{
				Kind:        ParticipantJoined,
				Participant: "alice",
				Tile:        -1,
				Quality:     off,
				Description: off,
			}, `{"identity":"alice","publications":[]}`,
		},
		{
			client.ParticipantLeft{Identity: "alice", Reason: "left"},
			Event{
				Kind:        ParticipantLeft,
				Participant: "alice",
				Text:        "left",
				Tile:        -1,
				Quality:     off,
				Description: off,
			}, "",
		},
		{
			client.Published{Participant: "alice", Publication: object(1, 1)},
			Event{
				Kind:        Published,
				Participant: "alice",
				Publication: "object",
				Tile:        -1,
				Quality:     off,
				Description: off,
			},
			`{"name":"object","kind":"video","mode":"alternatives",` +
				`"codec":{"mime_type":"video/volumetric","clock_rate":90000},"frame_rate":30,` +
				`"tiles":[{"box":{"min":[0,0,0],"max":[0,0,0]}}],"qualities":[{}]}`,
		},
		{
			client.Unpublished{Publication: ref},
			Event{
				Kind:        Unpublished,
				Participant: "alice",
				Publication: "object",
				Tile:        -1,
				Quality:     off,
				Description: off,
			}, "",
		},
		{
			client.Sending{Track: track, Quality: 1, Reason: signal.ReasonChoice, Delay: time.Millisecond},
			Event{
				Kind: Sending, Participant: "alice", Publication: "object", Tile: 3, Quality: 1, Description: 2,
				Text: "choice", Delay: time.Millisecond,
			}, "",
		},
		{
			client.Wanted{Publication: "object", Tiles: [][]volumetric.Quality{{0, 1}, {}}, Parity: 0.25},
			Event{Kind: Wanted, Publication: "object", Tile: -1, Quality: off, Description: off},
			`{"publication":"object","tiles":[[0,1],[]],"parity":0.25}`,
		},
		{
			client.Uplink{Estimate: 9, GaveUp: []signal.OwnTrack{{Publication: "object", Tile: 1, Quality: 2}}},
			Event{
				Kind:        Uplink,
				Estimate:    9,
				Tile:        -1,
				Quality:     off,
				Description: off,
			}, `{"gave_up":[{"publication":"object","tile":1,"quality":2}]}`,
		},
		{
			client.PoseChanged{Publication: ref, Pose: pose},
			Event{
				Kind:        PoseChanged,
				Participant: "alice",
				Publication: "object",
				Pose:        pose,
				Tile:        -1,
				Quality:     off,
				Description: off,
			},
			`{"boxes":[{"min":[0,0,0],"max":[0,0,0]}]}`,
		},
		{
			client.Bandwidth{Estimate: 1, Allocated: 2, Wanted: 3},
			Event{Kind: Bandwidth, Estimate: 1, Allocated: 2, Wanted: 3, Tile: -1, Quality: off, Description: off}, "",
		},
		{
			client.Refused{
				Track: volumetric.TrackRef{TileRef: volumetric.TileRef{PublicationRef: ref, Tile: 3}, Quality: 2},
				Err:   e2ee.ErrWrongKey,
			},
			Event{
				Kind: Refused, Participant: "alice", Publication: "object", Tile: 3, Quality: 2, Description: off,
				Text: "wrong key",
			}, "",
		},
		{
			client.AttributesChanged{Participant: "alice", Attributes: map[string]string{"color": "red"}},
			Event{Kind: Attributes, Participant: "alice", Tile: -1, Quality: off, Description: off}, `{"color":"red"}`,
		},
		{
			client.MetadataChanged{Metadata: map[string]string{"topic": "chess"}},
			Event{Kind: Metadata, Tile: -1, Quality: off, Description: off}, `{"topic":"chess"}`,
		},
		{
			client.Muted{Publication: ref, Operator: true},
			Event{
				Kind: Muted, Participant: "alice", Publication: "object", Tile: -1, Quality: off, Description: off,
			}, `{"own":false,"operator":true}`,
		},
		{
			client.PermissionsChanged{Permissions: signal.Permissions{Data: true}},
			Event{Kind: Permissions, Tile: -1, Quality: off, Description: off},
			`{"publish":false,"subscribe":false,"data":true}`,
		},
		{
			client.Recording{Active: true},
			Event{Kind: Recording, Tile: -1, Quality: off, Description: off}, `{"active":true}`,
		},
		{
			client.Moved{URL: "wss://b"},
			Event{Kind: Moved, Text: "wss://b", Tile: -1, Quality: off, Description: off}, "",
		},
		{
			client.Audience{Count: 400},
			Event{Kind: Audience, Tile: -1, Quality: off, Description: off}, `{"count":400}`,
		},
	}
	seen := make(map[Kind]bool)
	for _, test := range tests {
		got := flat(test.event)
		if string(got.JSON) != test.json || len(got.JSON) > 0 && !json.Valid(got.JSON) {
			t.Errorf("%T: JSON is %s, expected %s", test.event, got.JSON, test.json)
		}
		got.JSON = nil
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%T: got %+v, expected %+v", test.event, got, test.want)
		}
		seen[got.Kind] = true
	}
	if len(seen) != Kinds {
		t.Errorf("%d kinds of event came, expected all of %d", len(seen), Kinds)
	}
}
