package pipeline

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// objectName is the name of the object that volpeer publishes.
const objectName = "body"

// damage breaks a frame in one of several ways: a truncated end, some changed bytes, a random beginning, or random
// content. The result may share memory with the frame.
func damage(frame []byte, random *rand.Rand) []byte {
	if len(frame) == 0 {
		return []byte{byte(random.Uint32())}
	}
	scramble := func(part []byte) {
		for i := range part {
			part[i] = byte(random.Uint32())
		}
	}
	switch random.IntN(4) {
	case 0:
		return frame[:random.IntN(len(frame))]
	case 1:
		for range 1 + random.IntN(8) {
			// The byte differs for certain.
			frame[random.IntN(len(frame))] ^= byte(1 + random.IntN(255))
		}
	case 2:
		scramble(frame[:min(len(frame), 1+random.IntN(64))])
	case 3:
		scramble(frame)
	}
	return frame
}

// vandal is a participant that receives a tile of another participant's object and publishes a damaged copy of every
// frame.
type vandal struct {
	session *client.Session
	from    volumetric.PublicationRef
	random  *rand.Rand
	running sync.WaitGroup

	// sent counts damaged frames. Read sent after the vandal has left.
	sent int64
	err  error
}

// join connects the vandal to the room.
func (v *vandal) join(ctx context.Context, url, identity string) error {
	session, err := client.Join(ctx, client.Config{URL: url, Room: room, Identity: identity, Receive: true,
		Publications: []volumetric.Publication{{
			Name: objectName, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
			Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
			FrameRate: rate, Tiles: make([]volumetric.Tile, 1),
			Qualities: []volumetric.QualityLevel{{Bitrate: 2_000_000}},
		}}})
	if err != nil {
		return err
	}
	v.session = session
	v.running.Go(v.run)
	return nil
}

// run reads frames and events until the session ends.
func (v *vandal) run() {
	frames, events, packets := v.session.Frames(), v.session.Events(), v.session.Packets()
	for frames != nil || events != nil {
		select {
		case f, open := <-frames:
			if !open {
				frames = nil
				continue
			}
			v.take(f)
		case e, open := <-events:
			if !open {
				events = nil
				continue
			}
			v.note(e)
		case _, open := <-packets:
			if !open {
				packets = nil
			}
		}
	}
}

// take publishes a damaged copy of a frame.
func (v *vandal) take(f client.Frame) {
	if f.Track.PublicationRef != v.from || f.Track.Tile != 0 || v.err != nil {
		return
	}
	out := client.OutgoingFrame{Number: uint32(v.sent), Capture: time.Now(), Codec: f.Codec,
		Data: damage(f.Data, v.random)}
	switch taken, err := v.session.Publisher(objectName).WriteFrame(0, 0, out); {
	case taken:
		v.sent++
	case err != nil && !errors.Is(err, client.ErrNotConnected):
		v.err = err
	}
}

// note requests the lowest quality of one tile as soon as a tile exists, and no other tile.
func (v *vandal) note(e client.Event) {
	joined, ok := e.(client.Published)
	var tiles int
	switch {
	case ok && joined.Participant == v.from.Participant:
		tiles = len(joined.Publication.Tiles)
	default:
		if _, connected := e.(client.Connected); !connected {
			return
		}
		for _, p := range v.session.Participants() {
			if p.Identity == v.from.Participant && len(p.Publications) > 0 {
				tiles = len(p.Publications[0].Tiles)
			}
		}
	}
	var choices []signal.Choice
	for tile := range tiles {
		quality := volumetric.QualityOff
		if tile == 0 {
			quality = 0
		}
		choices = append(choices, signal.Choice{PublicationRef: v.from, Tile: &tile, Quality: signal.Only(quality)})
	}
	if len(choices) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), askPatience)
	defer cancel()
	if err := v.session.SetQuality(ctx, choices...); err != nil && v.session.Err() == nil {
		v.err = err
	}
}

// askPatience bounds the wait for an answer of the server.
const askPatience = 10 * time.Second

// leave ends the vandal's session.
func (v *vandal) leave() error {
	if v.session == nil {
		return nil
	}
	_ = v.session.Close()
	v.running.Wait()
	return v.err
}
