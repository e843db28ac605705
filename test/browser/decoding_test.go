package browser

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/wait"
)

// decoding counts the frames that a client decodes.
type decoding struct {
	session *client.Session

	mu sync.Mutex
	// decoded counts frames by quality, failed those that do not decode, with the last error.
	decoded map[volumetric.Quality]int
	failed  int
	reason  error
	// last is the newest of them.
	last pointcloud.Cloud
}

// decode lets a client join room "demo" that decodes everything, and waits for packets as long as a busy machine may
// delay them.
func decode(t *testing.T, s *server.Server) *decoding {
	t.Helper()
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: "watcher",
		Receive: true, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	d := &decoding{session: session, decoded: make(map[volumetric.Quality]int)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		decoders := make(map[codec.FourCC]codec.Decoder)
		var cloud pointcloud.Cloud
		for f := range session.Frames() {
			if decoders[f.Codec] == nil {
				c, err := codec.ByFourCC(f.Codec)
				if err != nil {
					d.note(&f, nil, err)
					continue
				}
				decoders[f.Codec] = c.NewDecoder()
			}
			err := decoders[f.Codec].Decode(&cloud, f.Data)
			if err == nil && cloud.Len() == 0 {
				err = errors.New("it has no points")
			}
			d.note(&f, &cloud, err)
		}
	}()
	t.Cleanup(func() {
		_ = session.Close()
		<-done
	})
	return d
}

// note counts a frame.
func (d *decoding) note(f *client.Frame, cloud *pointcloud.Cloud, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.failed, d.reason = d.failed+1, err
		return
	}
	d.decoded[f.Track.Quality]++
	d.last = pointcloud.Cloud{Positions: slices.Clone(cloud.Positions), Colors: slices.Clone(cloud.Colors)}
}

// newest returns the points of the newest frame.
func (d *decoding) newest() pointcloud.Cloud {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// wait waits until the given number of further frames has been decoded.
func (d *decoding) wait(t *testing.T, what string, more int) {
	t.Helper()
	count := func() (n int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, decoded := range d.decoded {
			n += decoded
		}
		return n
	}
	before := count()
	wait.Until(t, what, func() bool { return count() >= before+more })
}

// check checks that every received frame could be decoded.
func (d *decoding) check(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed > 0 {
		t.Errorf("%d frames do not decode: %v", d.failed, d.reason)
	}
	for _, tile := range d.session.Stats() {
		if tile.Undecodable > 0 {
			t.Errorf("%s: %d frames arrived incomplete", tile.Track, tile.Undecodable)
		}
	}
}
