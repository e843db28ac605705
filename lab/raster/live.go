package raster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/sfu/demand"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/codec/ladder"
	"github.com/volsfu/volsfu/pkg/codec/rgbd"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
)

// liveTiles is the number of tiles of live publications, and liveName their name.
const (
	liveTiles = 4
	liveName  = "body"
)

// content encodes the tiles of a film in one codec. encode appends a tile of a frame at a quality to dst.
type content struct {
	codec     codec.Codec
	qualities int
	encode    func(dst []byte, frame, tile, quality int) ([]byte, error)
}

// rasters returns the film in rgbd with the given qualities.
func (f *film) rasters(levels []ladder.Raster) (content, error) {
	rects, err := rgbd.Rectangles(&f.camera, &f.frames[0].Rasters[0], liveTiles)
	encoder := rgbd.Codec.NewEncoder().(codec.RasterEncoder)
	encode := func(dst []byte, frame, tile, quality int) ([]byte, error) {
		l := levels[quality]
		dst, _, err := encoder.EncodeRaster(dst, &f.camera, &f.frames[frame].Rasters[0], codec.RasterParams{
			Rect: rects[tile], Reduction: l.Reduction, Step: l.Step, ColorQuality: l.ColorQuality})
		return dst, err
	}
	return content{codec: rgbd.Codec, qualities: len(levels), encode: encode}, err
}

// clouds returns the film in draco at 11 bits and speed 10. Tiles are slabs, since the points are in the order of rows.
func (f *film) clouds() (content, error) {
	c, err := codec.ByName("draco")
	if err != nil {
		return content{}, err
	}
	encoder, params := c.NewEncoder(), codec.Params{PositionBits: 11, Speed: 10, Box: f.box}
	return content{codec: c, qualities: 1, encode: func(dst []byte, frame, tile, _ int) ([]byte, error) {
		cloud := &f.frames[frame].Cloud
		view := cloud.View(tile*cloud.Len()/liveTiles, (tile+1)*cloud.Len()/liveTiles)
		return encoder.Encode(dst, &view, params)
	}}, nil
}

// live is a publisher and a receiver at a server in this process, over links that lose packets. show runs the
// goroutines of publish and receive, and waits until they have ended.
type live struct {
	emulation          *testbed.Emulation
	publisher, watcher *client.Session
	film               *film

	mu  sync.Mutex
	sum reception
	err error
}

// reception counts the received frames of tiles. switched counts changes of quality of a tile.
type reception struct {
	decoded, failed, switched int64
	latency                   lab.Distribution
	quality                   map[int]volumetric.Quality
}

// accessDelay is the delay of each access link in each direction.
const accessDelay = 10 * time.Millisecond

