package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// body returns a typical publication: two tiles, two qualities.
func body() volumetric.Publication {
	return volumetric.Publication{
		Name:      "body",
		Kind:      volumetric.KindVideo,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000, Format: "draco=1"},
		FrameRate: 30,
		Tiles: []volumetric.Tile{
			{Label: "front", Box: volumetric.BoundingBox{Min: [3]float32{-0.5, 0, 0}, Max: [3]float32{0.5, 1.8, 0.4}}},
			{Label: "back", Box: volumetric.BoundingBox{Min: [3]float32{-0.5, 0, -0.4}, Max: [3]float32{0.5, 1.8, 0}}},
		},
		Qualities: []volumetric.QualityLevel{{Name: "low", Bitrate: 4e6}, {Name: "high", Bitrate: 20e6}},
	}
}

func voice() volumetric.Publication {
	return volumetric.Publication{
		Name:      "voice",
		Kind:      volumetric.KindAudio,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2},
		Tiles:     []volumetric.Tile{{}},
		Qualities: []volumetric.QualityLevel{{Bitrate: 64e3}},
	}
}

// foreign returns a publication of VR2Gather's frames.
func foreign() volumetric.Publication {
	p := body()
	p.Codec.Format, p.VR2Gather = "codec=cwi0", true
	return p
}

