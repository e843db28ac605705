package whip

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/volsfu/volsfu/internal/description"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

const (
	head = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
	// credentials are those of each line, as ffmpeg writes them.
	credentials = "c=IN IP4 0.0.0.0\r\na=ice-ufrag:8a0cf4c4\r\na=ice-pwd:1b0c6a7d5e4f3a2b1c0d9e8f7a6b5c4d\r\n" +
		"a=fingerprint:sha-256 EF:53:C9:F2:E0:A0:4F:1D:5E:99:4C:20:B8:D7:DE:21:3B:58:15:C4:E5:88:87:46:65:27:F7:" +
		"3B:C6:DC:EF:3B\r\na=setup:passive\r\na=rtcp-mux\r\n"
	sound = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n" + credentials + "a=mid:0\r\na=sendonly\r\n" +
		"a=rtpmap:111 opus/48000/2\r\na=ssrc:5 cname:FFmpeg\r\n"
	video = "m=video 9 UDP/TLS/RTP/SAVPF 106\r\n" + credentials + "a=mid:1\r\na=sendonly\r\n" +
		"a=rtpmap:106 H264/90000\r\n" +
		"a=fmtp:106 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42c01e\r\na=ssrc:6 cname:FFmpeg\r\n"
	// layered is a line with three encodings, as OBS writes it: the first is the best.
	layered = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" + credentials + "a=mid:1\r\na=sendonly\r\n" +
		"a=rtpmap:96 H264/90000\r\na=fmtp:96 profile-level-id=42e01f;packetization-mode=1\r\n" +
		"a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid\r\n" +
		"a=extmap:2 urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id\r\n" +
		"a=ssrc:6 cname:x\r\na=rid:0 send\r\na=rid:1 send\r\na=rid:2 send\r\na=simulcast:send 0;1;2\r\n"
	// watching is the offer of a browser that plays.
	watching = head + "m=audio 9 UDP/TLS/RTP/SAVPF 111 9\r\n" + credentials +
		"a=mid:0\r\na=recvonly\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:9 G722/8000\r\n" +
		"m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 102 103 106\r\n" + credentials + "a=mid:1\r\na=recvonly\r\n" +
		"a=rtpmap:96 VP8/90000\r\na=rtcp-fb:96 transport-cc\r\na=rtpmap:97 rtx/90000\r\na=fmtp:97 apt=96\r\n" +
		"a=rtpmap:98 VP9/90000\r\na=rtpmap:102 H264/90000\r\n" +
		"a=fmtp:102 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f\r\n" +
		"a=rtpmap:103 H264/90000\r\na=fmtp:103 packetization-mode=0;profile-level-id=42e01f\r\n" +
		"a=rtpmap:106 H264/90000\r\na=fmtp:106 packetization-mode=1;profile-level-id=42e01f\r\n"
)

