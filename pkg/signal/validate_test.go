package signal

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", volumetric.MaxNameLength+1)
	join := func(change func(*Join)) Request {
		m := &Join{Version: Version, Room: "lab", Identity: "ada", Publications: []volumetric.Publication{body()}}
		change(m)
		return m
	}
	publish := func(change func(*volumetric.Publication)) Request {
		m := &Publish{Publication: body()}
		change(&m.Publication)
		return m
	}
	choose := func(change func(*Choice)) Request {
		c := Choice{PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: "body"}, Quality: Only(1)}
		change(&c)
		return &SetQuality{Choices: []Choice{c}}
	}
	number := func(n int) *int { return &n }
	tests := []struct {
		name    string
		request Request
		// code is empty where the request is valid.
		code Code
	}{
		{"join", join(func(*Join) {}), ""},
		{"join of names that the token gives", join(func(m *Join) { m.Room, m.Identity = "", "" }), ""},
		{"join of version 0", join(func(m *Join) { m.Version = 0 }), CodeVersion},
		{"join of version 2", join(func(m *Join) { m.Version = 2 }), CodeVersion},
		{"long room", join(func(m *Join) { m.Room = long }), CodeInvalid},
		{"identity with a line break", join(func(m *Join) { m.Identity = "a\nb" }), CodeInvalid},
		{"deadline 20", join(func(m *Join) { m.DeadlineMS = 20 }), ""},
		{"deadline 2000", join(func(m *Join) { m.DeadlineMS = 2000 }), ""},
		{"deadline 19", join(func(m *Join) { m.DeadlineMS = 19 }), CodeInvalid},
		{"deadline 2001", join(func(m *Join) { m.DeadlineMS = 2001 }), CodeInvalid},
		{"deadline -1", join(func(m *Join) { m.DeadlineMS = -1 }), CodeInvalid},
		{"deadline that overflows", join(func(m *Join) { m.DeadlineMS = math.MaxInt }), CodeInvalid},
		{"two of one name", join(func(m *Join) { m.Publications = append(m.Publications, body()) }), CodeExists},
		{"too many publications", join(func(m *Join) { m.Publications = make([]volumetric.Publication, MaxPublications+1) }), CodeInvalid},
		{"join with a bad publication", join(func(m *Join) { m.Publications[0].Kind = "smell" }), CodeInvalid},
		{"resume", join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s", Secret: "x"} }), ""},
		{"resume without secret", join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s"} }), CodeInvalid},
		{"resume without session", join(func(m *Join) { m.Resume = &ResumeRequest{Secret: "x"} }), CodeInvalid},
		{"long secret", join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s", Secret: strings.Repeat("x", 257)} }), CodeInvalid},

		{"publish", publish(func(*volumetric.Publication) {}), ""},
		{"H264", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/H264" }), ""},
		{"an unknown codec", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/x-vendor.cloud+v2" }), ""},
		{"letter case", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "VIDEO/Volumetric" }), ""},
		{"no name", publish(func(p *volumetric.Publication) { p.Name = "" }), CodeInvalid},
		{"line break in a media type", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/x\r\na=candidate:1" }), CodeInvalid},
		{"media type without a subtype", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/" }), CodeInvalid},
		{"line break in parameters", publish(func(p *volumetric.Publication) { p.Codec.Format = "a=1\r\nb=2" }), CodeInvalid},
		{"long parameters", publish(func(p *volumetric.Publication) { p.Codec.Format = strings.Repeat("x", MaxFormatLength+1) }), CodeInvalid},
		{"no tiles", publish(func(p *volumetric.Publication) { p.Tiles = nil }), CodeInvalid},
		{"long label", publish(func(p *volumetric.Publication) { p.Tiles[1].Label = long }), CodeInvalid},
		{"box inside out", publish(func(p *volumetric.Publication) { p.Tiles[1].Box.Max[2] = -1 }), CodeInvalid},
		{"quality name with a control character", publish(func(p *volumetric.Publication) { p.Qualities[0].Name = "\x00" }), CodeInvalid},
		{"negative bitrate", publish(func(p *volumetric.Publication) { p.Qualities[0].Bitrate = -1 }), CodeInvalid},

		{"unpublish", &Unpublish{Publication: "body"}, ""},
		{"unpublish nothing", &Unpublish{}, CodeInvalid},
		{"answer", &Answer{Offer: 1, SDP: "v=0"}, ""},
		{"answer to a negative offer", &Answer{Offer: -1, SDP: "v=0"}, CodeInvalid},
		{"answer without description", &Answer{Offer: 1}, CodeInvalid},
		{"candidate", &Candidate{Candidate: "candidate:1", MID: "0"}, ""},
		{"end of candidates", &Candidate{}, ""},
		{"long candidate", &Candidate{Candidate: strings.Repeat("x", MaxCandidateLength+1)}, CodeInvalid},
		{"candidate of a long mid", &Candidate{MID: strings.Repeat("x", MaxMIDLength+1)}, CodeInvalid},
		{"candidate of a negative line", &Candidate{LineIndex: -1}, CodeInvalid},
		{"candidate of a line far out", &Candidate{LineIndex: MaxSlots}, CodeInvalid},

		{"choice", choose(func(*Choice) {}), ""},
		{"choice of no participant", choose(func(c *Choice) { c.Participant = "" }), CodeInvalid},
		{"choice of no publication", choose(func(c *Choice) { c.Publication = "" }), CodeInvalid},
		{"choice of a tile", choose(func(c *Choice) { c.Tile = number(volumetric.MaxTiles - 1) }), ""},
		{"choice of a negative tile", choose(func(c *Choice) { c.Tile = number(-1) }), CodeInvalid},
		{"choice of a tile far out", choose(func(c *Choice) { c.Tile = number(volumetric.MaxTiles) }), CodeInvalid},
		{"choice of auto", choose(func(c *Choice) { c.Quality = Auto() }), ""},
		{"choice of off", choose(func(c *Choice) { c.Quality = Only(volumetric.QualityOff) }), ""},
		{"choice of a quality far out", choose(func(c *Choice) { c.Quality = Only(volumetric.MaxQualities) }), CodeInvalid},
		{"no choices", &SetQuality{Choices: []Choice{}}, ""},
		{"choices missing", &SetQuality{}, CodeInvalid},
		{"too many choices", &SetQuality{Choices: make([]Choice, MaxChoices+1)}, CodeInvalid},

		{"acknowledge", &Acknowledge{Slots: []SlotGeneration{{MID: "1", Generation: 1}}}, ""},
		{"acknowledge nothing", &Acknowledge{Slots: []SlotGeneration{}}, ""},
		{"slots missing", &Acknowledge{}, CodeInvalid},
		{"slot without mid", &Acknowledge{Slots: []SlotGeneration{{Generation: 1}}}, CodeInvalid},
		{"too many slots", &Acknowledge{Slots: make([]SlotGeneration, MaxSlots+1)}, CodeInvalid},
		{"time", &Time{T0: -1}, ""},
		{"leave", &Leave{}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.request.Head().ID = "9"
			err := test.request.Validate()
			if test.code == "" {
				if err != nil {
					t.Fatalf("got %v, expected it to be valid", err)
				}
				return
			}
			var reply *Error
			if !errors.As(err, &reply) || reply.Code != test.code || reply.ID != "9" || reply.Message == "" {
				t.Fatalf("got %#v, expected code %q for id 9", err, test.code)
			}
		})
	}
}

// TestValidationAgreesWithSchema: what Validate accepts keeps to the schema.
func TestValidationAgreesWithSchema(t *testing.T) {
	for _, request := range []Request{
		&Join{Version: Version, Publications: []volumetric.Publication{body(), voice()}, DeadlineMS: 20},
		&Join{Version: Version, Room: strings.Repeat("é", 64), DeadlineMS: 2000},
		&Publish{Publication: voice()},
		&SetQuality{Choices: []Choice{}},
		&Candidate{},
	} {
		if err := request.Validate(); err != nil {
			t.Error(err)
		}
		data, err := Encode(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := conforms(t, "ClientMessage", data); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{
		`{"type":"join","version":2,"receive":true}`,
		`{"type":"join","version":1,"receive":true,"deadline_ms":5}`,
		`{"type":"answer","offer":1,"sdp":""}`,
		`{"type":"set_quality","choices":[{"participant":"a","publication":"b","quality":64}]}`,
		`{"type":"set_quality","choices":[{"participant":"a","publication":"b","tile":256,"quality":1}]}`,
		`{"type":"unpublish","publication":""}`,
	} {
		if conforms(t, "ClientMessage", []byte(text)) == nil {
			t.Errorf("%s keeps to the schema", text)
		}
		m, err := DecodeFromClient([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if m.(Request).Validate() == nil {
			t.Errorf("%s is valid", text)
		}
	}
}
