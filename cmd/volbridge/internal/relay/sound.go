package relay

import (
	"bytes"
	"context"
	"maps"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/transcode"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// listening is the audio of one client as it is sent to the connector.
type listening struct {
	*transcode.Listener
	// number is the number of the next frame. concealed is the number of concealed packets that are already in the
	// figures.
	number    uint32
	concealed int64
}

// say transcodes an audio frame of the connector to Opus and publishes it. say returns false if the frame is to be
// published unchanged, because its codec cannot be transcoded or the audio is already published in VR2Gather's format.
func (s *Relay) say(ctx context.Context, session *client.Session, f *bridge.Frame) bool {
	if !transcode.Speaks(f.Header.FourCC) {
		if s.transcoding.tells(f.Header.FourCC) {
			s.log.Warn("sound of the connector is not transcoded", "codec", f.Header.FourCC, "error", codec.ErrUnknown,
				"expected", vr2gather.CodecVoice)
		}
		return false
	}
	s.mu.Lock()
	s.speaksRaw = f.Header.FourCC == vr2gather.CodecRawVoice
	s.mu.Unlock()
	if published := s.upward.voice; published != nil && published.VR2Gather {
		return false
	}
	speaker := s.transcoding.speaker
	before := speaker.Concealed()
	err := speaker.Push(transcode.Said{
		Number: f.Number, Codec: f.Header.FourCC, Data: f.Data[vr2gather.FrameHeaderSize:][:f.Header.Length],
		End: f.Captured(), Came: f.Arrival,
	})
	if err != nil {
		s.tally.Add(bridge.DropCodec)
		s.log.Debug("sound of the connector not transcoded", "error", err)
		return true
	}
	for {
		p, ok := speaker.Next()
		if !ok {
			break
		}
		s.mu.Lock()
		s.figures.spoken.Add(time.Since(p.Came) + speaker.Lookahead())
		s.mu.Unlock()
		s.publish(ctx, session, outgoing{Frame: f, data: bytes.Clone(p.Packet), foreign: true, capture: p.Capture})
	}
	s.mu.Lock()
	s.figures.concealed += speaker.Concealed() - before
	s.mu.Unlock()
	return true
}

// keep removes the audio state of all clients for which here returns false.
func (t *transcoding) keep(here func(client uint32) bool) {
	maps.DeleteFunc(t.listeners, func(client uint32, _ *listening) bool { return !here(client) })
}

// hear handles an Opus packet for the connector.
func (m *meeting) hear(p *client.Packet, number uint32) {
	l := m.transcoding.listeners[number]
	if l == nil {
		listener, err := transcode.NewListener()
		if err != nil {
			m.tally.Add(bridge.DropReceivedCodec)
			m.log.Debug("sound for the connector not transcoded", "error", err)
			return
		}
		l = &listening{Listener: listener}
		m.transcoding.listeners[number] = l
	}
	captured := p.Capture
	if captured.IsZero() {
		captured = p.Arrival
	}
	l.Push(transcode.Heard{Sequence: p.SequenceNumber, Timestamp: p.Timestamp, Payload: p.Payload, Capture: captured,
		Came: time.Now()})
	m.listen()
}

// listen sends all available audio frames to the connector.
func (m *meeting) listen() {
	if m.transcoding == nil {
		return
	}
	m.mu.Lock()
	raw := m.speaksRaw
	m.mu.Unlock()
	now := time.Now()
	next := now.Add(time.Hour)
	for client, l := range m.transcoding.listeners {
		before := l.Counts().Malformed
		for {
			made, ok := l.Next(now, raw)
			if !ok {
				break
			}
			m.speakTo(&bridge.Received{Kind: volumetric.KindAudio, Client: client, Number: l.number, Data: made.Frame})
			l.number++
			m.listened(time.Since(made.Came)+l.Lookahead(), l)
		}
		for range l.Counts().Malformed - before {
			m.tally.Add(bridge.DropReceivedCodec)
		}
		if due, ok := l.Due(); ok && due.Before(next) {
			next = due
		}
	}
	m.overdue.Reset(next.Sub(now))
}

// listened records the time that transcoding adds to an audio frame.
func (m *meeting) listened(took time.Duration, l *listening) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.figures.heard.Add(took)
	m.figures.concealed += l.Counts().Concealed - l.concealed
	l.concealed = l.Counts().Concealed
}
