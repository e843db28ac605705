package guest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/payload"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// MaxFrameBytes is the maximum that fits into the fragments of one frame. Servers accept less, by
// default 16 MiB.
const MaxFrameBytes = math.MaxUint16*payload.FragmentSize - payload.PrefixSize

// Publisher sends the frames of a publication in order.
type Publisher struct {
	guest     *Guest
	publisher *client.Publisher
	// turns are by tile × qualities + quality.
	turns    []turn
	captures captures
	// speaker is set if the publication is sound.
	speaker *speaker
}

// turn is the order of frames on one track.
type turn struct {
	mu    sync.Mutex
	begun bool
	last  uint32
}

// Publish announces a publication, and waits until the server has accepted the publication.
func (g *Guest) Publish(publication volumetric.Publication) (*Publisher, error) {
	if err := check(&signal.Publish{Publication: publication}); err != nil {
		return nil, err
	}
	p := &Publisher{guest: g, turns: make([]turn, publication.TrackCount())}
	err := g.ask(fmt.Sprintf("publish %q", publication.Name), func(ctx context.Context) (err error) {
		p.publisher, err = g.session.Publish(ctx, publication)
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Guest returns the guest of the publisher.
func (p *Publisher) Guest() *Guest { return p.guest }

// Unpublish ends the publication, and waits for the confirmation of the server.
func (p *Publisher) Unpublish() error {
	name := p.publisher.Publication().Name
	unpublish := func(ctx context.Context) error { return p.guest.session.Unpublish(ctx, name) }
	return p.guest.ask(fmt.Sprintf("unpublish %q", name), unpublish)
}

// track returns the index of a track.
func (p *Publisher) track(tile int, quality volumetric.Quality) (int, error) {
	publication := p.publisher.Publication()
	if tile < 0 || tile >= len(publication.Tiles) || quality < 0 || quality > publication.Highest() {
		return 0, fmt.Errorf("%w: %q tile %d quality %d, expected 0 to %d and 0 to %d", client.ErrNotPublished,
			publication.Name, tile, quality, len(publication.Tiles)-1, publication.Highest())
	}
	return tile*len(publication.Qualities) + int(quality), nil
}

// Write sends a frame. The first frame of a number sets the capture time of all frames with this
// number; the default is now. A number that is not above the last number of the track is rejected
// with ErrOrder. An unsent frame may be written again.
func (p *Publisher) Write(tile int, quality volumetric.Quality, frame client.OutgoingFrame) error {
	track, err := p.track(tile, quality)
	if err != nil {
		return err
	}
	if p.speaker != nil {
		return fmt.Errorf("%w: %q is sound, expected frames", ErrNotSound, p.publisher.Publication().Name)
	}
	if len(frame.Data) > MaxFrameBytes {
		return fmt.Errorf("%w: %d bytes, expected at most %d", ErrTooLarge, len(frame.Data), MaxFrameBytes)
	}
	t := &p.turns[track]
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begun && int32(frame.Number-t.last) <= 0 {
		return fmt.Errorf(
			"%w: %q tile %d quality %d: number %d after %d",
			ErrOrder,
			p.publisher.Publication().Name,
			tile,
			quality,
			frame.Number,
			t.last,
		)
	}
	if p.guest.session.Err() != nil {
		return p.guest.ended()
	}
	if frame.Capture.IsZero() {
		frame.Capture = time.Now()
	}
	frame.Capture = p.captures.of(frame.Number, frame.Capture)
	sent := false
	defer func() { p.captures.settle(frame.Number, frame.Capture, sent) }()
	if p.publisher.Publication().VR2Gather {
		header := vr2gather.NewFrameHeader(frame.Codec, len(frame.Data), p.guest.session.ServerTime(frame.Capture))
		frame.Data = append(header.Append(make([]byte, 0, vr2gather.FrameHeaderSize+len(frame.Data))), frame.Data...)
	}
	// As in the session's counts, a frame without a receiver counts as written and uses a number.
	_, err = p.publisher.WriteFrame(tile, quality, frame)
	switch {
	case errors.Is(err, payload.ErrFrame):
		return fmt.Errorf("%w: %w", ErrTooLarge, err)
	case err != nil:
		return err
	}
	t.begun, t.last, sent = true, frame.Number, true
	p.guest.written.Add(1)
	return nil
}

// Wanted reports whether a tile should be encoded at a quality.
func (p *Publisher) Wanted(tile int, quality volumetric.Quality) (bool, error) {
	if _, err := p.track(tile, quality); err != nil {
		return false, err
	}
	return p.publisher.Wanted(tile, quality), nil
}

// SetPose sends the pose of the object to the other participants.
func (p *Publisher) SetPose(pose client.Pose) error {
	publication := p.publisher.Publication()
	if n := len(pose.Boxes); n != 0 && n != len(publication.Tiles) {
		return fmt.Errorf(
			"%w: %q has %d boxes, expected one for each of %d tiles, or none",
			ErrArgument,
			publication.Name,
			n,
			len(publication.Tiles),
		)
	}
	if err := check(stand(publication.Name, pose)); err != nil {
		return err
	}
	if p.guest.session.Err() != nil {
		return p.guest.ended()
	}
	p.publisher.SetPose(pose)
	return nil
}
