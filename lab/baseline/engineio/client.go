package engineio

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/volsfu/volsfu/lab/baseline/reflector"
	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Client is the end of a client, which publishes and watches over one websocket.
type Client struct {
	conn      *websocket.Conn
	name      string
	selection *reflector.Selection
	counts    tcp.Counts
	// began is when bytes arrived after the last frame, in nanoseconds since 1970, 0 for none.
	began *atomic.Int64

	sending sync.Mutex
	text    []byte
}

// arrivals is a connection that counts bytes and records when the first bytes arrived since began was last cleared.
type arrivals struct {
	net.Conn
	began  *atomic.Int64
	counts *tcp.Counts
}

// Read implements net.Conn.
func (a arrivals) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	a.began.CompareAndSwap(0, wallclock.Now().UnixNano())
	a.counts.Received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (a arrivals) Write(p []byte) (int, error) {
	n, err := a.Conn.Write(p)
	a.counts.Sent.Add(int64(n))
	return n, err
}

// clientBuffer is the buffer for masking. A message of up to this size is sent as one websocket frame, as browsers and
// Unity do.
const clientBuffer = 1 << 20

// Join opens a websocket to a relay and performs the handshake.
func Join(ctx context.Context, options tcp.Options, address, name string, selection *reflector.Selection) (*Client,
	error) {
	c := &Client{name: name, selection: selection, began: new(atomic.Int64)}
	dialer := websocket.Dialer{ReadBufferSize: buffers, WriteBufferSize: clientBuffer,
		NetDialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := options.Dial(ctx, address)
			if err != nil {
				return nil, err
			}
			return arrivals{conn, c.began, &c.counts}, nil
		}}
	conn, response, err := dialer.DialContext(ctx, "ws://"+address+Path+"?EIO=4&transport=websocket", http.Header{})
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	conn.SetReadLimit(carriage.MaxFrameBytes)
	c.conn = conn
	if err := c.greet(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// greet waits for engine.io's handshake and connects to socket.io's first namespace.
func (c *Client) greet() error {
	_, message, err := c.conn.ReadMessage()
	if err != nil {
		return err
	}
	if t, _, err := Parse(message); err != nil || t != Open {
		return fmt.Errorf("%w: %.32q, expected the handshake", ErrPacket, message)
	}
	c.began.Store(0)
	return c.conn.WriteMessage(websocket.TextMessage, Packet{Kind: Connect, ID: -1}.Append(nil))
}

// Run implements carriage.End. Run reads every event and passes the selected events to the taker.
func (c *Client) Run(ctx context.Context, to carriage.Taker) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	for {
		event, data, err := readEvent(c.conn, func() error {
			c.sending.Lock()
			defer c.sending.Unlock()
			return c.conn.WriteMessage(websocket.TextMessage, []byte{byte(Pong)})
		})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return carriage.ErrEnded
		}
		last := wallclock.Now()
		first := time.Unix(0, c.began.Swap(0))
		// Bytes that were read together with the previous frame arrived with it.
		if first.Unix() == 0 {
			first = last
		}
		if name, stream, err := event.ParseEvent(); err == nil && name == EventReceive && c.selection.Takes(stream) {
			to.Take(&carriage.Arrival{Data: data, First: first, Last: last, Whole: last})
		}
	}
}

// Ready implements carriage.End: the connection exists. The relay does not report its watchers.
func (c *Client) Ready(context.Context) error { return nil }

// Wanted implements carriage.End. The relay sends all tiles to every client.
func (c *Client) Wanted(int, volumetric.Quality) bool { return true }

// Send implements carriage.End.
func (c *Client) Send(ctx context.Context, f *carriage.Frame) (carriage.Departure, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	stop := tcp.Until(ctx, c.conn.NetConn())
	defer stop()
	d := carriage.Departure{First: wallclock.Now(), Copies: 1}
	c.text = AppendEvent(c.text[:0], EventSend, reflector.StreamName(c.name,
		carriage.Job{Tile: f.Tile, Quality: f.Quality}))
	err := c.conn.WriteMessage(websocket.TextMessage, c.text)
	if err == nil {
		err = c.conn.WriteMessage(websocket.BinaryMessage, f.Bytes)
	}
	d.Last = wallclock.Now()
	return d, err
}

// Choose implements carriage.End. The relay does not know qualities, so the client ignores the qualities that it did
// not choose.
func (c *Client) Choose(_ context.Context, qualities []volumetric.Quality) error {
	c.selection.Choose(qualities)
	return nil
}

// Traffic implements carriage.End.
func (c *Client) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: c.counts.Sent.Load(), Received: c.counts.Received.Load()}
}

// Congestion returns the kernel's name of the connection's congestion control.
func (c *Client) Congestion() string {
	if a, ok := c.conn.NetConn().(arrivals); ok {
		return tcp.Congestion(a.Conn)
	}
	return ""
}

// Close implements carriage.End.
func (c *Client) Close() error {
	_ = c.conn.Close()
	return nil
}
