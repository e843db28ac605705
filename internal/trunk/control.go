package trunk

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/pion/logging"
	"github.com/pion/sctp"

	"github.com/volsfu/volsfu/internal/transport/ratelimit"
)

const (
	// controlStream carries messages in order, probeStream probes that are neither ordered nor repeated.
	controlStream = 0
	probeStream   = 1
	// receiveWindow is the number of bytes that the other node may send before Step reads them.
	receiveWindow = 1 << 20
	// longestRepeat is the maximum retransmission timeout of SCTP in milliseconds. Pion's minimum timeout is as long.
	longestRepeat = 1000
	// maxWaiting bounds the messages that wait for Step. More wait in SCTP.
	maxWaiting = 256
)

// messageRate limits the messages of another node.
var messageRate = ratelimit.Rate{PerSecond: 5000, Burst: 10_000}

var (
	errNotOpen = errors.New("the control channel is not open")
	errSize    = errors.New("the message is too large")
)

// control is the control channel of a trunk: an SCTP association on the first lane. serve and the goroutines that it
// starts read the association, all other methods belong to the caller of the Host.
type control struct {
	services *services
	// hello is the first message.
	hello hello
	// arrivals are the messages that Step has not read. done is closed when the trunk has ended.
	arrivals chan arrival
	done     chan struct{}
	closing  sync.Once

	// stream is nil until it is open.
	stream  *sctp.Stream
	probing probing
	// sent and received are the numbers of the last messages.
	sent, received uint64
	rate           ratelimit.Bucket
}

// arrival is a message or a probe, or a stream that is open.
type arrival struct {
	data   []byte
	stream *sctp.Stream
	probe  bool
	at     time.Time
}

func newControl(s *services, measured func(time.Duration), passed func(*hops, time.Time)) *control {
	return &control{
		services: s, arrivals: make(chan arrival, maxWaiting), done: make(chan struct{}), rate: messageRate.Bucket(),
		hello: hello{
			Versions: [2]int{minVersion, maxVersion}, Node: s.cfg.Node, Incarnation: s.cfg.Incarnation,
			Lanes: s.cfg.Lanes, Region: s.cfg.Region,
		},
		probing: probing{measured: measured, passed: passed},
	}
}

// serve makes the association on a connection, and reads it until it ends. One of the nodes opens the streams.
func (c *control) serve(conn net.Conn, opens bool) error {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	association, err := sctp.ClientWithOptions(
		sctp.WithNetConn(conn), sctp.WithLoggerFactory(logs), sctp.WithRTOMax(longestRepeat),
		sctp.WithMaxReceiveBufferSize(receiveWindow), sctp.WithMaxMessageSize(maxMessage),
		sctp.WithEnableInterleaving(false),
	)
	if err != nil {
		return err
	}
	defer func() { _ = association.Close() }()
	if opens {
		for _, id := range []uint16{controlStream, probeStream} {
			stream, err := association.OpenStream(id, sctp.PayloadTypeWebRTCBinary)
			if err != nil {
				return err
			}
			c.read(stream)
		}
	}
	for {
		stream, err := association.AcceptStream()
		if err != nil {
			return err
		}
		if id := stream.StreamIdentifier(); id != controlStream && id != probeStream {
			return fmt.Errorf("%w: SCTP stream %d", ErrMessage, id)
		}
		c.read(stream)
	}
}

// read starts the goroutine that reads a stream.
func (c *control) read(stream *sctp.Stream) {
	probe := stream.StreamIdentifier() == probeStream
	if probe {
		stream.SetReliabilityParams(true, sctp.ReliabilityTypeRexmit, 0)
	}
	c.pass(arrival{stream: stream, probe: probe})
	c.services.start(func() {
		buffer := make([]byte, maxMessage)
		for {
			n, err := stream.Read(buffer)
			if err != nil {
				return
			}
			if !c.pass(arrival{data: slices.Clone(buffer[:n]), probe: probe, at: time.Now()}) {
				return
			}
		}
	}, func() { _ = stream.Close() })
}

// pass passes an arrival to receive, and waits for room. pass reports false once the trunk has ended.
func (c *control) pass(a arrival) bool {
	select {
	case c.arrivals <- a:
		c.services.wake()
		return true
	case <-c.done:
		return false
	}
}

// receive passes the messages that have arrived to handle. The trunk must be closed after an error.
func (c *control) receive(handle func(*message) error) error {
	for range len(c.arrivals) {
		if err := c.arrive(<-c.arrivals, handle); err != nil {
			return err
		}
	}
	return nil
}

func (c *control) arrive(a arrival, handle func(*message) error) error {
	switch {
	case a.stream != nil && a.probe:
		c.probing.stream = a.stream
		return nil
	case a.stream != nil:
		c.stream = a.stream
		return c.send(&message{Hello: &c.hello})
	case !c.rate.Take(a.at):
		return fmt.Errorf("%w: more than %d messages per second", ErrMessage, messageRate.PerSecond)
	case a.probe:
		return c.probing.receive(a.data, a.at)
	}
	m, err := decode(a.data)
	if err != nil {
		return err
	}
	if m.Number != c.received+1 {
		return fmt.Errorf("%w: number %d, expected %d", ErrMessage, m.Number, c.received+1)
	}
	c.received++
	return handle(m)
}

// unsent returns the number of bytes that wait in SCTP, math.MaxInt while the channel is not open.
func (c *control) unsent() int {
	if c.stream == nil {
		return math.MaxInt
	}
	return int(c.stream.BufferedAmount())
}

// send sends a message.
func (c *control) send(m *message) error {
	if c.stream == nil {
		return errNotOpen
	}
	m.Number = c.sent + 1
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(data) > maxMessage {
		return fmt.Errorf("%w: %d bytes, the limit is %d", errSize, len(data), maxMessage)
	}
	if _, err := c.stream.WriteSCTP(data, sctp.PayloadTypeWebRTCBinary); err != nil {
		return err
	}
	c.sent++
	return nil
}

// close ends the goroutines that wait for receive. The owner of the lane closes the association's connection.
func (c *control) close() { c.closing.Do(func() { close(c.done) }) }
