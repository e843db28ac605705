package interop

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/test/interop/oldpeer"
)

// programme describes a client's publications: tiles and qualities, with larger frames at higher qualities, and sound.
type programme struct {
	Client, Tiles, Qualities int
	// Bytes is the size of a frame at the lowest quality, Interval the time between two captures.
	Bytes    int
	Interval time.Duration
	// Steady skips no frames.
	Steady bool
}

// soundBytes is the size of one of VR2Gather's frames of sound.
const soundBytes = 126

// conversation is the programme of most tests: 9 tiles at 3 qualities. With -full this is 30 frames per second of 5.4
// to 19.4 kB, 73 Mbit/s in all, like the captures for which VR2Gather's peer was made. A busy machine with the race
// detector is too slow for this: packets overflow the buffers of its sockets.
func conversation(client int) programme {
	p := programme{Client: client, Tiles: 9, Qualities: 3, Bytes: 1200, Interval: time.Second / 15}
	if *full {
		p.Bytes, p.Interval = 5400, time.Second/30
	}
	return p
}

// rate returns the captures per second.
func (p programme) rate() float64 { return float64(time.Second) / float64(p.Interval) }

// tile returns the frame of a tile at an instant. Sizes vary.
func (p programme) tile(tile, quality int, instant uint32) content {
	size := p.Bytes*(quality+1) + int(instant%7)*(p.Bytes/10)
	return content{Client: p.Client, Tile: tile, Quality: quality, Instant: instant, Size: size}
}

// skips reports whether a quality skips an instant, as a late encoder does. Each quality skips different ones, so that
// the old peers' frame numbers diverge.
func (p programme) skips(tile, quality int, instant uint32) bool {
	return !p.Steady && p.Qualities > 1 && (int(instant)+tile)%11 == 5*quality
}

// publish lets an old peer publish a programme until the test or the peer ends.
func (p programme) publish(t *testing.T, peer *oldpeer.Peer) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	running.Go(func() {
		// Tiles are sent one after the other: a burst of all of them would overflow default socket buffers.
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

// publishTile publishes a tile at one instant, and the sound with the first tile. Frames that cannot be sent yet are
// not counted as missing.
func (p programme) publishTile(peer *oldpeer.Peer, tile int, instant uint32, capture time.Time) {
	for quality := range p.Qualities {
		if !p.skips(tile, quality, instant) {
			_ = peer.WriteTile(tile, quality, p.tile(tile, quality, instant).frame(capture))
		}
	}
	if tile == 0 {
		_ = peer.WriteAudio(content{Client: p.Client, Tile: oldpeer.SoundTile, Instant: instant,
			Size: soundBytes}.frame(capture))
	}
}
