package standin

import (
	"encoding/binary"
	"fmt"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// sound is the tile of a client's sound.
const sound = -1

// source is one tile of one client.
type source struct{ client, tile int }

// off is the quality of a tile that is not sent.
const off = -1

// outlet carries one source to one member.
type outlet struct {
	local  *webrtc.TrackLocalStaticRTP
	sender *webrtc.RTPSender
	// wanted is the member's choice, current the quality being sent.
	wanted, current int
	sequence        uint16
	// number is that of the last frame begun, published the publisher's number of that frame, missing the number of
	// bytes of that frame that have not arrived.
	number, published uint32
	missing           int
}

// addOutlet creates the line that carries a source to the member.
func (m *member) addOutlet(from source, direction webrtc.RTPTransceiverDirection) (*outlet, error) {
	codec, id, stream := videoCodec, fmt.Sprintf("video_%d_%d", from.client, from.tile), fmt.Sprint(from.tile)
	if from.tile == sound {
		codec, id, stream = audioCodec, fmt.Sprintf("audio_%d", from.client), "99"
	}
	local, err := webrtc.NewTrackLocalStaticRTP(codec, id, stream)
	if err != nil {
		return nil, err
	}
	o := &outlet{local: local}
	m.outlets[from] = o
	if direction == webrtc.RTPTransceiverDirectionSendonly {
		transceiver, err := m.connection.AddTransceiverFromTrack(local, webrtc.RTPTransceiverInit{Direction: direction})
		if err != nil {
			return nil, err
		}
		o.sender = transceiver.Sender()
		return o, nil
	}
	o.sender, err = m.connection.AddTrack(local)
	return o, err
}

// receive forwards a track of the member until the end of the track. A track with an invalid name ends the member.
func (m *member) receive(remote *webrtc.TrackRemote) {
	from, quality := source{m.client, sound}, 0
	if remote.Kind() == webrtc.RTPCodecTypeVideo {
		var client int
		if _, err := fmt.Sscanf(remote.ID(), "video_%d_%d_%d", &client, &from.tile, &quality); err != nil {
			_ = m.conn.Close()
			return
		}
	}
	for {
		packet, _, err := remote.ReadRTP()
		if err != nil {
			return
		}
		m.sfu.forward(from, quality, packet)
	}
}

// forward sends a packet to every member that receives the track.
func (s *SFU) forward(from source, quality int, packet *rtp.Packet) {
	// Client, frame, length, offset and the packet's length; a shorter payload is dropped.
	if len(packet.Payload) < 20 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if o := m.outlets[from]; o != nil {
			o.forward(s.config.Faults, quality, packet)
		}
	}
}

// forward sends a packet if the track is selected. A track becomes selected at the start of a frame, when no other
// frame is being sent.
func (o *outlet) forward(faults Faults, quality int, packet *rtp.Packet) {
	offset := binary.LittleEndian.Uint32(packet.Payload[12:])
	begins := offset == 0 && (o.missing == 0 || quality == o.current)
	if faults.MidFrame || begins && (quality == o.wanted || quality == o.current && o.wanted == off) {
		o.current = o.wanted
	}
	if quality != o.current {
		if o.current == off {
			o.missing = 0
		}
		return
	}
	published := binary.LittleEndian.Uint32(packet.Payload[4:])
	if !begins && published != o.published && !faults.MidFrame {
		// The first packet of the frame is lost. Without it, the frame has no number here.
		o.sequence++
		return
	}
	if begins {
		if o.missing > 0 {
			// Packets that the publisher's network lost have a number here, too.
			o.sequence++
		}
		o.number++
		o.published = published
		o.missing = int(binary.LittleEndian.Uint32(packet.Payload[8:]))
	}
	o.missing -= int(binary.LittleEndian.Uint32(packet.Payload[16:]))
	payload := append([]byte(nil), packet.Payload...)
	if !faults.KeepNumbers {
		binary.LittleEndian.PutUint32(payload[4:], o.number)
	}
	o.write(&rtp.Packet{Header: rtp.Header{Version: 2, Marker: packet.Marker, Timestamp: packet.Timestamp},
		Payload: payload})
	if faults.Duplicates {
		o.write(&rtp.Packet{Header: rtp.Header{Version: 2, Marker: packet.Marker, Timestamp: packet.Timestamp},
			Payload: payload})
	}
	if faults.Padding && packet.Marker {
		o.write(&rtp.Packet{Header: rtp.Header{Version: 2, Padding: true, PaddingSize: 200,
			Timestamp: packet.Timestamp}})
	}
}

func (o *outlet) write(packet *rtp.Packet) {
	packet.SequenceNumber = o.sequence
	o.sequence++
	_ = o.local.WriteRTP(packet)
}
