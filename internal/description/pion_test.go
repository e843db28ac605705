package description

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// newPion returns a peer connection of Pion with the codecs of Offered. It uses loopback only.
func newPion(t *testing.T) *webrtc.PeerConnection {
	t.Helper()
	engine := &webrtc.MediaEngine{}
	for kind, pionKind := range map[volumetric.Kind]webrtc.RTPCodecType{
		volumetric.KindVideo: webrtc.RTPCodecTypeVideo, volumetric.KindAudio: webrtc.RTPCodecTypeAudio,
	} {
		codecs, extensions := Offered(kind)
		for _, c := range codecs {
			for _, parameters := range pionCodecs(kind, c) {
				if err := engine.RegisterCodec(parameters, pionKind); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, extension := range extensions {
			if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: extension.URI},
				pionKind); err != nil {
				t.Fatal(err)
			}
		}
	}
	var settings webrtc.SettingEngine
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetInterfaceFilter(func(name string) bool { return strings.HasPrefix(name, "lo") })
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings)).NewPeerConnection(
		webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pc.Close(); err != nil {
			t.Error(err)
		}
	})
	return pc
}

// pionCodecs returns a codec, and its retransmissions, in Pion's format.
func pionCodecs(kind volumetric.Kind, c Codec) []webrtc.RTPCodecParameters {
	var feedback []webrtc.RTCPFeedback
	for _, f := range c.Feedback {
		kind, parameter, _ := strings.Cut(f, " ")
		feedback = append(feedback, webrtc.RTCPFeedback{Type: kind, Parameter: parameter})
	}
	_, name, _ := strings.Cut(c.MIMEType, "/")
	parameters := []webrtc.RTPCodecParameters{{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: string(kind) + "/" + name, ClockRate: c.ClockRate, Channels: c.Channels, SDPFmtpLine: c.Format,
			RTCPFeedback: feedback,
		},
		PayloadType: webrtc.PayloadType(c.PayloadType),
	}}
	if c.Retransmission != 0 {
		parameters = append(parameters, webrtc.RTPCodecParameters{
			RTPCodecCapability: webrtc.RTPCodecCapability{
				MimeType: webrtc.MimeTypeRTX, ClockRate: c.ClockRate, SDPFmtpLine: fmt.Sprintf("apt=%d", c.PayloadType),
			},
			PayloadType: webrtc.PayloadType(c.Retransmission),
		})
	}
	return parameters
}

func newTrack(t *testing.T, id, mimeType string) *webrtc.TrackLocalStaticRTP {
	t.Helper()
	rate := uint32(90000)
	if mimeType == volumetric.MIMEOpus {
		rate = 48000
	}
	track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: mimeType, ClockRate: rate}, id, id)
	if err != nil {
		t.Fatal(err)
	}
	return track
}

// sameCodecs compares codecs in any order: Pion prefers its own.
func sameCodecs(t *testing.T, l *Line) {
	t.Helper()
	want, _ := Offered(l.Kind)
	if len(l.Codecs) != len(want) {
		t.Errorf("line %q has %d codecs, expected %d", l.MID, len(l.Codecs), len(want))
	}
	for _, c := range l.Codecs {
		found := slices.ContainsFunc(want, func(w Codec) bool {
			return w.same(&c) && w.PayloadType == c.PayloadType && w.Retransmission == c.Retransmission &&
				w.Format == c.Format && slices.Equal(w.Feedback, c.Feedback)
		})
		if !found {
			t.Errorf("line %q has %+v, which was not offered", l.MID, c)
		}
	}
}

// TestPionAnswersOurOffer lets Pion take an offer, send on the receiving lines, and answer; twice, the second time with
// one more line.
func TestPionAnswersOurOffer(t *testing.T) {
	pc := newPion(t)
	offer := offerOfFour()
	for round := range 2 {
		if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer,
			SDP: offer.Marshal()}); err != nil {
			t.Fatal(err)
		}
		for _, transceiver := range pc.GetTransceivers() {
			mimeType := map[string]string{"0": volumetric.MIMEVolumetric, "2": volumetric.MIMEOpus}[transceiver.Mid()]
			if mimeType == "" || round > 0 {
				continue
			}
			if _, err := pc.AddTrack(newTrack(t, "publish-"+transceiver.Mid(), mimeType)); err != nil {
				t.Fatal(err)
			}
		}
		text, err := pc.CreateAnswer(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := pc.SetLocalDescription(text); err != nil {
			t.Fatal(err)
		}
		answer := parsed(t, text.SDP)
		if err := CheckAnswer(offer, answer); err != nil {
			t.Fatalf("%v\n%s", err, text.SDP)
		}
		for i := range answer.Lines {
			l := &answer.Lines[i]
			sameCodecs(t, l)
			if l.Direction != offer.Lines[i].Direction.Reversed() || len(l.Extensions) != 1 {
				t.Errorf("line %d is answered %q with extensions %v", i, l.Direction, l.Extensions)
			}
			if sends := l.Direction.Sends(); sends != (l.Streams.SSRC != 0) ||
				sends != (l.Stream == fmt.Sprintf("publish-%d publish-%d", i, i)) {
				t.Errorf("line %d has %+v of %q", i, l.Streams, l.Stream)
			}
			if l.Direction.Sends() && (l.Streams.Retransmission != 0) != (l.Kind == volumetric.KindVideo) {
				t.Errorf("line %d has retransmissions %d", i, l.Streams.Retransmission)
			}
		}
		offer.Version++
		offer.Lines = append(offer.Lines, offered(4, volumetric.KindVideo, DirectionSendOnly))
	}
}