// openLive joins both peers. Every packet is lost with the given probability on each link.
func openLive(ctx context.Context, f *film, loss float64) (*live, error) {
	settings := testbed.ConferenceConfig()
	settings.Forward.Congestion.Min, settings.Forward.Congestion.Start = testbed.Everything, testbed.Everything
	settings.Rooms.Suppression.Policy = demand.Warm
	emulation, err := testbed.NewEmulation(settings, 1)
	if err != nil {
		return nil, err
	}
	l := &live{emulation: emulation, film: f, sum: reception{quality: make(map[int]volumetric.Quality)}}
	access := netem.DefaultConfig()
	access.Delay, access.Loss = accessDelay, loss
	l.publisher, err = l.join(ctx, access, client.Config{Identity: "alice", MinUplink: testbed.Everything})
	if err == nil {
		l.watcher, err = l.join(ctx, access, client.Config{Identity: "bob", Receive: true})
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// join adds a peer on a host of its own and waits until media flows.
func (l *live) join(ctx context.Context, access netem.Config, c client.Config) (*client.Session, error) {
	host, err := l.emulation.Host(access, access)
	if err != nil {
		return nil, err
	}
	var media net.PacketConn
	if media, err = l.emulation.Network.Listen(netip.AddrPortFrom(host, 0)); err != nil {
		return nil, err
	}
	c.URL, c.Room, c.PacketConn = l.emulation.Server.URL(), "room", media
	return client.Join(ctx, c)
}

// close ends everything.
func (l *live) close() {
	for _, s := range []*client.Session{l.publisher, l.watcher} {
		if s != nil {
			_ = s.Close()
		}
	}
	l.emulation.Close()
}

// fail notes the first error.
func (l *live) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

// failure returns the first error.
func (l *live) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// show publishes a content while during runs, and returns the received frames and the counters of the client.
func (l *live) show(ctx context.Context, c content, during func(context.Context) error) (reception, client.FrameCounts,
	error) {
	description := volumetric.Publication{Name: liveName, Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		FrameRate: frameRate, Tiles: make([]volumetric.Tile, liveTiles),
		Qualities: make([]volumetric.QualityLevel, c.qualities)}
	for q := range description.Qualities {
		// Rates of about the seated person's, which are below the capacity of every link here.
		description.Qualities[q] = volumetric.QualityLevel{Name: fmt.Sprint("q", q),
			Bitrate: volumetric.Bitrate(1+q) * 1_000_000}
	}
	publisher, err := l.publisher.Publish(ctx, description)
	if err != nil {
		return reception{}, client.FrameCounts{}, err
	}
	ending, end := context.WithCancel(ctx)
	var sides sync.WaitGroup
	sides.Go(func() { l.publish(ending, publisher, c) })
	receiving, stop := context.WithCancel(ctx)
	sides.Go(func() { l.receive(receiving, c) })
	defer sides.Wait()
	defer stop()
	defer end()
	if err := l.warm(ctx); err != nil {
		return reception{}, client.FrameCounts{}, err
	}
	before := l.counts()
	if err := during(ctx); err != nil {
		return reception{}, client.FrameCounts{}, err
	}
	end()
	// Longer than the deadline of frames.
	if err := lab.Pause(ctx, time.Second); err != nil {
		return reception{}, client.FrameCounts{}, err
	}
	counts := l.counts()
	counts.Expected -= before.Expected
	counts.Complete -= before.Complete
	counts.Undecodable -= before.Undecodable
	counts.Missing -= before.Missing
	l.mu.Lock()
	sum := l.sum
	l.mu.Unlock()
	if err := l.publisher.Unpublish(ctx, liveName); err != nil {
		return sum, counts, err
	}
	return sum, counts, l.failure()
}

// warmFrames is the number of frames of all tiles before a measurement.
const warmFrames = 20 * liveTiles

// warm waits until frames arrive and begins to count.
func (l *live) warm(ctx context.Context) error {
	for {
		l.mu.Lock()
		if l.err != nil || l.sum.decoded >= warmFrames {
			err := l.err
			l.sum = reception{quality: make(map[int]volumetric.Quality)}
			l.mu.Unlock()
			return err
		}
		l.mu.Unlock()
		if err := lab.Pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// counts returns the receiver's counters of all tiles together.
func (l *live) counts() (sum client.FrameCounts) {
	for _, t := range l.watcher.Stats() {
		sum.Expected += t.Expected
		sum.Complete += t.Complete
		sum.Undecodable += t.Undecodable
		sum.Missing += t.Missing
	}
	return sum
}

// publish encodes and sends the film in a loop. The capture time is that before encoding.
func (l *live) publish(ctx context.Context, publisher *client.Publisher, c content) {
	ticker := time.NewTicker(time.Second / frameRate)
	defer ticker.Stop()
	var data []byte
	for number := uint32(0); ; number++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		captured := time.Now()
		for tile := range liveTiles {
			for quality := range c.qualities {
				var err error
				if data, err = c.encode(data[:0], int(number)%len(l.film.frames), tile, quality); err != nil {
					l.fail(err)
					return
				}
				// A track that is not negotiated yet has no receiver.
				_, _ = publisher.WriteFrame(tile, volumetric.Quality(quality), client.OutgoingFrame{Number: number,
					Capture: captured, Codec: c.codec.FourCC(), Data: data})
			}
		}
	}
}

// receive decodes the frames.
func (l *live) receive(ctx context.Context, c content) {
	decoder := c.codec.NewDecoder()
	var cloud pointcloud.Cloud
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.watcher.Done():
			return
		case <-l.watcher.Events():
		case f := <-l.watcher.Frames():
			if f.Codec != c.codec.FourCC() {
				continue
			}
			err := decoder.Decode(&cloud, f.Data)
			age := l.watcher.ServerTime(time.Now()).Sub(f.Capture)
			l.mu.Lock()
			if err != nil {
				l.sum.failed++
			} else {
				l.sum.decoded++
				l.sum.latency.Add(age)
			}
			if last, seen := l.sum.quality[f.Track.Tile]; seen && last != f.Track.Quality {
				l.sum.switched++
			}
			l.sum.quality[f.Track.Tile] = f.Track.Quality
			l.mu.Unlock()
		}
	}
}