// samples returns one message of every type with every field set.
func samples() []Message {
	tile, quality := 1, volumetric.Quality(0)
	ref := volumetric.PublicationRef{Participant: "ada", Publication: "body"}
	slot := SlotGeneration{MID: "7", Generation: 3}
	header := Header{ID: "42"}
	return []Message{
		&Join{
			Header: header, Version: Version, Room: "lab", Identity: "ada",
			Publications: []volumetric.Publication{body(), voice()},
			Receive:      true, DeadlineMS: 250, BitrateLimits: BitrateLimits{Max: 50e6, Min: 1e6, Start: 10e6},
			Pauses: true,
			Resume: &ResumeRequest{Session: "s1", Secret: "a secret", NewConnection: true},
		},
		&Publish{Header: header, Publication: body()},
		&Unpublish{Header: header, Publication: "body"},
		&Answer{Header: header, Offer: 2, SDP: "v=0\r\n"},
		&Candidate{
			Header:    header,
			Candidate: "candidate:1 1 udp 2130706431 192.0.2.1 7882 typ host",
			MID:       "0",
			LineIndex: 1,
		},
		&SetQuality{Header: header, Choices: []Choice{
			{PublicationRef: ref, Quality: Auto()},
			{PublicationRef: ref, Tile: &tile, Quality: Only(1)},
			{PublicationRef: ref, Tile: &tile, Quality: Only(volumetric.QualityOff)},
			{PublicationRef: ref, Tile: &tile, Quality: Selection{Qualities: []volumetric.Quality{0, 2}}},
		}},
		&Acknowledge{Header: header, Slots: []SlotGeneration{slot}},
		&Viewpoint{
			Header: header, At: 1_800_000_000_000_000, Position: Vector{0.5, 1.6, 2},
			Orientation: Rotation{0, 0.6, 0, 0.8}, FOV: 60, Aspect: 1.5,
		},
		&Pose{
			Header: header, Participant: "ada", Publication: "body", Position: Vector{-1, 0, 3},
			Orientation: Rotation{0, 0, 0, 1}, Scale: 2,
			Boxes: []volumetric.BoundingBox{body().Tiles[0].Box, body().Tiles[1].Box}, Priority: 3,
		},
		&Arrange{
			Header: header,
			Objects: []Placement{
				{PublicationRef: ref, Position: Vector{1, 0, -2}, Orientation: Rotation{0, 1, 0, 0}, Scale: 1.5},
			},
		},
		&SetLimits{Header: header, BitrateLimits: BitrateLimits{Max: 50e6, Min: 1e6, Start: 10e6}},
		&Uplink{Header: header, Estimate: 12e6, GaveUp: []OwnTrack{{Publication: "body", Tile: 1, Quality: 1}}},
		&Time{Header: header, T0: 1_800_000_000_000_000},
		&Data{
			Header: header, Seq: 7, Participant: "ada", To: []string{"grace"}, Topic: "chat", Text: "hello",
		},
		&Data{Header: header, Lossy: true, Topic: "hand", Binary: []byte{0, 1, 255}},
		&Attributes{Header: header, Participant: "ada", Attributes: map[string]string{"name": "Ada", "old": ""}},
		&Metadata{Header: header, Metadata: map[string]string{"title": "Seminar"}},
		&Mute{Header: header, Participant: "ada", Publication: "voice", Muted: true},
		&Muted{Participant: "ada", MuteState: MuteState{Publication: "voice", Own: true, Operator: true}},
		&SetPermissions{Header: header, Participant: "ada", Publish: new(bool)},
		&PermissionsChanged{Permissions: Permissions{Subscribe: true}},
		&Leave{Header: header},
		&Joined{
			Header: header, Version: Version, Room: "lab", Identity: "ada", Session: "s1", Resumed: true,
			Resume:       ResumeGrant{Secret: "next secret", GraceMS: 15000},
			ICEServers:   []ICEServer{{URLs: []string{"turn:turn.example.org"}, Username: "u", Credential: "c"}},
			Participants: []Participant{{Identity: "grace", Publications: []volumetric.Publication{body()}}},
			Limits: Limits{
				TracksPerPublication: 64,
				Publications:         4,
				FrameBytes:           16 << 20,
				MessageBytes:         MaxMessageBytes,
			},
		},
		&OK{Header: header},
		&Error{Header: header, Code: CodeNotFound, Message: "no such publication"},
		&ParticipantJoined{Participant: Participant{Identity: "grace", Publications: []volumetric.Publication{body()}}},
		&ParticipantLeft{Identity: "grace", Reason: "left"},
		&Published{Participant: "grace", Publication: voice()},
		&Published{Participant: "linus", Publication: foreign()},
		&Unpublished{PublicationRef: ref},
		&Recording{Active: true},
		&Offer{Offer: 2, SDP: "v=0\r\n", Media: []Media{
			{
				MID:         "0",
				Role:        RolePublish,
				Publication: "body",
				Tile:        1,
				Quality:     &quality,
			}, {MID: "7", Role: RoleSlot}, {MID: "8", Role: RoleAudio},
		}},
		&Assignments{Assignments: []Assignment{
			{MID: "7", Generation: 3, Track: &volumetric.TileRef{PublicationRef: ref, Tile: 1}, Quality: &quality},
		}},
		&Sending{Slots: []SlotQuality{{SlotGeneration: slot, Quality: 1, Reason: ReasonChoice}}},
		&Delivery{Dropped: []SlotDrops{{SlotGeneration: slot, Frames: 2}}},
		&Wanted{
			Publications: []WantedPublication{
				{Publication: "body", Tiles: [][]volumetric.Quality{{0, 1}, {}}, Parity: 0.125},
			},
		},
		&Bandwidth{Estimate: 30e6, Allocated: 24e6, Wanted: 48e6},
		&TimeReply{Header: header, T0: 1, T1: 2, T2: 3},
		&Trace{Header: header, FrameTimes: true},
		&FrameTimes{
			Header: header, Host: FrameHostSender, Clock: HostClock{Source: ClockPTP},
			Tracks: []TrackTimes{
				{Publication: "body", Frames: [][]int64{{7, 100, 1795188600000000, 0, -1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}},
			},
		},
		&FrameTimes{
			Header: header, Host: FrameHostServer,
			Clock: HostClock{Source: ClockEstimated, Offset: -5e9, Bound: 1000, Uncertainty: 100, Disagreement: -7},
			Tracks: []TrackTimes{
				{
					Participant: "ada",
					Publication: "body",
					Tile:        1,
					Quality:     2,
					Frames:      [][]int64{{1, 2, 3, -1, 0, 5, 6, 7, 8, 9, 10}, {2, 2, 3, -1, 0, 5, 6, 7, 8, 9, 10}},
				},
				{Publication: "a \"quoted\" <name>", Frames: [][]int64{}},
			},
			Dropped: 4,
		},
		&FrameTimes{
			Host: FrameHostRelay, Clock: HostClock{Source: ClockEstimated, Offset: 9, Bound: 7, Uncertainty: 3},
			Tracks: []TrackTimes{
				{Participant: "ada", Publication: "body", Frames: [][]int64{{1, 0, 1795188600000000, 12, 8012}}},
			},
		},
		&Closing{Code: CodeDraining, Message: "the server stops", GraceMS: 10000},
		&Moved{
			Header: header, URL: "wss://sfu2.example.org", Ticket: "a ticket", DeadlineMS: 20000, MakeBeforeBreak: true,
		},
		&Audience{Count: 400},
		&Nodes{Nodes: []NodeAddress{{URL: "wss://sfu2.example.org", Region: "eu"}}},
		&Error{Header: header, Code: CodeLimit, Message: "all nodes are full", RetryAfterMS: 1000},
	}
}

func TestRoundTrip(t *testing.T) {
	covered := map[Type]bool{}
	for _, m := range samples() {
		data, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		messageType := m.Head().Type
		covered[messageType] = true
		for _, direction := range []struct {
			name       string
			types      []Type
			decode     func([]byte) (Message, error)
			definition string
		}{
			{"from client", TypesFromClient(), DecodeFromClient, "ClientMessage"},
			{"from server", TypesFromServer(), DecodeFromServer, "ServerMessage"},
		} {
			got, err := direction.decode(data)
			if !slices.Contains(direction.types, messageType) {
				if !errors.Is(err, ErrUnknownType) {
					t.Errorf("%s %s: error is %v, expected ErrUnknownType", messageType, direction.name, err)
				}
				continue
			}
			if err != nil || !reflect.DeepEqual(got, m) {
				t.Errorf("%s %s: got %#v, %v, expected %#v", messageType, direction.name, got, err, m)
			}
			if err := conforms(t, direction.definition, data); err != nil {
				t.Errorf("%s %s: %v", messageType, direction.name, err)
			}
		}
		if times, ok := m.(*FrameTimes); ok && times.Host != FrameHostSender {
			continue // clients do not send this type
		}
		if request, ok := m.(Request); ok {
			if err := request.Validate(); err != nil {
				t.Errorf("%s: %v", messageType, err)
			}
		}
	}
	for _, messageType := range append(TypesFromClient(), TypesFromServer()...) {
		if !covered[messageType] {
			t.Errorf("no sample of type %q", messageType)
		}
	}
}

func TestClientMessagesAreRequests(t *testing.T) {
	for messageType, blank := range fromClient {
		if _, ok := blank().(Request); !ok {
			t.Errorf("%s: a client sends it, but it is no Request", messageType)
		}
	}
}

// TestPreparedTimesAreTheSame expects that a prepared message equals an unprepared one and is
// encoded only once.
func TestPreparedTimesAreTheSame(t *testing.T) {
	times := func() *FrameTimes {
		return &FrameTimes{
			Host:   FrameHostSender,
			Tracks: []TrackTimes{{Participant: "ada", Publication: "body", Frames: [][]int64{{1, 2, 3}}}},
		}
	}
	want, err := Encode(times())
	if err != nil {
		t.Fatal(err)
	}
	m := times()
	m.Prepare()
	first, err := Encode(m)
	if err != nil || !bytes.Equal(first, want) {
		t.Errorf("prepared it is %s, %v, expected %s", first, err, want)
	}
	if second, _ := Encode(m); &second[0] != &first[0] {
		t.Error("a prepared message was encoded again")
	}
}

// TestEmptyListsAreLists expects empty lists instead of null, because readers in other languages
// iterate without a check.
func TestEmptyListsAreLists(t *testing.T) {
	messages := []Message{
		&Joined{
			Participants: []Participant{{Identity: "ada"}},
			ICEServers:   []ICEServer{{}},
		}, &ParticipantJoined{}, &Offer{}, &Assignments{}, &Sending{},
		&Delivery{}, &SetQuality{}, &Acknowledge{}, &Joined{}, &Uplink{}, &Wanted{}, &FrameTimes{},
		&FrameTimes{Tracks: make([]TrackTimes, 1)},
		&Wanted{
			Publications: []WantedPublication{
				{Publication: "body"},
				{Publication: "desk", Tiles: [][]volumetric.Quality{nil}},
			},
		},
	}
	for _, m := range messages {
		data, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(data, []byte("null")) {
			t.Errorf("null in %s", data)
		}
		if !bytes.Contains(data, []byte("[]")) {
			t.Errorf("no empty list in %s", data)
		}
	}
}

func TestMediaTile(t *testing.T) {
	quality := volumetric.Quality(0)
	for want, media := range map[string]Media{
		`{"mid":"0","role":"publish","publication":"body","quality":0,"tile":0}`: {MID: "0", Role: RolePublish,
			Publication: "body", Quality: &quality},
		`{"mid":"3","role":"publish"}`: {MID: "3", Role: RolePublish},
		`{"mid":"1","role":"slot"}`:    {MID: "1", Role: RoleSlot},
		`{"mid":"2","role":"audio"}`:   {MID: "2", Role: RoleAudio},
	} {
		got, err := json.Marshal(media)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v, expected %s", got, err, want)
		}
	}
}