// TestPionTakesHundredsOfLines lets Pion answer the offer to a receiver of many tracks.
func TestPionTakesHundredsOfLines(t *testing.T) {
	pc := newPion(t)
	offer := offerOfHundreds()
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer,
		SDP: offer.Marshal()}); err != nil {
		t.Fatal(err)
	}
	answer, err := pc.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckAnswer(offer, parsed(t, answer.SDP)); err != nil {
		t.Error(err)
	}
}

// TestPionTakesOurAnswer answers an offer of Pion with a data channel.
func TestPionTakesOurAnswer(t *testing.T) {
	pc := newPion(t)
	receiving := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecTypeAudio} {
		if _, err := pc.AddTransceiverFromKind(kind, receiving); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pc.AddTrack(newTrack(t, "up", volumetric.MIMEVolumetric)); err != nil {
		t.Fatal(err)
	}
	if _, err := pc.CreateDataChannel("data", nil); err != nil {
		t.Fatal(err)
	}
	offer, err := pc.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pc.SetLocalDescription(offer); err != nil {
		t.Fatal(err)
	}
	ours := parsed(t, offer.SDP)
	sending := make(map[string]Sending)
	for i := range ours.Lines {
		if l := &ours.Lines[i]; l.Direction == DirectionRecvOnly {
			sending[l.MID] = Sending{Streams: Streams{SSRC: uint32(2*i + 1), Retransmission: uint32(2*i + 2)},
				Stream: "s t"}
		}
	}
	answer, err := Answer(ours, sending)
	if err != nil {
		t.Fatal(err)
	}
	role := answer.Transport.Role
	answer.Transport = plausible()
	answer.Transport.Role = role
	if err := CheckAnswer(ours, answer); err != nil {
		t.Fatal(err)
	}
	rejected := 0
	for i := range answer.Lines {
		if answer.Lines[i].Rejected {
			rejected++
			continue
		}
		sameCodecs(t, &answer.Lines[i])
	}
	if rejected != 1 || len(sending) == 0 {
		t.Errorf("%d lines are rejected and %d send, expected 1 and some", rejected, len(sending))
	}
	if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer,
		SDP: answer.Marshal()}); err != nil {
		t.Fatalf("%v\n%s", err, answer.Marshal())
	}
}

// rewritten returns a description of Pion with all candidates, as written by this package.
func rewritten(t *testing.T, ctx context.Context, pc *webrtc.PeerConnection,
	text webrtc.SessionDescription) webrtc.SessionDescription {
	t.Helper()
	gathered := webrtc.GatheringCompletePromise(pc)
	if err := pc.SetLocalDescription(text); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gathered:
	case <-ctx.Done():
		t.Fatal("no candidates in time")
	}
	d := parsed(t, pc.LocalDescription().SDP)
	if len(d.Transport.Candidates) == 0 || !d.Transport.EndOfCandidates {
		t.Fatalf("candidates are %q, end is %t", d.Transport.Candidates, d.Transport.EndOfCandidates)
	}
	return webrtc.SessionDescription{Type: text.Type, SDP: d.Marshal()}
}

// TestPionConnectsByWhatIsWritten connects two peer connections of Pion whose descriptions are parsed and written by
// this package, and compares the streams of the receiver with those of the sender.
func TestPionConnectsByWhatIsWritten(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	from, to := newPion(t), newPion(t)
	tracks := []*webrtc.TrackLocalStaticRTP{
		newTrack(t, "first", volumetric.MIMEVolumetric), newTrack(t, "second", volumetric.MIMEOpaque),
		newTrack(t, "voice", volumetric.MIMEOpus),
	}
	senders := make(map[string]webrtc.RTPSendParameters)
	for _, track := range tracks {
		sender, err := from.AddTrack(track)
		if err != nil {
			t.Fatal(err)
		}
		senders[track.ID()] = sender.GetParameters()
	}
	heard := make(chan *webrtc.TrackRemote, len(tracks))
	to.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { heard <- track })
	offer, err := from.CreateOffer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.SetRemoteDescription(rewritten(t, ctx, from, offer)); err != nil {
		t.Fatal(err)
	}
	answer, err := to.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.SetRemoteDescription(rewritten(t, ctx, to, answer)); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for number := uint16(1); len(senders) > 0; {
		select {
		case track := <-heard:
			sender, ok := senders[track.ID()]
			if !ok || track.StreamID() != track.ID() || track.SSRC() != sender.Encodings[0].SSRC {
				t.Errorf("heard %q of stream %q with ssrc %d, sender has %+v", track.ID(), track.StreamID(),
					track.SSRC(), sender.Encodings)
			}
			if video := track.Kind() == webrtc.RTPCodecTypeVideo; track.HasRTX() != video ||
				track.RtxSSRC() != sender.Encodings[0].RTX.SSRC {
				t.Errorf("%q: retransmissions are %t with ssrc %d, sender has %+v", track.ID(), track.HasRTX(),
					track.RtxSSRC(), sender.Encodings)
			}
			delete(senders, track.ID())
		case <-tick.C:
			for _, track := range tracks {
				if err := track.WriteRTP(&rtp.Packet{Header: rtp.Header{Version: 2, SequenceNumber: number},
					Payload: []byte("x")}); err != nil {
					t.Fatal(err)
				}
			}
			number++
		case <-ctx.Done():
			t.Fatalf("not heard of in time: %v", senders)
		}
	}
}
