package oldpeer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// Format of fragments: a header of little-endian words of four bytes, followed by a part of the frame.
const (
	videoHeader = 28
	audioHeader = 20
	videoData   = 1144
	audioData   = 1152
)

// audioStream is the stream of every audio track, in both directions.
const audioStream = "99"

// ErrNotConnected is returned while media does not flow.
var ErrNotConnected = errors.New("old peer is not connected")

// track is one published track. Each track has a count of frames: the counts of two qualities of a tile diverge when
// one quality skips a frame.
type track struct {
	local *webrtc.TrackLocalStaticRTP

	mu        sync.Mutex
	number    uint32
	sequence  uint16
	timestamp uint32
}

func newTrack(codec webrtc.RTPCodecCapability, id, stream string) (*track, error) {
	local, err := webrtc.NewTrackLocalStaticRTP(codec, id, stream)
	if err != nil {
		return nil, err
	}
	return &track{local: local, sequence: uint16(rand.Uint32()), timestamp: rand.Uint32()}, nil
}

// addTracks creates the peer's tracks in the original's order.
func (p *Peer) addTracks() error {
	add := func(codec webrtc.RTPCodecCapability, id, stream string) (*track, error) {
		t, err := newTrack(codec, id, stream)
		if err != nil {
			return nil, err
		}
		_, err = p.connection.AddTrack(t.local)
		return t, err
	}
	var err error
	if p.audio, err = add(audioCodec, fmt.Sprintf("audio_%d", p.config.Client), audioStream); err != nil {
		return err
	}
	for tile := range p.config.Tiles {
		for quality := range p.config.Qualities {
			id := fmt.Sprintf("video_%d_%d_%d", p.config.Client, tile, quality)
			if p.config.Malformed {
				id = fmt.Sprintf("video%d", len(p.video))
			}
			t, err := add(videoCodec, id, fmt.Sprint(quality*p.config.Tiles+tile))
			if err != nil {
				return err
			}
			p.video = append(p.video, t)
		}
	}
	return nil
}

// WriteTile publishes one frame of a tile at a quality.
func (p *Peer) WriteTile(tile, quality int, frame []byte) error {
	if tile < 0 || tile >= p.config.Tiles || quality < 0 || quality >= p.config.Qualities {
		return fmt.Errorf("%w: tile %d at quality %d", ErrConfig, tile, quality)
	}
	t := p.video[tile*p.config.Qualities+quality]
	return p.write(t, func(number uint32) [][]byte {
		return videoPayloads(p.config.Client, number, tile,
			quality, frame)
	})
}

// WriteAudio publishes one frame of sound.
func (p *Peer) WriteAudio(frame []byte) error {
	return p.write(p.audio, func(number uint32) [][]byte { return audioPayloads(p.config.Client, number, frame) })
}

// WriteTilePayload sends any payload on the track of a tile at a quality, as the only packet of a frame.
func (p *Peer) WriteTilePayload(tile, quality int, payload []byte) error {
	return p.write(p.video[tile*p.config.Qualities+quality], func(uint32) [][]byte { return [][]byte{payload} })
}

// write sends the payloads of the track's next frame at once. The original starts counting when media flows.
func (p *Peer) write(t *track, payloads func(number uint32) [][]byte) error {
	select {
	case <-p.connected:
	case <-p.dead:
		return ErrNotConnected
	default:
		return ErrNotConnected
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	packets := payloads(t.number)
	for i, payload := range packets {
		header := rtp.Header{Version: 2, Marker: i == len(packets)-1, SequenceNumber: t.sequence,
			Timestamp: t.timestamp}
		t.sequence++
		if err := t.local.WriteRTP(&rtp.Packet{Header: header, Payload: payload}); err != nil {
			return fmt.Errorf("%w: %w", ErrNotConnected, err)
		}
	}
	t.number++
	t.timestamp += clockRate
	return nil
}

// videoPayloads splits a frame of a tile into payloads.
func videoPayloads(client int, number uint32, tile, quality int, frame []byte) [][]byte {
	return cut(frame, videoData, func(offset, length int) []byte {
		return words(uint32(client), number, uint32(len(frame)), uint32(offset), uint32(length), uint32(tile),
			uint32(quality))
	})
}

// audioPayloads splits a frame of sound into payloads.
func audioPayloads(client int, number uint32, frame []byte) [][]byte {
	return cut(frame, audioData, func(offset, length int) []byte {
		return words(uint32(client), number, uint32(len(frame)), uint32(offset), uint32(length))
	})
}

// cut prepends headers to the parts of a frame. A frame without bytes has one part.
func cut(frame []byte, size int, header func(offset, length int) []byte) [][]byte {
	var payloads [][]byte
	for offset := 0; offset < len(frame) || offset == 0; offset += size {
		length := min(size, len(frame)-offset)
		payloads = append(payloads, append(header(offset, length), frame[offset:offset+length]...))
	}
	return payloads
}

func words(values ...uint32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}
