package signal

import (
	"errors"
	"maps"
	"math"
	"strconv"
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
		c := Choice{
			PublicationRef: volumetric.PublicationRef{Participant: "ada", Publication: "body"},
			Quality:        Only(1),
		}
		change(&c)
		return &SetQuality{Choices: []Choice{c}}
	}
	see := func(change func(*Viewpoint)) Request {
		m := &Viewpoint{Orientation: Rotation{0, 0, 0, 1}, FOV: 60, Aspect: 1.5}
		change(m)
		return m
	}
	stand := func(change func(*Pose)) Request {
		m := &Pose{Publication: "body", Orientation: Rotation{0, 0, 0, 1}}
		change(m)
		return m
	}
	times := func(change func(*FrameTimes)) Request {
		frame := make([]int64, FrameTimesHead+SenderStamps)
		m := &FrameTimes{
			Host: FrameHostSender, Clock: HostClock{Source: ClockEstimated, Bound: 5},
			Tracks: []TrackTimes{{Publication: "body", Frames: [][]int64{frame}}},
		}
		change(m)
		return m
	}
	picture := func(p *volumetric.Publication) {
		p.Codec.MIMEType = volumetric.MIMEVP8
		p.Tiles = make([]volumetric.Tile, 1)
		p.Qualities = []volumetric.QualityLevel{{Width: 320, Height: 180, FrameRate: 15}}
		p.Picture = &volumetric.Picture{Source: volumetric.SourceCamera}
	}
	number := func(n int) *int { return &n }
	tests := []struct {
		name    string
		request Request
		// code is empty if the request is valid.
		code Code
	}{
		{"picture", publish(picture), ""},
		{"picture without sizes", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Qualities = make([]volumetric.QualityLevel, 2)
		}), ""},
		{"picture from nowhere", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Picture.Source = "mirror"
		}), CodeInvalid},
		{"picture of two tiles", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Tiles = make([]volumetric.Tile, 2)
		}), CodeInvalid},
		{"picture of descriptions", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Mode = volumetric.ModeDescriptions
		}), CodeInvalid},
		{"picture of points", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Codec.MIMEType = volumetric.MIMEVolumetric
		}), CodeInvalid},
		{"picture without height", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Qualities[0].Height = 0
		}), CodeInvalid},
		{"picture that is too wide", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Qualities[0].Width = volumetric.MaxPictureSide + 1
		}), CodeInvalid},
		{"picture that is too fast", publish(func(p *volumetric.Publication) {
			picture(p)
			p.Qualities[0].FrameRate = 1001
		}), CodeInvalid},
		{"size without a picture", publish(func(p *volumetric.Publication) {
			p.Qualities[0].Width, p.Qualities[0].Height = 2, 2
		}), CodeInvalid},
		{"join", join(func(*Join) {}), ""},
		{"join of names that the token gives", join(func(m *Join) { m.Room, m.Identity = "", "" }), ""},
		{"join of version 0", join(func(m *Join) { m.Version = 0 }), CodeVersion},
		{"join of version 2", join(func(m *Join) { m.Version = 2 }), CodeVersion},
		{"long room", join(func(m *Join) { m.Room = long }), CodeInvalid},
		{"identity with a line break", join(func(m *Join) { m.Identity = "a\nb" }), CodeInvalid},
		{"room of one dot", join(func(m *Join) { m.Room = "." }), CodeInvalid},
		{"identity of two dots", join(func(m *Join) { m.Identity = ".." }), CodeInvalid},
		{"identity of three dots", join(func(m *Join) { m.Identity = "..." }), ""},
		{"deadline 20", join(func(m *Join) { m.DeadlineMS = 20 }), ""},
		{"deadline 2000", join(func(m *Join) { m.DeadlineMS = 2000 }), ""},
		{"deadline 19", join(func(m *Join) { m.DeadlineMS = 19 }), CodeInvalid},
		{"deadline 2001", join(func(m *Join) { m.DeadlineMS = 2001 }), CodeInvalid},
		{"deadline -1", join(func(m *Join) { m.DeadlineMS = -1 }), CodeInvalid},
		{"deadline that overflows", join(func(m *Join) { m.DeadlineMS = math.MaxInt }), CodeInvalid},
		{"two of one name", join(func(m *Join) { m.Publications = append(m.Publications, body()) }), CodeExists},
		{
			"too many publications",
			join(func(m *Join) { m.Publications = make([]volumetric.Publication, MaxPublications+1) }),
			CodeInvalid,
		},
		{"join with a bad publication", join(func(m *Join) { m.Publications[0].Kind = "smell" }), CodeInvalid},
		{"multipath", join(func(m *Join) { m.Multipath = &Multipath{} }), ""},
		{"multipath off", join(func(m *Join) { m.Multipath = &Multipath{Redundancy: RedundancyOff} }), ""},
		{"multipath of no kind", join(func(m *Join) { m.Multipath = &Multipath{Redundancy: "some"} }), CodeInvalid},
		{"resume", join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s", Secret: "x"} }), ""},
		{"resume without secret", join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s"} }), CodeInvalid},
		{"resume without session", join(func(m *Join) { m.Resume = &ResumeRequest{Secret: "x"} }), CodeInvalid},
		{
			"long secret",
			join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s", Secret: strings.Repeat("x", 1025)} }),
			CodeInvalid,
		},
		{
			"a ticket as secret",
			join(func(m *Join) { m.Resume = &ResumeRequest{Session: "s", Secret: strings.Repeat("x", 1024)} }),
			"",
		},
		{
			"long session",
			join(func(m *Join) { m.Resume = &ResumeRequest{Session: strings.Repeat("x", 257), Secret: "s"} }),
			CodeInvalid,
		},
		{"moves", join(func(m *Join) { m.Moves, m.Region, m.Ticket = true, "eu", "a ticket" }), ""},
		{"long region", join(func(m *Join) { m.Region = strings.Repeat("x", 65) }), CodeInvalid},
		{"long ticket", join(func(m *Join) { m.Ticket = strings.Repeat("x", 1025) }), CodeInvalid},

		{"publish", publish(func(*volumetric.Publication) {}), ""},
		{"H264", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/H264" }), ""},
		{
			"an unknown codec",
			publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/x-vendor.cloud+v2" }),
			"",
		},
		{"letter case", publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "VIDEO/Volumetric" }), ""},
		{"no name", publish(func(p *volumetric.Publication) { p.Name = "" }), CodeInvalid},
		{
			"line break in a media type",
			publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/x\r\na=candidate:1" }),
			CodeInvalid,
		},
		{
			"media type without a subtype",
			publish(func(p *volumetric.Publication) { p.Codec.MIMEType = "video/" }),
			CodeInvalid,
		},
		{
			"line break in parameters",
			publish(func(p *volumetric.Publication) { p.Codec.Format = "a=1\r\nb=2" }),
			CodeInvalid,
		},
		{
			"long parameters",
			publish(func(p *volumetric.Publication) { p.Codec.Format = strings.Repeat("x", MaxFormatLength+1) }),
			CodeInvalid,
		},
		{"no tiles", publish(func(p *volumetric.Publication) { p.Tiles = nil }), CodeInvalid},
		{"long label", publish(func(p *volumetric.Publication) { p.Tiles[1].Label = long }), CodeInvalid},
		{"box inside out", publish(func(p *volumetric.Publication) { p.Tiles[1].Box.Max[2] = -1 }), CodeInvalid},
		{
			"quality name with a control character",
			publish(func(p *volumetric.Publication) { p.Qualities[0].Name = "\x00" }),
			CodeInvalid,
		},
		{
			"quality name with a sequence for terminals",
			publish(func(p *volumetric.Publication) { p.Qualities[0].Name = "\u009b31m" }),
			CodeInvalid,
		},
		{"VR2Gather's frames", publish(func(p *volumetric.Publication) { p.VR2Gather = true }), ""},
		{
			"VR2Gather's frames as H264",
			publish(func(p *volumetric.Publication) { p.VR2Gather, p.Codec.MIMEType = true, "video/H264" }),
			CodeInvalid,
		},
		{
			"VR2Gather's frames as descriptions",
			publish(func(p *volumetric.Publication) { p.VR2Gather, p.Mode = true, volumetric.ModeDescriptions }),
			CodeInvalid,
		},
		{"VR2Gather's sound", publish(func(p *volumetric.Publication) { *p = voice(); p.VR2Gather = true }), ""},
		{"encrypted frames", publish(func(p *volumetric.Publication) { p.Encryption = "sframe" }), ""},
		{"encrypted sound", publish(func(p *volumetric.Publication) { *p = voice(); p.Encryption = "sframe" }), ""},
		{
			"long name of an encryption",
			publish(func(p *volumetric.Publication) {
				p.Encryption = strings.Repeat("x", volumetric.MaxEncryptionLength+1)
			}),
			CodeInvalid,
		},
		{
			"line break in the name of an encryption",
			publish(func(p *volumetric.Publication) { p.Encryption = "sf\nrame" }),
			CodeInvalid,
		},
		{
			"encrypted frames of VR2Gather",
			publish(func(p *volumetric.Publication) { p.Encryption, p.VR2Gather = "sframe", true }),
			CodeInvalid,
		},
		{
			"encrypted H264",
			publish(func(p *volumetric.Publication) { p.Encryption, p.Codec.MIMEType = "sframe", "video/H264" }),
			CodeInvalid,
		},
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
		{
			"choice of a quality far out",
			choose(func(c *Choice) { c.Quality = Only(volumetric.MaxQualities) }),
			CodeInvalid,
		},
		{"no choices", &SetQuality{Choices: []Choice{}}, ""},
		{"choices missing", &SetQuality{}, CodeInvalid},
		{"too many choices", &SetQuality{Choices: make([]Choice, MaxChoices+1)}, CodeInvalid},

		{"acknowledge", &Acknowledge{Slots: []SlotGeneration{{MID: "1", Generation: 1}}}, ""},
		{"acknowledge nothing", &Acknowledge{Slots: []SlotGeneration{}}, ""},
		{"slots missing", &Acknowledge{}, CodeInvalid},
		{"slot without mid", &Acknowledge{Slots: []SlotGeneration{{Generation: 1}}}, CodeInvalid},
		{"too many slots", &Acknowledge{Slots: make([]SlotGeneration, MaxSlots+1)}, CodeInvalid},

		{"viewpoint", see(func(*Viewpoint) {}), ""},
		{"viewpoint of long ago", see(func(m *Viewpoint) { m.At = -1 }), ""},
		{"viewpoint nowhere", see(func(m *Viewpoint) { m.Position[2] = math.NaN() }), CodeInvalid},
		{"viewpoint at infinity", see(func(m *Viewpoint) { m.Position[0] = math.Inf(-1) }), CodeInvalid},
		{"viewpoint too far", see(func(m *Viewpoint) { m.Position[1] = MaxCoordinate + 1 }), CodeInvalid},
		{"no rotation", see(func(m *Viewpoint) { m.Orientation = Rotation{} }), CodeInvalid},
		{"a rotation of length 2", see(func(m *Viewpoint) { m.Orientation[3] = 2 }), CodeInvalid},
		{"a rotation that is no number", see(func(m *Viewpoint) { m.Orientation[3] = math.NaN() }), CodeInvalid},
		{"a rounded rotation", see(func(m *Viewpoint) { m.Orientation = Rotation{0, 0.71, 0, 0.71} }), ""},
		{"fov 170", see(func(m *Viewpoint) { m.FOV = 170 }), ""},
		{"fov 171", see(func(m *Viewpoint) { m.FOV = 171 }), CodeInvalid},
		{"fov 0", see(func(m *Viewpoint) { m.FOV = 0 }), CodeInvalid},
		{"fov that is no number", see(func(m *Viewpoint) { m.FOV = math.NaN() }), CodeInvalid},
		{"aspect 0.1", see(func(m *Viewpoint) { m.Aspect = 0.1 }), ""},
		{"aspect 11", see(func(m *Viewpoint) { m.Aspect = 11 }), CodeInvalid},

		{"pose", stand(func(*Pose) {}), ""},
		{"pose of nothing", stand(func(m *Pose) { m.Publication = "" }), CodeInvalid},
		{"pose nowhere", stand(func(m *Pose) { m.Position[0] = math.Inf(1) }), CodeInvalid},
		{"pose without rotation", stand(func(m *Pose) { m.Orientation = Rotation{} }), CodeInvalid},
		{"scale 1000", stand(func(m *Pose) { m.Scale = 1000 }), ""},
		{"negative scale", stand(func(m *Pose) { m.Scale = -1 }), CodeInvalid},
		{"priority 100", stand(func(m *Pose) { m.Priority = 100 }), ""},
		{"priority that is no number", stand(func(m *Pose) { m.Priority = math.NaN() }), CodeInvalid},
		{"pose with boxes", stand(func(m *Pose) { m.Boxes = make([]volumetric.BoundingBox, volumetric.MaxTiles) }), ""},
		{
			"too many boxes",
			stand(func(m *Pose) { m.Boxes = make([]volumetric.BoundingBox, volumetric.MaxTiles+1) }),
			CodeInvalid,
		},
		{
			"a box inside out",
			stand(func(m *Pose) { m.Boxes = []volumetric.BoundingBox{{Min: [3]float32{1}}} }),
			CodeInvalid,
		},
		{
			"an endless box",
			stand(func(m *Pose) { m.Boxes = []volumetric.BoundingBox{{Max: [3]float32{3e38}}} }),
			CodeInvalid,
		},

		{"an arrangement", arranged(func(*Placement) {}), ""},
		{"an arrangement of nothing", &Arrange{Objects: []Placement{}}, ""},
		{"an arrangement without a list", &Arrange{}, CodeInvalid},
		{"an arrangement of too much", &Arrange{Objects: make([]Placement, MaxPlacements+1)}, CodeInvalid},
		{"an arrangement of nobody", arranged(func(o *Placement) { o.Participant = "" }), CodeInvalid},
		{"an arrangement without a name", arranged(func(o *Placement) { o.Publication = "" }), CodeInvalid},
		{
			"an arrangement out of this world",
			arranged(func(o *Placement) { o.Position[1] = 2 * MaxCoordinate }),
			CodeInvalid,
		},
		{"an arrangement without rotation", arranged(func(o *Placement) { o.Orientation = Rotation{} }), CodeInvalid},
		{"an arrangement of a giant", arranged(func(o *Placement) { o.Scale = 2 * MaxScale }), CodeInvalid},
		{"limits", &SetLimits{BitrateLimits: BitrateLimits{Max: 2e6, Min: 1e6}}, ""},
		{"no limits", &SetLimits{}, ""},
		{"a least rate only", &SetLimits{BitrateLimits: BitrateLimits{Min: 1e6}}, ""},
		{"limits the wrong way round", &SetLimits{BitrateLimits: BitrateLimits{Max: 1e6, Min: 2e6}}, CodeInvalid},
		{"a start rate only", &SetLimits{BitrateLimits: BitrateLimits{Start: 1e6}}, ""},
		{
			"a start rate between the others",
			&SetLimits{BitrateLimits: BitrateLimits{Max: 3e6, Min: 1e6, Start: 2e6}},
			"",
		},
		{"a start rate above the largest", &SetLimits{BitrateLimits: BitrateLimits{Max: 1e6, Start: 2e6}}, CodeInvalid},
		{"a start rate below the least", &SetLimits{BitrateLimits: BitrateLimits{Min: 2e6, Start: 1e6}}, CodeInvalid},
		{"a negative start rate", &SetLimits{BitrateLimits: BitrateLimits{Start: -1}}, CodeInvalid},
		{"a start rate beyond all rates", &SetLimits{BitrateLimits: BitrateLimits{Start: MaxBitrate + 1}}, CodeInvalid},
		{"a negative limit", &SetLimits{BitrateLimits: BitrateLimits{Max: -1}}, CodeInvalid},
		{"a limit beyond all rates", &SetLimits{BitrateLimits: BitrateLimits{Max: MaxBitrate + 1}}, CodeInvalid},
		{"join with limits", join(func(m *Join) { m.Max = 1e6 }), ""},
		{"join with a start rate", join(func(m *Join) { m.Start = 1e6 }), ""},
		{"join with a start rate above the largest", join(func(m *Join) { m.Max, m.Start = 1e6, 2e6 }), CodeInvalid},
		{"join with a negative limit", join(func(m *Join) { m.Min = -1 }), CodeInvalid},

		{"trace", &Trace{FrameTimes: true}, ""},
		{"times", times(func(*FrameTimes) {}), ""},
		{"times without a track", times(func(m *FrameTimes) { m.Tracks = []TrackTimes{} }), ""},
		{"times by the server", times(func(m *FrameTimes) { m.Host = FrameHostServer }), CodeInvalid},
		{"times by no clock", times(func(m *FrameTimes) { m.Clock.Source = "sundial" }), CodeInvalid},
		{"times with a negative bound", times(func(m *FrameTimes) { m.Clock.Bound = -1 }), CodeInvalid},
		{"times with a negative uncertainty", times(func(m *FrameTimes) { m.Clock.Uncertainty = -1 }), CodeInvalid},
		{"times of another age", times(func(m *FrameTimes) { m.Clock.Offset = math.MaxInt64 }), CodeInvalid},
		{
			"times with a huge disagreement",
			times(func(m *FrameTimes) { m.Clock.Disagreement = math.MinInt64 }),
			CodeInvalid,
		},
		{"times without a list of tracks", times(func(m *FrameTimes) { m.Tracks = nil }), CodeInvalid},
		{"times that dropped fewer than none", times(func(m *FrameTimes) { m.Dropped = -1 }), CodeInvalid},
		{"times of no publication", times(func(m *FrameTimes) { m.Tracks[0].Publication = "" }), CodeInvalid},
		{
			"times of a participant with a line break",
			times(func(m *FrameTimes) { m.Tracks[0].Participant = "a\nb" }),
			CodeInvalid,
		},
		{"times of tile -1", times(func(m *FrameTimes) { m.Tracks[0].Tile = -1 }), CodeInvalid},
		{
			"times of quality off",
			times(func(m *FrameTimes) { m.Tracks[0].Quality = volumetric.QualityOff }),
			CodeInvalid,
		},
		{"times without a list of frames", times(func(m *FrameTimes) { m.Tracks[0].Frames = nil }), CodeInvalid},
		{
			"times with too few stamps",
			times(func(m *FrameTimes) { m.Tracks[0].Frames[0] = make([]int64, 5) }),
			CodeInvalid,
		},
		{"times of frame -1", times(func(m *FrameTimes) { m.Tracks[0].Frames[0][0] = -1 }), CodeInvalid},
		{
			"times of a frame beyond 32 bits",
			times(func(m *FrameTimes) { m.Tracks[0].Frames[0][0] = 1 << 32 }),
			CodeInvalid,
		},
		{"times of a frame of -1 bytes", times(func(m *FrameTimes) { m.Tracks[0].Frames[0][1] = -1 }), CodeInvalid},
		{
			"times far in the future",
			times(func(m *FrameTimes) { m.Tracks[0].Frames[0][2] = math.MaxInt64 }),
			CodeInvalid,
		},
		{"times with an unknown stamp", times(func(m *FrameTimes) { m.Tracks[0].Frames[0][3] = UnknownStamp }), ""},
		{
			"times with a stamp before the first",
			times(func(m *FrameTimes) { m.Tracks[0].Frames[0][3] = -2 }),
			CodeInvalid,
		},
		{
			"times with a stamp after an hour",
			times(func(m *FrameTimes) { m.Tracks[0].Frames[0][3] = 3600e9 }),
			CodeInvalid,
		},
		{
			"times of too many frames",
			times(func(m *FrameTimes) { m.Tracks = make([]TrackTimes, MaxFrameTimes+1) }),
			CodeInvalid,
		},
		{"uplink", &Uplink{GaveUp: []OwnTrack{{Publication: "body", Tile: 1, Quality: 2}}}, ""},
		{"uplink that carries everything", &Uplink{Estimate: 1e6, GaveUp: []OwnTrack{}}, ""},
		{"uplink without a list", &Uplink{}, CodeInvalid},
		{"uplink with too many", &Uplink{GaveUp: make([]OwnTrack, MaxGaveUp+1)}, CodeInvalid},
		{"uplink with a negative estimate", &Uplink{Estimate: -1, GaveUp: []OwnTrack{}}, CodeInvalid},
		{"uplink of no publication", &Uplink{GaveUp: []OwnTrack{{}}}, CodeInvalid},
		{
			"uplink of a tile far out",
			&Uplink{GaveUp: []OwnTrack{{Publication: "body", Tile: volumetric.MaxTiles}}},
			CodeInvalid,
		},
		{
			"uplink of quality off",
			&Uplink{GaveUp: []OwnTrack{{Publication: "body", Quality: volumetric.QualityOff}}},
			CodeInvalid,
		},

		{"time", &Time{T0: -1}, ""},
		{"leave", &Leave{}, ""},

		{"text", &Data{Seq: 1, To: []string{"ada"}, Topic: "chat", Text: strings.Repeat("x", MaxDataBytes)}, ""},
		{"empty message", &Data{}, ""},
		{"lossy bytes", &Data{Seq: MaxSeq, Lossy: true, Binary: make([]byte, MaxLossyBytes)}, ""},
		{"long text", &Data{Text: strings.Repeat("x", MaxDataBytes+1)}, CodeInvalid},
		{"long lossy message", &Data{Lossy: true, Text: strings.Repeat("x", MaxLossyBytes+1)}, CodeInvalid},
		{"text that is not UTF-8", &Data{Text: "\xff"}, CodeInvalid},
		{"text and binary", &Data{Text: "x", Binary: []byte{1}}, CodeInvalid},
		{"topic with a line break", &Data{Topic: "a\nb"}, CodeInvalid},
		{"recipient without a name", &Data{To: []string{""}}, CodeInvalid},
		{"too many recipients", &Data{To: make([]string, MaxRecipients+1)}, CodeInvalid},
		{"negative number", &Data{Seq: -1}, CodeInvalid},
		{"number beyond JavaScript", &Data{Seq: MaxSeq + 1}, CodeInvalid},
		{"attributes", &Attributes{Attributes: map[string]string{"name": "Ada", "gone": ""}}, ""},
		{"no attributes", &Attributes{}, CodeInvalid},
		{"attribute without a name", &Attributes{Attributes: map[string]string{"": "x"}}, CodeInvalid},
		{
			"long metadata",
			&Metadata{Metadata: map[string]string{"x": strings.Repeat("x", MaxAttributeBytes)}},
			CodeInvalid,
		},
		{"too many entries", &Metadata{Metadata: numbered(MaxAttributes + 1)}, CodeInvalid},
		{"metadata", &Metadata{Metadata: numbered(MaxAttributes)}, ""},
		{"mute", &Mute{Publication: "voice"}, ""},
		{"mute of no publication", &Mute{Participant: "ada"}, CodeInvalid},
		{"permissions", &SetPermissions{Participant: "ada"}, ""},
		{"permissions of no participant", &SetPermissions{}, CodeInvalid},
		{
			"resume after a negative number",
			&Join{Version: Version, Resume: &ResumeRequest{Session: "s", Secret: "x", DataReceived: negative()}},
			CodeInvalid,
		},
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

// TestValidationAgreesWithSchema expects that every message accepted by Validate conforms to the
// schema.
func TestValidationAgreesWithSchema(t *testing.T) {
	for _, request := range []Request{
		&Join{Version: Version, Publications: []volumetric.Publication{body(), voice()}, DeadlineMS: 20},
		&Join{Version: Version, Room: strings.Repeat("é", 64), DeadlineMS: 2000},
		&Publish{Publication: voice()},
		&SetQuality{Choices: []Choice{}},
		&Candidate{},
		&Viewpoint{Orientation: Rotation{0, 0, 0, 1}, FOV: MaxFOV, Aspect: MinAspect},
		&Pose{Publication: "body", Orientation: Rotation{0, 0, 0, 1}},
		&SetLimits{},
		&Uplink{GaveUp: []OwnTrack{}},
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
		`{"type":"viewpoint","position":[0,0,0],"orientation":[0,0,0,1],"fov":0.5,"aspect":1}`,
		`{"type":"viewpoint","position":[0,2000000,0],"orientation":[0,0,0,1],"fov":60,"aspect":1}`,
		`{"type":"pose","publication":"b","position":[0,0,0],"orientation":[0,0,0,1],"scale":0.0001}`,
		`{"type":"limits","max_bps":-1}`,
		`{"type":"limits","start_bps":-1}`,
		`{"type":"uplink","estimate_bps":0,"gave_up":[{"publication":"b","tile":0,"quality":-1}]}`,
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

// arranged returns an arrangement of one object with one change.
func arranged(change func(*Placement)) *Arrange {
	o := Placement{
		PublicationRef: volumetric.PublicationRef{Participant: "grace", Publication: "body"},
		Orientation:    Rotation{0, 0, 0, 1},
	}
	change(&o)
	return &Arrange{Objects: []Placement{o}}
}

func negative() *int64 {
	n := int64(-1)
	return &n
}

// numbered returns a map with the given number of entries.
func numbered(entries int) map[string]string {
	m := make(map[string]string, entries)
	for i := range entries {
		m[strconv.Itoa(i)] = "x"
	}
	return m
}

// TestMergeAttributes merges maps, and expects that the limits apply to the result.
func TestMergeAttributes(t *testing.T) {
	present := map[string]string{"name": "Ada", "hand": "up"}
	got, err := MergeAttributes("attributes", present, map[string]string{"hand": "", "mood": "good"})
	if want := map[string]string{"name": "Ada", "mood": "good"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, expected %v", got, err, want)
	}
	if len(present) != 2 {
		t.Errorf("the present map was changed to %v", present)
	}
	full := numbered(MaxAttributes)
	if _, err := MergeAttributes("attributes", full, map[string]string{"more": "x"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("one entry too many: got %v, expected ErrInvalid", err)
	}
	if got, err := MergeAttributes("attributes", full, map[string]string{"more": "x", "0": ""}); err != nil {
		t.Errorf("one entry for another: got %v, %v, expected no error", got, err)
	}
}
