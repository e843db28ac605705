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

// voice accepts audio packets. *client.Publisher implements it.
type voice interface {
	WritePackets(tile int, quality volumetric.Quality, capture time.Time, payloads [][]byte) (taken bool, err error)
}

// soundCounts counts audio packets.
type soundCounts struct {
	sent, unsent atomic.Int64
}

// speak sends the recording in a loop, each packet at the begin time, until the context ends.
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
			b.spoken.sent.Add(1)
		case err == nil: // no receiver takes the packet
		case errors.Is(err, client.ErrNotConnected):
			b.spoken.unsent.Add(1)
		default:
			return err
		}
	}
}

// openSound opens a recording; openSound returns nil for an empty name.
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