func TestSelection(t *testing.T) {
	qualities := func(q ...volumetric.Quality) Selection { return Selection{Qualities: q} }
	for _, test := range []struct {
		text string
		want Selection
		// again is the encoded selection if it differs from text.
		again string
	}{
		{`"auto"`, Auto(), ""},
		{`-1`, Only(volumetric.QualityOff), ""},
		{`0`, Only(0), ""},
		{`3`, Only(3), ""},
		{`[0,2]`, qualities(0, 2), ""},
		{`[2, 0, 2]`, qualities(0, 2), `[0,2]`},
		{`[1]`, Only(1), `1`},
		{`[]`, Only(volumetric.QualityOff), `-1`},
	} {
		var got Selection
		if err := json.Unmarshal([]byte(test.text), &got); err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v, expected %+v", test.text, got, err, test.want)
		}
		again := test.again
		if again == "" {
			again = test.text
		}
		if data, err := json.Marshal(test.want); err != nil || string(data) != again {
			t.Errorf("%+v: got %s, %v, expected %s", test.want, data, err, again)
		}
	}
	for _, text := range []string{`null`, `"high"`, `"AUTO"`, `1.5`, `-2`, `true`, `{}`, `[null]`, `[-1]`, `[0,-1]`,
		`["auto"]`, `[[0]]`, `1e30`} {
		var got Selection
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s: got %+v, expected an error", text, got)
		}
	}
	if s := qualities(0, 2); !s.Wants(2) || s.Wants(1) {
		t.Errorf("Wants of %v is wrong", s)
	}
}

