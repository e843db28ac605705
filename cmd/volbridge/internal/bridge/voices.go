package bridge

import (
	"maps"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// Voices puts the audio of others together. Each packet of audio is one of VR2Gather's, whatever it travels by.
type Voices struct {
	tally *Tally
	of    map[uint32]*voice
}

// voice is one publisher's audio. Its frames are numbered here in the order in which they were complete.
type voice struct {
	frames *Assembly
	next   uint32
}

// NewVoices hears nobody yet.
func NewVoices(tally *Tally) *Voices { return &Voices{tally: tally, of: make(map[uint32]*voice)} }

// Push takes the payload of a packet of a client's audio, and returns the frame that it completes, or nil.
func (v *Voices) Push(client uint32, payload []byte, now time.Time) *Received {
	p, err := vr2gather.ParsePacket(volumetric.KindAudio, payload)
	if err != nil {
		v.tally.Add(DropAudio)
		return nil
	}
	s := v.of[client]
	if s == nil {
		s = &voice{frames: NewAssembly(1, v.tally)}
		v.of[client] = s
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

// Keep forgets all clients but those that are here.
func (v *Voices) Keep(here func(client uint32) bool) {
	maps.DeleteFunc(v.of, func(client uint32, _ *voice) bool { return !here(client) })
}