func TestPlanPublishing(t *testing.T) {
	for name, test := range map[string]struct {
		offer string
		want  string
	}{
		"ffmpeg":     {head + sound + video, "voice audio/opus [] webcam video/H264 []"},
		"video only": {head + video, "webcam video/H264 []"},
		"encodings":  {head + sound + layered, "voice audio/opus [] webcam video/H264 [2 1 0]"},
		"two codecs": {head + strings.NewReplacer("SAVPF 106", "SAVPF 107 106", "a=ssrc:6",
			"a=rtpmap:107 VP8/90000\r\na=ssrc:6").Replace(video), "webcam video/VP8 []"},
		"both directions": {head + strings.ReplaceAll(video, "sendonly", "sendrecv"), "webcam video/H264 []"},
		"no SSRC": {head + strings.ReplaceAll(video, "a=ssrc:6 cname:FFmpeg", "a=extmap:4 "+description.MIDExtension),
			"webcam video/H264 []"},
	} {
		p, refused := planPublishing(test.offer, volumetric.SourceCamera)
		if refused != nil {
			t.Errorf("%s: %s", name, refused.detail)
			continue
		}
		var got []string
		for _, publication := range p.publications {
			var qualities []string
			for _, q := range publication.Qualities {
				if q.Name != "" {
					qualities = append(qualities, q.Name)
				}
			}
			got = append(got, fmt.Sprint(publication.Name, " ", publication.Codec.MIMEType, " ", qualities))
			if err := publication.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("%s: publications are %s, expected %s", name, text, test.want)
		}
		for _, l := range p.offer.Lines {
			if l.Direction != description.DirectionSendOnly || len(l.Codecs) != 1 {
				t.Errorf("%s: the offer has the line %+v", name, l)
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	const bad, unacceptable = http.StatusBadRequest, http.StatusNotAcceptable
	swapped := func(text string, pairs ...string) string { return head + strings.NewReplacer(pairs...).Replace(text) }
	for name, test := range map[string]struct {
		offer  string
		status int
		want   string
	}{
		"no description": {"hello", bad, "invalid session description"},
		"two lines": {head + video + strings.NewReplacer("mid:1", "mid:0", "ssrc:6", "ssrc:7").Replace(video),
			unacceptable, "several lines of video"},
		"a player": {swapped(video, "sendonly", "recvonly"), unacceptable,
			`line "1" is recvonly, expected sendonly`},
		"another codec": {swapped(video, "H264", "AV1"), unacceptable,
			`the video codecs of the offer are "AV1", expected VP8 or H264`},
		"single NAL units": {swapped(video, "packetization-mode=1", "packetization-mode=0"), unacceptable,
			"packetization-mode=1"},
		"no fingerprint": {swapped(video, "a=fingerprint", "a=x"), bad, "no a=fingerprint"},
		"no role":        {swapped(video, "a=setup", "a=x"), bad, "no a=setup"},
		"nothing":        {head, unacceptable, "neither video nor sound"},
		"no source":      {swapped(video, "a=ssrc", "a=x"), unacceptable, "neither a=ssrc nor the header extension"},
		"encodings unnamed": {swapped(layered, "rtp-stream-id", "x"), unacceptable,
			"simulcast without the header extension"},
		"layers of sound": {swapped(layered, "m=video", "m=audio", "H264/90000", "opus/48000/2"), unacceptable,
			"for video only"},
	} {
		_, refused := planPublishing(test.offer, volumetric.SourceCamera)
		if refused == nil || refused.status != test.status || !strings.Contains(refused.detail, test.want) {
			t.Errorf("%s: got %+v, expected status %d and %q", name, refused, test.status, test.want)
		}
	}
}

func TestPlanPlaying(t *testing.T) {
	p, refused := planPlaying(watching)
	if refused != nil {
		t.Fatal(refused.detail)
	}
	want := []string{volumetric.MIMEOpus, volumetric.MIMEVP8, volumetric.MIMEH264}
	if !slices.Equal(p.accepts, want) {
		t.Errorf("accepts %q, expected %q", p.accepts, want)
	}
	if got := p.offer.Lines[1].Codecs[1].PayloadType; got != 106 {
		t.Errorf("payload type %d of H264 was selected, expected 106, the constrained baseline profile", got)
	}
	profile := playerProfile(p.accepts, "")
	for mimeType, want := range map[string]string{
		volumetric.MIMEVP8: "", volumetric.MIMEVolumetric: "its codec is video/volumetric",
	} {
		if got := profile.Withheld(&volumetric.Publication{Codec: volumetric.Codec{MIMEType: mimeType}}); got != want {
			t.Errorf("%s is withheld because %q, expected %q", mimeType, got, want)
		}
	}
}

// TestSourceOfPlayer: a player that asks for a source takes its picture and its sound, and no other publications.
func TestSourceOfPlayer(t *testing.T) {
	camera := volumetric.Publication{Name: "webcam", Kind: volumetric.KindVideo,
		Picture: &volumetric.Picture{Source: volumetric.SourceCamera}}
	screen := volumetric.Publication{Name: "screen", Kind: volumetric.KindVideo,
		Picture: &volumetric.Picture{Source: volumetric.SourceScreen}}
	for source, want := range map[volumetric.PictureSource][]string{
		volumetric.SourceCamera: {"webcam", "voice"}, volumetric.SourceScreen: {"screen", "screen-sound"},
	} {
		var taken []string
		for _, d := range []volumetric.Publication{
			camera, screen, {Name: "body", Kind: volumetric.KindVideo}, {Name: "voice", Kind: volumetric.KindAudio},
			{Name: "screen-sound", Kind: volumetric.KindAudio},
		} {
			if playerProfile(nil, source).Wants(&d) {
				taken = append(taken, d.Name)
			}
		}
		if !slices.Equal(taken, want) {
			t.Errorf("a player of the %s takes %q, expected %q", source, taken, want)
		}
	}
	if playerProfile(nil, "").Wants != nil {
		t.Error("a player without a source does not take all publications")
	}
}

func TestAscending(t *testing.T) {
	for _, test := range []struct{ layers, want []description.Layer }{
		{layersOf("0", "1", "2"), layersOf("2", "1", "0")},
		{layersOf("q", "h", "f"), layersOf("q", "h", "f")},
		{layersOf("h", "m", "l"), layersOf("l", "m", "h")},
		{layersOf("High", "low"), layersOf("low", "High")},
		{layersOf("a", "h"), layersOf("h", "a")},
		{[]description.Layer{{ID: "x", MaxWidth: 320, MaxHeight: 180}, {ID: "y", MaxWidth: 1280, MaxHeight: 720}},
			[]description.Layer{{ID: "x", MaxWidth: 320, MaxHeight: 180}, {ID: "y", MaxWidth: 1280, MaxHeight: 720}}},
		{[]description.Layer{{ID: "x", MaxBitrate: 3}, {ID: "y", MaxBitrate: 2}},
			[]description.Layer{{ID: "y", MaxBitrate: 2}, {ID: "x", MaxBitrate: 3}}},
	} {
		if got := ascending(test.layers); !slices.Equal(got, test.want) {
			t.Errorf("%v in ascending order is %v, expected %v", test.layers, got, test.want)
		}
	}
}

func layersOf(ids ...string) (layers []description.Layer) {
	for _, id := range ids {
		layers = append(layers, description.Layer{ID: id})
	}
	return layers
}

// FuzzPlan reads offers of encoders and players. A plan has valid publications, lines of one direction, one line of
// each kind, and can be answered.
func FuzzPlan(f *testing.F) {
	for _, offer := range []string{head + sound + video, head + sound + layered, watching, head} {
		f.Add(offer)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for direction, read := range map[description.Direction]func(string) (*plan, *problem){
			description.DirectionRecvOnly: planPlaying,
			description.DirectionSendOnly: func(text string) (*plan, *problem) {
				return planPublishing(text, volumetric.SourceScreen)
			},
		} {
			p, refused := read(text)
			if refused != nil {
				if refused.status < http.StatusBadRequest || refused.detail == "" {
					t.Fatalf("refused by %+v", refused)
				}
				continue
			}
			for _, publication := range p.publications {
				if err := publication.Validate(); err != nil {
					t.Fatal(err)
				}
			}
			kinds := map[volumetric.Kind]int{}
			for _, l := range p.offer.Lines {
				if l.Rejected || l.Kind == description.KindData {
					continue
				}
				if kinds[l.Kind]++; kinds[l.Kind] > 1 || l.Direction != direction || len(l.Codecs) == 0 {
					t.Fatalf("the offer has the line %+v", l)
				}
			}
			if _, err := description.AnswerAsForwarder(p.offer, nil); err != nil {
				t.Fatal(err)
			}
		}
	})
}