func TestDecodeErrors(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       error
		code       Code
		id         string
		// says is part of the error message.
		says string
	}{
		{"empty", ``, ErrMalformed, CodeMalformed, "", ""},
		{"text", `hello`, ErrMalformed, CodeMalformed, "", ""},
		{"null", `null`, ErrMalformed, CodeMalformed, "", "no type"},
		{"list", `[]`, ErrMalformed, CodeMalformed, "", "message is a JSON array, expected an object"},
		{"cut off", `{"type":"join"`, ErrMalformed, CodeMalformed, "", ""},
		{"two", `{"type":"leave"}{"type":"leave"}`, ErrMalformed, CodeMalformed, "", ""},
		{"no type", `{"id":"1"}`, ErrMalformed, CodeMalformed, "", "no type"},
		{"type of a wrong form", `{"type":1}`, ErrMalformed, CodeMalformed, "", "type is a JSON number"},
		{"long id", `{"type":"leave","id":"` + strings.Repeat("x", MaxIDLength+1) + `"}`, ErrMalformed, CodeMalformed,
			"", "id has 129 bytes"},
		{"unknown type", `{"type":"dance","id":"9"}`, ErrUnknownType, CodeUnknownType, "9", `"dance"`},
		{"the server's", `{"type":"joined","id":"9"}`, ErrUnknownType, CodeUnknownType, "9", `"joined"`},
		{"field of a wrong form", `{"type":"join","id":"9","version":"1"}`, ErrInvalid, CodeInvalid, "9",
			"version is a JSON string, expected a whole number"},
		{"number out of range", `{"type":"acknowledge","id":"9","slots":[{"mid":"1","generation":-1}]}`, ErrInvalid,
			CodeInvalid, "9", "generation"},
		{"no quality", `{"type":"set_quality","id":"9","choices":[{"participant":"a","publication":"b"}]}`,
			ErrInvalid, CodeInvalid, "9", "quality"},
		{"half a place", `{"type":"viewpoint","id":"9","position":[1,2]}`, ErrInvalid, CodeInvalid, "9", "3 numbers"},
		{"a place too far", `{"type":"viewpoint","id":"9","position":[1,2,1e400]}`, ErrInvalid, CodeInvalid, "9",
			"3 numbers"},
		{"a rotation that is none", `{"type":"pose","id":"9","orientation":[0,0,null,1]}`, ErrInvalid, CodeInvalid,
			"9", "4 numbers"},
		{"no rotation", `{"type":"pose","id":"9","orientation":null}`, ErrInvalid, CodeInvalid, "9", "4 numbers"},
		{"choice of a wrong form", `{"type":"set_quality","id":"9","choices":[7]}`, ErrInvalid, CodeInvalid, "9",
			"object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, err := DecodeFromClient([]byte(test.text))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("error is %v, expected %v with %q", err, test.want, test.says)
			}
			id := ""
			if m != nil {
				id = m.Head().ID
			}
			if id != test.id {
				t.Errorf("id is %q, expected %q", id, test.id)
			}
			reply := ErrorFor(id, err)
			if reply.Code != test.code || reply.ID != test.id || reply.Message != err.Error() {
				t.Errorf("reply is %+v, expected code %q", reply, test.code)
			}
		})
	}
}

func TestErrorFor(t *testing.T) {
	own := NewError(CodeLimit, "too many")
	wrapped := errors.Join(errors.New("join"), own)
	if got := ErrorFor(
		"7",
		wrapped,
	); got.Code != CodeLimit || got.Message != "too many" || got.ID != "7" ||
		own.ID != "" {
		t.Errorf("got %+v from %+v", got, own)
	}
	if got := ErrorFor(
		"",
		errors.New("open /etc/secret: denied"),
	); got.Code != CodeInternal ||
		strings.Contains(got.Message, "secret") {
		t.Errorf("got %+v, expected an internal error that tells nothing", got)
	}
	if got := own.Error(); got != "limit: too many" {
		t.Errorf("prints as %q", got)
	}
}

func TestCodes(t *testing.T) {
	want := stringConstants(t, ".")["Code"]
	got := make([]string, 0, len(want))
	for _, code := range Codes() {
		got = append(got, string(code))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("Codes() is %v, expected the constants %v", got, want)
	}
	for _, code := range Codes() {
		want := slices.Contains([]Code{"unauthorized", "version", "malformed", "too_large", "rate_limited"}, code)
		if code.Closes() != want {
			t.Errorf("%s.Closes() is %v", code, code.Closes())
		}
	}
}
