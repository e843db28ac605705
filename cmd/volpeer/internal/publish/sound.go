package publish

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/volsfu/volsfu/internal/peer/opus"
	"github.com/volsfu/volsfu/pkg/capture"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// voice takes packets of sound; *client.Publisher is one.
type voice interface {
	WritePackets(tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte) (taken bool, err error)
}

// soundCounts are packets of sound.
type soundCounts struct {
	sent, unsent atomic.Int64
}

// speak sends the sound in a loop, each packet when it begins, until the context ends.
func (b *broadcast) speak(ctx context.Context) error {
	playback := opus.NewPlayback(b.sound, time.Now())
	clock := capture.SystemClock{}
	for {
		if err := clock.Wait(ctx, playback.Due()); err != nil {
			return nil
		}
		packet, begin, ok := playback.Next(clock.Now())
		if !ok {
			continue
		}
		switch taken, err := b.voice.WritePackets(0, 0, begin, [][]byte{packet.Data}); {
		case taken:
			b.heard.sent.Add(1)
		case err == nil: // nobody listens
		case errors.Is(err, client.ErrNotConnected):
			b.heard.unsent.Add(1)
		default:
			return err
		}
	}
}

// openSound is a recording, nil for none.
func openSound(name string) (*opus.Recording, error) {
	switch name {
	case "":
		return nil, nil
	case "tone":
		return opus.Tone(), nil
	default:
		return opus.Open(name)
	}
}
