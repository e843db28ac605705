package relay

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/transcode"
	"github.com/volsfu/volsfu/internal/voice"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// audioStream is the audio of one client as it is sent to the connector.
type audioStream struct {
	*transcode.VoiceTranscoder
	// number is the number of the next frame. concealed is the number of concealed packets that are already in the
	// figures.
	number    uint32
	concealed int64
}

// convertAudio transcodes an audio frame of the connector to Opus and publishes the packets. convertAudio returns false
// if the frame is to be published unchanged, because this program has no audio codecs, the frame's codec cannot be
// transcoded, or the audio is already published in VR2Gather's format.
func (s *Relay) convertAudio(ctx context.Context, session *client.Session, f *bridge.Frame) bool {
	if s.transcoding.toOpus == nil {
		return false
	}
	if !transcode.IsVoice(f.Header.FourCC) {
		if s.transcoding.markLogged(f.Header.FourCC) {
			s.log.Warn("sound of the connector is not transcoded", "codec", f.Header.FourCC, "error", codec.ErrUnknown,
				"expected", vr2gather.CodecVoice)
		}
		return false
	}
	s.rawAudio.Store(f.Header.FourCC == vr2gather.CodecRawVoice)
	if published := s.upward.audio; published != nil && published.VR2Gather {
		return false
	}
	transcoder := s.transcoding.toOpus
	before := transcoder.Concealed()
	err := transcoder.Push(transcode.VoiceFrame{
		Number: f.Number, Codec: f.Header.FourCC, Data: f.Data[vr2gather.FrameHeaderSize:][:f.Header.Length],
		End: f.Captured(), Arrival: f.Arrival,
	})
	if err != nil {
		s.tally.Add(bridge.DropCodec)
		s.log.Debug("sound of the connector not transcoded", "error", err)
		return true
	}
	for {
		p, ok := transcoder.Next()
		if !ok {
			break
		}
		s.figures.update(func(c *counts) { c.audioUp.Add(time.Since(p.Arrival) + transcoder.Lookahead()) })
		s.publish(ctx, session, outgoing{Frame: f, data: bytes.Clone(p.Packet), transcoded: true, capture: p.Capture})
	}
	s.figures.update(func(c *counts) { c.concealed += transcoder.Concealed() - before })
	return true
}

// retain removes the audio state of all clients for which present returns false.
func (t *transcoding) retain(present func(client uint32) bool) {
	maps.DeleteFunc(t.toVoice, func(client uint32, _ *audioStream) bool { return !present(client) })
}

// transcodeAudio handles an Opus packet for the connector.
func (m *sessionOutput) transcodeAudio(p *client.Packet, number uint32) {
	voices := m.relay.transcoding.toVoice
	l := voices[number]
	if l == nil {
		transcoder, err := transcode.NewVoiceTranscoder()
		if err != nil {
			m.relay.tally.Add(bridge.DropReceivedCodec)
			m.relay.log.Debug("sound for the connector not transcoded", "error", err)
			return
		}
		l = &audioStream{VoiceTranscoder: transcoder}
		voices[number] = l
	}
	captured := p.Capture
	if captured.IsZero() {
		captured = p.Arrival
	}
	l.Push(voice.Packet{Sequence: p.SequenceNumber, Timestamp: p.Timestamp, Payload: p.Payload,
		Capture: captured, Arrival: time.Now()})
	m.deliverTranscodedAudio()
}

// deliverTranscodedAudio sends all available audio frames to the connector.
func (m *sessionOutput) deliverTranscodedAudio() {
	if m.relay.transcoding == nil {
		return
	}
	raw := m.relay.rawAudio.Load()
	now := time.Now()
	next := now.Add(time.Hour)
	for client, l := range m.relay.transcoding.toVoice {
		before := l.Counts().Malformed
		for {
			frame, ok := l.Next(now, raw)
			if !ok {
				break
			}
			m.downward.deliverAudio(&bridge.Received{Kind: volumetric.KindAudio, Client: client, Number: l.number,
				Data: frame.Frame})
			l.number++
			m.recordAudio(time.Since(frame.Arrival)+l.Lookahead(), l)
		}
		for range l.Counts().Malformed - before {
			m.relay.tally.Add(bridge.DropReceivedCodec)
		}
		if due, ok := l.Due(); ok && due.Before(next) {
			next = due
		}
	}
	m.overdue.Reset(next.Sub(now))
}

// recordAudio records the time that transcoding adds to an audio frame.
func (m *sessionOutput) recordAudio(took time.Duration, l *audioStream) {
	concealed := l.Counts().Concealed
	m.relay.figures.update(func(c *counts) {
		c.audioDown.Add(took)
		c.concealed += concealed - l.concealed
	})
	l.concealed = concealed
}
