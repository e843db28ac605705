package bridge

import (
	"maps"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Voices reassembles the audio of other clients. Each audio packet is one of VR2Gather's, over either protocol.
type Voices struct {
	tally   *Tally
	streams map[uint32]*voice
}

// voice is one publisher's audio. The frames are numbered here in the order of their completion.
type voice struct {
	frames *Assembly
	next   uint32
}

// NewVoices returns an empty Voices.
func NewVoices(tally *Tally) *Voices { return &Voices{tally: tally, streams: make(map[uint32]*voice)} }

// Push adds the payload of a client's audio packet. Push returns the frame that the packet completes, or nil.
func (v *Voices) Push(client uint32, payload []byte, now time.Time) *Received {
	p, err := vr2gather.ParsePacket(volumetric.KindAudio, payload)
	if err != nil {
		v.tally.Add(DropAudio)
		return nil
	}
	s := v.streams[client]
	if s == nil {
		s = &voice{frames: NewAssembly(1, v.tally)}
		v.streams[client] = s
	}
	s.frames.Expire(now)
	data := s.frames.Push(0, &p, now)
	if data == nil {
		return nil
	}
	number := s.next
	s.next++
	return &Received{Kind: volumetric.KindAudio, Client: client, Number: number, Data: data}
}

// Retain removes all clients for which present returns false.
func (v *Voices) Retain(present func(client uint32) bool) {
	maps.DeleteFunc(v.streams, func(client uint32, _ *voice) bool { return !present(client) })
}
