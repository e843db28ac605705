package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab/baseline/tcp"
	"github.com/volsfu/volsfu/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config describes the publication and the watched tiles of a client.
type Config struct {
	Address string
	// Name is the name of this client's publication, Watched the name of the watched peer. The first Tiles tiles of
	// Watched are watched at Quality; 0 tiles means none.
	Name, Watched string
	Tiles         int
	Quality       volumetric.Quality
	// Publishes is set if the client publishes, at FPS frames per second, in segments of Segment; 0 means one frame.
	Publishes bool
	FPS       float64
	Segment   time.Duration
}

// Client is the end of a client. One goroutine per tile downloads its segments, and one per upload sends a segment.
type Client struct {
	config  Config
	access  *access
	uploads *uploads

	mu        sync.Mutex
	qualities []volumetric.Quality
}

// NewClient returns a client. No connection is opened before the first frame is sent, or Run.
func NewClient(options tcp.Options, config Config) *Client {
	c := &Client{config: config, access: newAccess(options, config.Address)}
	c.uploads = newUploads(c.access, config)
	for range config.Tiles {
		c.qualities = append(c.qualities, config.Quality)
	}
	return c
}

// Run implements carriage.End. It returns carriage.ErrEnded once the watched peer has ended.
func (c *Client) Run(ctx context.Context, to carriage.Taker) error {
	if c.config.Tiles == 0 {
		<-ctx.Done()
		return nil
	}
	failures := make([]error, c.config.Tiles)
	var watching sync.WaitGroup
	for tile := range c.config.Tiles {
		watching.Go(func() { failures[tile] = c.follow(ctx, tile, to) })
	}
	watching.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(failures...)
}

// pollInterval is the interval at which a tile that is off is checked.
const pollInterval = 5 * time.Millisecond

// follow downloads the segments of a tile one after the other.
func (c *Client) follow(ctx context.Context, tile int, to carriage.Taker) error {
	number, known := int64(0), false
	for {
		var err error
		if !known {
			if number, err = c.latest(ctx, tile); err != nil {
				return err
			}
			known = true
		}
		c.mu.Lock()
		quality := c.qualities[tile]
		c.mu.Unlock()
		if quality == volumetric.QualityOff {
			// A tile that is off has no pending request, so its choice is polled.
			select {
			case <-time.After(pollInterval):
				known = false
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		switch err = c.download(ctx, carriage.Job{Tile: tile, Quality: quality}, number, to); {
		case errors.Is(err, errGone):
			known = false
		case err != nil:
			return err
		default:
			number++
		}
	}
}

// latest requests the number of the newest segment.
func (c *Client) latest(ctx context.Context, tile int) (int64, error) {
	response, err := c.access.request(ctx, http.MethodGet, c.access.url(c.config.Watched, tile, "latest"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || number < 0 {
		return 0, fmt.Errorf("%w: %.32q, expected the number of a segment", ErrAnswer, text)
	}
	return number, nil
}

// download reads the frames of a segment as they arrive.
func (c *Client) download(ctx context.Context, job carriage.Job, number int64, to carriage.Taker) error {
	response, err := c.access.request(ctx, http.MethodGet, c.access.url(c.config.Watched, job.Tile, int(job.Quality),
		number))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	var own tcp.Counts
	r := tcp.NewReader(response.Body, &own)
	for {
		first, err := r.First()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		data, err := ReadBox(r)
		if err != nil {
			return err
		}
		last := r.Last()
		to.Take(&carriage.Arrival{Data: data, First: first, Last: last, Whole: last})
	}
}

// Ready implements carriage.End: the server accepts segments without watchers.
func (c *Client) Ready(ctx context.Context) error { return ctx.Err() }

// Wanted implements carriage.End: every quality is uploaded.
func (c *Client) Wanted(int, volumetric.Quality) bool { return true }

// Send implements carriage.End.
func (c *Client) Send(ctx context.Context, f *carriage.Frame) (carriage.Departure, error) {
	return c.uploads.send(ctx, f)
}

// Choose implements carriage.End: the next segments are of these qualities.
func (c *Client) Choose(_ context.Context, qualities []volumetric.Quality) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	copy(c.qualities, qualities)
	return nil
}

// Traffic implements carriage.End.
func (c *Client) Traffic() carriage.Traffic {
	return carriage.Traffic{Sent: c.access.counts.Sent.Load(), Received: c.access.counts.Received.Load()}
}

// Congestion returns the kernel's name of the latest connection's congestion control.
func (c *Client) Congestion() string { return c.access.congestion() }

// Close implements carriage.End. It ends the uploads and notifies the server.
func (c *Client) Close() error {
	c.uploads.close()
	var err error
	if c.config.Publishes {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		var response *http.Response
		if response, err = c.access.request(ctx, http.MethodDelete, c.access.url(c.config.Name)); err == nil {
			err = response.Body.Close()
		}
	}
	c.access.http.CloseIdleConnections()
	return err
}
