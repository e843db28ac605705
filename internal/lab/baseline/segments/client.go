package segments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/lab/baseline/tcp"
	"github.com/volsfu/volsfu/internal/lab/carriage"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// Config says what a client publishes and watches.
type Config struct {
	Address string
	// Name is what this client publishes under, Watched whom it watches, so many Tiles of it at a Quality; no tiles are nothing.
	Name, Watched string
	Tiles         int
	Quality       volumetric.Quality
	// Publishes tells whether it publishes, at FPS, in segments of Segment; 0 is one frame.
	Publishes bool
	FPS       float64
	Segment   time.Duration
}

// Client is the end of a client. A goroutine for each tile downloads what is watched; one for each segment under way uploads it.
type Client struct {
	config Config
	http   *http.Client
	counts tcp.Counts
	// frames is how many a segment has.
	frames  uint32
	uploads sync.WaitGroup
	// ctx is that of uploads, which go on for a moment after the last frame was sent.
	ctx    context.Context
	cancel context.CancelFunc

	mu        sync.Mutex
	named     string
	streams   map[carriage.Job]*upload
	qualities []volumetric.Quality
}

// upload is the segments of one stream on their way out. It belongs to the goroutine that sends the stream's frames.
type upload struct {
	number int64
	body   *io.PipeWriter
	box    []byte // memory of one box
}

// counted is a connection that counts.
type counted struct {
	net.Conn
	counts *tcp.Counts
}

// Read implements net.Conn.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.counts.Received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.counts.Sent.Add(int64(n))
	return n, err
}

// maxIdle keeps a connection for every stream: 15 tiles at several qualities.
const maxIdle = 256

// NewClient makes a client. Nothing is opened before there is something to send, or Run.
func NewClient(options tcp.Options, config Config) *Client {
	c := &Client{config: config, frames: 1, streams: make(map[carriage.Job]*upload)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if config.Segment > 0 {
		c.frames = uint32(max(1, math.Round(config.Segment.Seconds()*config.FPS)))
	}
	for range config.Tiles {
		c.qualities = append(c.qualities, config.Quality)
	}
	c.http = &http.Client{Transport: &http.Transport{
		MaxIdleConns: maxIdle, MaxIdleConnsPerHost: maxIdle, DisableCompression: true,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			conn, err := options.Dial(ctx, address)
			if err != nil {
				return nil, err
			}
			c.mu.Lock()
			c.named = tcp.Congestion(conn)
			c.mu.Unlock()
			return counted{conn, &c.counts}, nil
		},
	}}
	return c
}

func (c *Client) url(peer string, parts ...any) string {
	url := "http://" + c.config.Address + "/" + peer
	for _, part := range parts {
		url += fmt.Sprint("/", part)
	}
	return url
}

// Run implements carriage.End. It returns carriage.ErrEnded once who is watched has ended.
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
			// There is no request that another choice could wait in.
			if err := sleep(ctx, pollInterval); err != nil {
				return err
			}
			known = false
			continue
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

// pollInterval is how often a tile that is switched off is looked at.
const pollInterval = 5 * time.Millisecond

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrAnswer is wrapped with what a server has answered.
var ErrAnswer = errors.New("unexpected answer")

// request sends a request without a body.
func (c *Client) request(ctx context.Context, method, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	switch response.StatusCode {
	case http.StatusOK:
		return response, nil
	case http.StatusNotFound:
		err = errGone
	case http.StatusGone:
		err = carriage.ErrEnded
	default:
		err = fmt.Errorf("%w: %s to %s", ErrAnswer, response.Status, url)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	_ = response.Body.Close()
	return nil, err
}

// maxAnswer bounds a text.
const maxAnswer = 4096

// latest asks for the number of the newest segment.
func (c *Client) latest(ctx context.Context, tile int) (int64, error) {
	response, err := c.request(ctx, http.MethodGet, c.url(c.config.Watched, tile, "latest"))
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

// download takes the frames of a segment as they come.
func (c *Client) download(ctx context.Context, job carriage.Job, number int64, to carriage.Taker) error {
	response, err := c.request(ctx, http.MethodGet, c.url(c.config.Watched, job.Tile, int(job.Quality), number))
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

// Ready implements carriage.End: the server keeps what nobody watches.
func (c *Client) Ready(ctx context.Context) error { return ctx.Err() }

// Wanted implements carriage.End: every quality is uploaded.
func (c *Client) Wanted(int, volumetric.Quality) bool { return true }

// Send implements carriage.End.
func (c *Client) Send(ctx context.Context, f *carriage.Frame) (carriage.Departure, error) {
	job := carriage.Job{Tile: f.Tile, Quality: f.Quality}
	c.mu.Lock()
	u := c.streams[job]
	if u == nil {
		u = &upload{number: -1}
		c.streams[job] = u
	}
	c.mu.Unlock()
	number := int64(f.Number / c.frames)
	if number != u.number {
		u.end()
		u.number = number
		c.begin(u, job)
	}
	body := u.body
	stop := context.AfterFunc(ctx, func() { _ = body.CloseWithError(context.Cause(ctx)) })
	defer stop()
	d := carriage.Departure{First: time.Now(), Copies: 1}
	// One write, which the HTTP client sends at once, in chunks of 32 kB at most.
	u.box = append(AppendBoxHeader(u.box[:0], len(f.Bytes)), f.Bytes...)
	_, err := u.body.Write(u.box)
	d.Last = time.Now()
	if f.Number%c.frames == c.frames-1 {
		u.end()
	}
	return d, err
}

// end ends the segment under way.
func (u *upload) end() {
	if u.body != nil {
		_ = u.body.Close()
	}
}

// begin begins the upload of a segment.
func (c *Client) begin(u *upload, job carriage.Job) {
	reader, writer := io.Pipe()
	u.body = writer
	url := c.url(c.config.Name, job.Tile, int(job.Quality), u.number)
	c.uploads.Go(func() {
		r, err := http.NewRequestWithContext(c.ctx, http.MethodPut, url, reader)
		if err != nil {
			_ = reader.CloseWithError(err)
			return
		}
		response, err := c.http.Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
			err = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				err = fmt.Errorf("%w: %s to %s", ErrAnswer, response.Status, url)
			}
		}
		if err == nil {
			err = io.ErrClosedPipe
		}
		_ = reader.CloseWithError(err)
	})
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
	return carriage.Traffic{Sent: c.counts.Sent.Load(), Received: c.counts.Received.Load()}
}

// Congestion is what the kernel says of the latest connection.
func (c *Client) Congestion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.named
}

// Close implements carriage.End. What was being uploaded ends, and the server is told.
func (c *Client) Close() error {
	c.mu.Lock()
	for _, u := range c.streams {
		u.end()
	}
	c.mu.Unlock()
	timer := time.AfterFunc(stopTimeout, c.cancel)
	c.uploads.Wait()
	timer.Stop()
	c.cancel()
	var err error
	if c.config.Publishes {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		var response *http.Response
		if response, err = c.request(ctx, http.MethodDelete, c.url(c.config.Name)); err == nil {
			err = response.Body.Close()
		}
	}
	c.http.CloseIdleConnections()
	return err
}
