package interop

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
)

// programme is what a client publishes: so many tiles and qualities, in frames that are larger the higher the quality, and sound.
type programme struct {
	Client, Tiles, Qualities int
	// Bytes is the size of a frame at the lowest quality, Interval the time between two captures.
	Bytes    int
	Interval time.Duration
	// Steady leaves nothing out.
	Steady bool
}

// soundBytes is the size of one of VR2Gather's frames of sound.
const soundBytes = 126

// conversation is what the people of most tests publish: 9 tiles at 3 qualities. In full that is 30 frames per second of 5.4 to 19.4 kB, 73 Mbit/s in all, as the people
// send for whom VR2Gather's peer was made. A busy machine with the race detector has no time for that: packets overflow the buffers of its sockets.
func conversation(client int) programme {
	p := programme{Client: client, Tiles: 9, Qualities: 3, Bytes: 1200, Interval: time.Second / 15}
	if *full {
		p.Bytes, p.Interval = 5400, time.Second/30
	}
	return p
}

// rate is how often is captured, per second.
func (p programme) rate() float64 { return float64(time.Second) / float64(p.Interval) }

// tile is the frame of a tile at an instant. Sizes vary.
func (p programme) tile(tile, quality int, instant uint32) content {
	size := p.Bytes*(quality+1) + int(instant%7)*(p.Bytes/10)
	return content{Client: p.Client, Tile: tile, Quality: quality, Instant: instant, Size: size}
}

// skips tells whether a quality leaves out an instant, as an encoder that is late does. Each quality leaves out others, so that the old peers' own frame
// numbers drift apart.
func (p programme) skips(tile, quality int, instant uint32) bool {
	return !p.Steady && p.Qualities > 1 && (int(instant)+tile)%11 == 5*quality
}

// publish has an old peer publish a programme until the test or the peer ends.
func (p programme) publish(t *testing.T, peer *oldpeer.Peer) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() {
		// Tiles are encoded one after the other: a burst of all of them would overflow the buffers of a socket as the system makes it.
		ticker := time.NewTicker(p.Interval / time.Duration(p.Tiles))
		defer ticker.Stop()
		var capture time.Time
		for turn := 0; ; turn++ {
			select {
			case <-ticker.C:
			case <-peer.Dead():
				return
			case <-ctx.Done():
				return
			}
			tile, instant := turn%p.Tiles, uint32(turn/p.Tiles)
			if tile == 0 {
				capture = time.Now()
			}
			p.publishTile(peer, tile, instant, capture)
		}
	})
}

// publishTile publishes a tile at one instant, and the sound with the first. What is not sent because media does not flow is not missed.
func (p programme) publishTile(peer *oldpeer.Peer, tile int, instant uint32, capture time.Time) {
	for quality := range p.Qualities {
		if !p.skips(tile, quality, instant) {
			_ = peer.WriteTile(tile, quality, p.tile(tile, quality, instant).frame(capture))
		}
	}
	if tile == 0 {
		_ = peer.WriteAudio(content{Client: p.Client, Tile: oldpeer.SoundTile, Instant: instant, Size: soundBytes}.frame(capture))
	}
}
