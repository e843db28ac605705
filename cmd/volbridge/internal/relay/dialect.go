package relay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/volsfu/volsfu/cmd/volbridge/internal/bridge"
	"github.com/volsfu/volsfu/cmd/volbridge/internal/dialect"
	"github.com/volsfu/volsfu/internal/peer"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/pkg/vr2gather"
)

// runDialectSession runs one session with a server of VR2Gather's dialect, from joining to the end.
func (s *Relay) runDialectSession(ctx context.Context) error {
	received := newDialectReceiver(s.settings.output, s.tally)
	query := vr2gather.Query{Client: s.settings.client, Tiles: s.settings.layout.Tiles,
		Qualities: s.settings.layout.Qualities}
	trust, err := s.settings.room.TLS()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, peer.JoinTimeout)
	session, err := dialect.Join(limited, dialect.Config{
		URL: s.settings.room.Server, Token: s.settings.room.Token, TLS: trust, Query: query,
		Sink: received, Log: s.log,
	})
	cancel()
	if err != nil {
		return err
	}
	s.figures.update(func(c *counts) { c.sessions++ })
	s.log.Info("joined", "dialect", dialectVR2Gather, "client", query.Client, "tiles", query.Tiles, "qualities",
		query.Qualities)
	s.downward.outlet.Restart()
	ctx, cancel = context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.sendDialect(ctx, session) })
	s.serveDialect(ctx, session, received)
	ended := session.Err()
	cancel()
	session.Close()
	running.Wait()
	return fmt.Errorf("%w: %w", errEnded, ended)
}

// serveDialect serves the connector until the session ends. Audio has priority; at most one burst of datagrams is sent
// before it.
func (s *Relay) serveDialect(ctx context.Context, session *dialect.Session, received *dialectReceiver) {
	var chosen <-chan string
	if s.local != nil {
		chosen = s.local.Choices()
	}
	sent := ""
	choose := func() (ignored int) {
		text, ignored := bridge.ExpandChoices(s.downward.chosen, received.clients())
		if !s.settings.output {
			text = bridge.ChoicesOff(received.clients())
		}
		if text != "" && text != sent {
			sent = text
			session.Choose(text)
		}
		return ignored
	}
	choose()
	for {
		select {
		case sound := <-received.sounds:
			s.downward.deliverAudio(sound)
			continue
		default:
		}
		select {
		case sound := <-received.sounds:
			s.downward.deliverAudio(sound)
		case f := <-received.frames:
			s.downward.deliver(ctx, f, func(long time.Duration) {
				s.downward.forwardAudioFor(ctx, long, received.sounds)
			})
			s.figures.update(func(c *counts) {
				c.down.Add(time.Since(f.Arrival))
				c.received.Expected++
				c.received.Complete++
			})
		case text := <-chosen:
			// A repeated message is sent again, because a publisher may have left and returned.
			s.downward.chosen, sent = text, ""
			for range choose() {
				s.tally.Add(bridge.DropChoice)
			}
		case <-received.opened:
			choose()
		case <-session.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// forwardAudioFor forwards audio for the given time.
func (d *downward) forwardAudioFor(ctx context.Context, long time.Duration, sounds <-chan *bridge.Received) {
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		select {
		case sound := <-sounds:
			d.deliverAudio(sound)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// dialectSender sends the connector's frames to a server of VR2Gather's dialect. The sender is owned by one goroutine.
type dialectSender struct {
	relay   *Relay
	session *dialect.Session
	pace    bridge.Pace
	// offset is the random offset of RTP timestamps.
	offset uint32
}

// lateFrame is the longest time for which a tile frame may wait for the pacer.
const lateFrame = 100 * time.Millisecond

// sendDialect sends the connector's frames to the server.
func (s *Relay) sendDialect(ctx context.Context, session *dialect.Session) {
	v := &dialectSender{relay: s, session: session, pace: bridge.NewPace(volumetric.Bitrate(s.settings.maxBitrate)),
		offset: rand.Uint32()}
	for {
		select {
		case f := <-s.frames:
			v.send(ctx, f)
		case <-ctx.Done():
			return
		}
	}
}

// send sends one frame.
func (v *dialectSender) send(ctx context.Context, f *bridge.Frame) {
	u := v.relay.upward
	frame := vr2gather.Packet{Kind: f.Kind, Client: u.settings.client, Tile: uint32(f.Tile), Quality: uint32(f.Quality)}
	capture := f.Arrival
	if f.Kind == volumetric.KindAudio {
		frame.Frame = u.audioFrame
		u.audioFrame++
	} else {
		if time.Since(f.Arrival) > lateFrame {
			u.tally.Add(bridge.DropBehind)
			return
		}
		frame.Frame, capture = u.instants.Next(f.Track, f.Header.TimestampMS, f.Arrival)
	}
	timestamp := v.offset + dialectTime(capture)
	allowed := 0
	for p := range vr2gather.Cut(frame, f.Data) {
		for allowed == 0 && f.Kind != volumetric.KindAudio {
			left := (len(f.Data) - int(p.Offset) + vr2gather.MaxVideoData - 1) / vr2gather.MaxVideoData
			var wait time.Duration
			if allowed, wait = v.pace.Take(time.Now(), left); allowed > 0 {
				break
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
		}
		allowed--
		if err := v.session.WritePacket(&p, timestamp); err != nil {
			u.tally.Add(bridge.DropUnsent)
			return
		}
	}
	v.relay.figures.recordUp(time.Since(f.Arrival))
}

// dialectTime converts a time to an RTP timestamp of 90 kHz.
func dialectTime(at time.Time) uint32 { return uint32(at.UnixMicro() * 9 / 100) }
