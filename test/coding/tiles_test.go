package coding

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/test/claim"
)

const (
	tilePoints = 100_000
	tileCount  = 4
	tileCores  = 2
	// maxEncode and maxDecode limit the median time for all tiles of a frame, in milliseconds: Draco alone takes 21 and
	// 9 on one thread.
	maxEncode, maxDecode = 14, 7
)

// TestTiles measures the time to code all tiles of a frame on two processors, and for comparison the whole frame on
// one.
func TestTiles(t *testing.T) {
	draco := needDraco(t)
	cloud, params := subject(t, tilePoints)
	tiling, err := pointcloud.NewTiling(tileCount, params.Box)
	if err != nil {
		t.Fatal(err)
	}
	tiles := make([]pointcloud.Cloud, tileCount)
	tiling.Split(cloud, tiles)
	timed(t, claim.Information("cut into tiles", milliseconds(median(func() { tiling.Split(cloud, tiles) })), "ms"))
	one := newBench(t, draco, params, 1)
	both := newBench(t, draco, params, tileCores)
	for _, speed := range speeds {
		one.params.Speed, both.params.Speed = speed, speed
		name := func(way string) string {
			return fmt.Sprintf("%s of %d points in %d tiles on %d processors at speed %d", way, cloud.Len(), tileCount,
				tileCores, speed)
		}
		encode, decode := both.measure(tiles)
		timed(t, claim.AtMost(name("encode"), milliseconds(encode), "ms", maxEncode))
		timed(t, claim.AtMost(name("decode"), milliseconds(decode), "ms", maxDecode))
		measured(t, claim.Exactly(fmt.Sprintf("points decoded at speed %d", speed), int64(both.points(tileCount)), "",
			int64(cloud.Len())))
		encode, decode = one.measure([]pointcloud.Cloud{*cloud})
		timed(t, claim.Information(fmt.Sprintf("encode whole on one processor at speed %d", speed),
			milliseconds(encode), "ms"))
		timed(t, claim.Information(fmt.Sprintf("decode whole on one processor at speed %d", speed),
			milliseconds(decode), "ms"))
	}
}

// bench codes tiles on several processors, each of which takes the next remaining tile.
type bench struct {
	t        *testing.T
	params   codec.Params
	encoders []codec.Encoder
	decoders []codec.Decoder
	frames   [tileCount][]byte
	decoded  [tileCount]pointcloud.Cloud
}

func newBench(t *testing.T, c codec.Codec, params codec.Params, workers int) *bench {
	b := &bench{t: t, params: params}
	for range workers {
		b.encoders, b.decoders = append(b.encoders, c.NewEncoder()), append(b.decoders, c.NewDecoder())
	}
	return b
}

// measure returns the median times of encoding and of decoding all tiles.
func (b *bench) measure(tiles []pointcloud.Cloud) (encode, decode time.Duration) {
	encode = median(func() {
		b.each(len(tiles), func(worker, tile int) (err error) {
			b.frames[tile], err = b.encoders[worker].Encode(b.frames[tile][:0], &tiles[tile], b.params)
			return err
		})
	})
	decode = median(func() {
		b.each(len(tiles), func(worker, tile int) error {
			return b.decoders[worker].Decode(&b.decoded[tile],
				b.frames[tile])
		})
	})
	return encode, decode
}

// each processes every tile on one of the processors.
func (b *bench) each(tiles int, do func(worker, tile int) error) {
	var next atomic.Int32
	var group sync.WaitGroup
	for worker := range b.encoders {
		group.Go(func() {
			for tile := int(next.Add(1)) - 1; tile < tiles; tile = int(next.Add(1)) - 1 {
				if err := do(worker, tile); err != nil {
					b.t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func (b *bench) points(tiles int) (sum int) {
	for i := range tiles {
		sum += b.decoded[i].Len()
	}
	return sum
}

// median returns the median duration of a function, run 101 times with -full, after one run that is not counted.
func median(do func()) time.Duration {
	turns := 3
	if *full {
		turns = 101
	}
	do()
	times := make([]time.Duration, turns)
	for i := range times {
		begun := time.Now()
		do()
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	return times[turns/2]
}
