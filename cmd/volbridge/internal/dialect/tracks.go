package dialect

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// track is one track of this client.
type track struct {
	local *webrtc.TrackLocalStaticRTP

	mu       sync.Mutex
	sequence uint16
	payload  []byte
}

// tracks has all tracks of this client.
type tracks struct {
	audio *track
	video []*track // by tile × qualities + quality
}

// addTracks announces audio, then tile by tile and quality by quality, in the order of the server's media lines.
func (s *Session) addTracks() error {
	query := s.config.Query
	add := func(codec webrtc.RTPCodecCapability, name vr2gather.Track) (*track, error) {
		local, err := webrtc.NewTrackLocalStaticRTP(codec, name.ID(), name.StreamID(query.Tiles))
		if err != nil {
			return nil, err
		}
		_, err = s.connection.AddTrack(local)
		return &track{local: local, sequence: uint16(rand.Uint32())}, err
	}
	var err error
	if s.tracks.audio, err = add(audioCodec, vr2gather.Track{Kind: volumetric.KindAudio,
		Client: query.Client}); err != nil {
		return err
	}
	for tile := range query.Tiles {
		for quality := range query.Qualities {
			name := vr2gather.Track{Kind: volumetric.KindVideo, Client: query.Client, Tile: tile,
				Quality: volumetric.Quality(quality)}
			t, err := add(videoCodec, name)
			if err != nil {
				return err
			}
			s.tracks.video = append(s.tracks.video, t)
		}
	}
	return nil
}

// WritePacket sends a packet of a frame immediately. timestamp is the frame's RTP timestamp; the last packet has the
// marker. Packets that the network drops are lost.
func (s *Session) WritePacket(p *vr2gather.Packet, timestamp uint32) error {
	t := s.tracks.audio
	if p.Kind != volumetric.KindAudio {
		query := s.config.Query
		if uint64(p.Tile) >= uint64(query.Tiles) || uint64(p.Quality) >= uint64(query.Qualities) {
			return fmt.Errorf("%w: tile %d at quality %d", ErrTrack, p.Tile, p.Quality)
		}
		t = s.tracks.video[int(p.Tile)*query.Qualities+int(p.Quality)]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	payload, err := p.Append(t.payload[:0])
	if err != nil {
		return err
	}
	t.payload = payload
	header := rtp.Header{Version: 2, Marker: p.Last(), SequenceNumber: t.sequence, Timestamp: timestamp}
	t.sequence++
	return t.local.WriteRTP(&rtp.Packet{Header: header, Payload: payload})
}

// maxPacket is the size of the receive buffer: the largest packet of the dialect, plus the headers that servers may
// add.
const maxPacket = 1500

// receive delivers the packets of a track to the sink until the track ends.
func (s *Session) receive(remote *webrtc.TrackRemote) {
	name, err := vr2gather.ParseTrack(remote.ID())
	if err != nil {
		s.config.Log.Warn("a track of the server has an unknown name and is skipped", "error", err)
		return
	}
	s.config.Sink.Opened(name)
	buffer := make([]byte, maxPacket)
	var header rtp.Header
	for {
		n, _, err := remote.Read(buffer)
		if err != nil {
			return
		}
		size, err := header.Unmarshal(buffer[:n])
		if err != nil {
			continue
		}
		payload := buffer[size:n]
		if header.Padding && len(payload) > 0 {
			payload = payload[:max(0, len(payload)-int(payload[len(payload)-1]))]
		}
		if len(payload) > 0 {
			s.config.Sink.Packet(name.Kind, payload, time.Now())
		}
	}
}
