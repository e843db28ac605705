package conversation

import (
	"context"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// sending is the sender's loop.
type sending struct {
	parties   *parties
	publisher *client.Publisher
	frame     []byte
	number    uint32
	next      time.Time
	// due counts captures that were due, written captures that were passed to the client.
	due, written int
}

func (p *parties) newSending() *sending {
	return &sending{parties: p, publisher: p.sender.Publisher(publication), next: time.Now()}
}

// send captures and sends while wanted returns true. Frames that a stalled machine could not send in time are left out,
// as a camera would.
func (s *sending) send(ctx context.Context, wanted func() bool) error {
	interval := time.Duration(float64(time.Second) / s.parties.rate)
	for wanted() {
		if late := time.Since(s.next); late > interval {
			missed := late / interval
			s.due += int(missed)
			s.next = s.next.Add(missed * interval)
		}
		if err := lab.Pause(ctx, time.Until(s.next)); err != nil {
			return err
		}
		s.due++
		acquired := time.Now()
		s.frame = s.parties.camera.compose(s.frame)
		composed := time.Now()
		taken, _ := s.publisher.WriteFrame(0, 0, client.OutgoingFrame{
			Number: s.number, Capture: s.next, Codec: volumetric.FourCC{'r', 'g', 'b', 'd'}, Data: s.frame,
			Stages: client.Stages{Acquired: acquired, TilingBegan: acquired, Tiled: acquired, EncodingBegan: acquired,
				Encoded: composed},
		})
		if taken {
			s.number++
			s.written++
		}
		s.next = s.next.Add(interval)
	}
	return nil
}
