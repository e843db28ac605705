package client_test

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// server returns the server of the examples, which runs in this process until the process ends.
var server = sync.OnceValue(func() *testbed.Conference {
	settings := testbed.ConferenceConfig()
	testbed.Unhurried(&settings)
	c, err := testbed.NewConference(settings, nil, zap.NewNop())
	if err != nil {
		panic("no server for the examples: " + err.Error())
	}
	return c
})

// serverURL returns the address of the server.
func serverURL() string { return server().Server.URL() }

// body returns a publication of two tiles at two qualities.
func body() volumetric.Publication {
	return volumetric.Publication{
		Name: "body", Kind: volumetric.KindVideo, Mode: volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		FrameRate: 30,
		Tiles:     []volumetric.Tile{{Label: "front"}, {Label: "back"}},
		Qualities: []volumetric.QualityLevel{{Name: "low"}, {Name: "high"}},
	}
}

// someTile encodes a tile of a few points, 1,000 of them at the lower quality.
func someTile(quality int) []byte {
	var cloud pointcloud.Cloud
	for i := range 1000 * (quality + 1) {
		cloud.Append([3]float32{float32(i) / 1000, 1, 0}, [3]uint8{uint8(i), 0, 0})
	}
	box := volumetric.BoundingBox{Max: [3]float32{2, 2, 2}}
	data, err := codec.Raw.NewEncoder().Encode(nil, &cloud, codec.Params{PositionBits: 10, Box: box})
	if err != nil {
		panic("the cloud of the examples cannot be encoded: " + err.Error())
	}
	return data
}

// watch ends the process if an example does not end in time, long before the tests' own timeout. The example stops the
// timer.
func watch() *time.Timer {
	return time.AfterFunc(5*time.Minute, func() { panic("an example has not come to its end within five minutes") })
}

// company is a participant, grace, who publishes a body in a room until leave.
type company struct {
	session *client.Session
	stop    context.CancelFunc
	running sync.WaitGroup
	watch   *time.Timer
}

// invite makes grace join a room, and waits until she publishes.
func invite(room string) *company {
	ctx, cancel := context.WithTimeout(context.Background(), wait.Patience)
	defer cancel()
	session, err := client.Join(ctx, client.Config{
		URL: serverURL(), Room: room, Identity: "grace", Publications: []volumetric.Publication{body()},
		MinUplink: testbed.Everything, QueueBudget: signal.MaxDeadline,
	})
	if err != nil {
		panic("grace cannot join: " + err.Error())
	}
	for e := range session.Events() {
		if _, connected := e.(client.Connected); connected {
			break
		}
	}
	publishing, stop := context.WithCancel(context.Background())
	c := &company{session: session, stop: stop, watch: watch()}
	c.running.Go(func() { c.publish(publishing) })
	return c
}

func (c *company) publish(ctx context.Context) {
	tiles := [][]byte{someTile(0), someTile(1)}
	ticker := time.NewTicker(time.Second / 30)
	defer ticker.Stop()
	for number := uint32(1); ; number++ {
		select {
		case now := <-ticker.C:
			for tile := range 2 {
				for q, data := range tiles {
					frame := client.OutgoingFrame{Number: number, Capture: now, Codec: codec.Raw.FourCC(), Data: data}
					_, _ = c.session.Publisher("body").WriteFrame(tile, volumetric.Quality(q), frame)
				}
			}
		case <-ctx.Done():
			return
		}
	}
}

// leave makes grace leave.
func (c *company) leave() {
	c.watch.Stop()
	c.stop()
	c.running.Wait()
	_ = c.session.Close()
}

// wire carries the websocket of one client to the server until cut is called. The next websocket is carried again.
type wire struct {
	listener net.Listener
	watch    *time.Timer
	mu       sync.Mutex
	conns    []net.Conn
}

// newWire opens a wire to the server.
func newWire() *wire {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("no wire for the examples: " + err.Error())
	}
	w := &wire{listener: listener, watch: watch()}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			w.carry(near)
		}
	}()
	return w
}

func (w *wire) carry(near net.Conn) {
	far, err := net.Dial("tcp", strings.TrimPrefix(serverURL(), "ws://"))
	if err != nil {
		_ = near.Close()
		return
	}
	w.mu.Lock()
	w.conns = append(w.conns, near, far)
	w.mu.Unlock()
	go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
	go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
}

func (w *wire) url() string { return "ws://" + w.listener.Addr().String() }

// cut closes the connections of the wire.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}

// remove closes the wire.
func (w *wire) remove() {
	w.watch.Stop()
	_ = w.listener.Close()
	w.cut()
}
