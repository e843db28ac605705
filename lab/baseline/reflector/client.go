package reflector

import (
	"context"
	"net"
	"sync"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/lab/wallclock"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Selection is the set of a relay's streams that a client accepts: the streams of one peer, each tile at one quality. A
// Selection is safe for concurrent use.
type Selection struct {
	peer string

	mu        sync.Mutex
	qualities []volumetric.Quality
}

// NewSelection selects the first tiles of a peer at one quality.
func NewSelection(peer string, tiles int, quality volumetric.Quality) *Selection {
	s := &Selection{peer: peer, qualities: make([]volumetric.Quality, tiles)}
	for i := range s.qualities {
		s.qualities[i] = quality
	}
	return s
}

// Takes reports whether a stream is selected.
func (s *Selection) Takes(stream string) bool {
	peer, job, ok := ParseStreamName(stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	return ok && peer == s.peer && job.Tile < len(s.qualities) && s.qualities[job.Tile] == job.Quality
}

// Choose selects other qualities from now on.
func (s *Selection) Choose(qualities []volumetric.Quality) {
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.qualities, qualities)
}

// Client is the end of a client, which publishes and watches over one connection.
type Client struct {
	conn      net.Conn
	name      string
	selection *Selection
	counts    tcp.Counts

	sending sync.Mutex
	header  []byte
	buffers net.Buffers
}

// Join connects to a reflector.
func Join(ctx context.Context, options tcp.Options, address, name string, selection *Selection) (*Client, error) {
	conn, err := options.Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Client{conn: conn, name: name, selection: selection}, nil
}

// Run implements carriage.End. Run reads every packet and passes the selected packets to the taker.
func (c *Client) Run(ctx context.Context, to carriage.Taker) error {
	stop := context.AfterFunc(ctx, func() { _ = c.conn.Close() })
	defer stop()
	r := tcp.NewReader(c.conn, &c.counts)
	for {
		first, err := r.First()
		var h Header
		var packet []byte
		if err == nil {
			h, packet, err = readPacket(r)
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return carriage.ErrEnded
		}
		if last := r.Last(); c.selection.Takes(h.Stream) {
			to.Take(&carriage.Arrival{Data: packet[HeaderSize:], First: first, Last: last, Whole: last})
		}
	}
}

// Ready implements carriage.End: the connection exists. The reflector does not report its watchers.
func (c *Client) Ready(context.Context) error { return nil }

// Wanted implements carriage.End. The reflector sends all tiles to every client.
func (c *Client) Wanted(int, volumetric.Quality) bool { return true }

// Send implements carriage.End.
func (c *Client) Send(ctx context.Context, f *carriage.Frame) (carriage.Departure, error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	stream := StreamName(c.name, carriage.Job{Tile: f.Tile, Quality: f.Quality})
	var err error
	if c.header, err = (Header{Stream: stream, Timestamp: f.Capture.UnixMilli(),
		Length: len(f.Bytes)}).Append(c.header[:0]); err != nil {
		return carriage.Departure{}, err
	}
	stop := tcp.Until(ctx, c.conn)
	defer stop()
	d := carriage.Departure{First: wallclock.Now(), Copies: 1}
	c.buffers = append(c.buffers[:0], c.header, f.Bytes)
	buffers := c.buffers
	_, err = buffers.WriteTo(c.conn)
	d.Last = wallclock.Now()
	c.counts.Sent.Add(int64(HeaderSize + len(f.Bytes)))
	return d, err
}

// Choose implements carriage.End. The reflector does not know qualities, so the client ignores the qualities that it
// did not choose.
func (c *Client) Choose(_ context.Context, qualities []volumetric.Quality) error {
	c.selection.Choose(qualities)
	return nil
}

// Traffic implements carriage.End.
func (c *Client) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: c.counts.Sent.Load(), Received: c.counts.Received.Load()}
}

// Congestion returns the kernel's name of the connection's congestion control.
func (c *Client) Congestion() string { return tcp.Congestion(c.conn) }

// Close implements carriage.End.
func (c *Client) Close() error {
	_ = c.conn.Close()
	return nil
}
