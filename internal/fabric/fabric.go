package fabric

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/zap"
)

const (
	// MaxMessage is the largest message, in bytes. The largest description of a publication has 300 kB.
	MaxMessage = 512 << 10
	// maxQueued and maxQueuedBytes bound the received messages that the owner has not taken: 50 nodes with five beats
	// per second fill the queue in 32 s. One node has at most the part 1/shares of both, so that a node that sends too
	// much does not displace the beats of the others.
	maxQueued      = 8192
	maxQueuedBytes = 64 << 20
	shares         = 8
	// maxUnread bounds the messages between the client of NATS and the queue.
	maxUnread = 256
	// reconnectWait is the time between two attempts to reach a NATS server.
	reconnectWait = 200 * time.Millisecond
)

// Config configures a Fabric.
type Config struct {
	Address *Address
	// Cluster and Node are names (certificate.CheckName).
	Cluster, Node string
	// TLS is the configuration of routes and of external servers, for both sides.
	TLS *tls.Config
	// Loopback restricts the embedded server to this host.
	Loopback bool
}

// Message is a received message.
type Message struct {
	// Subject is relative to the cluster's prefix. Sender is the name of the node that sent the message.
	Subject, Sender string
	Data            []byte
}

// Stats are counts since Open.
type Stats struct {
	Sent, Received uint64
	// Dropped counts received messages that the queue did not hold or that were too large, Failed those that could not
	// be sent.
	Dropped, Failed uint64
	// Routes is the number of connections to other embedded servers.
	Routes int
}

// Fabric sends and receives the messages of a node. The methods are safe for concurrent use.
type Fabric struct {
	prefix     string
	node       string
	server     *server.Server
	seeds      *seeds
	connection *nats.Conn
	unread     chan *nats.Msg
	notify     chan struct{}
	ended      sync.WaitGroup
	end        chan struct{}
	cancel     context.CancelFunc

	mu            sync.Mutex
	subscriptions map[string]*nats.Subscription
	queue         queue

	sent, received, dropped, failed atomic.Uint64
}

// queue has received messages in the order of their arrival.
type queue struct {
	messages []Message
	bytes    int
	// senders has the share of each node.
	senders map[string]*share
}

type share struct{ messages, bytes int }

// add adds a message, unless the message is too large, or the queue or the sender's share of it is full.
func (q *queue) add(m Message) bool {
	size := len(m.Data)
	if size > MaxMessage || len(q.messages) == maxQueued || q.bytes+size > maxQueuedBytes {
		return false
	}
	s := q.senders[m.Sender]
	if s == nil {
		if s = (&share{}); q.senders == nil {
			q.senders = make(map[string]*share)
		}
		q.senders[m.Sender] = s
	}
	if s.messages == maxQueued/shares || s.bytes+size > maxQueuedBytes/shares {
		return false
	}
	s.messages++
	s.bytes += size
	q.messages = append(q.messages, m)
	q.bytes += size
	return true
}

// prefixOf returns the prefix of all subjects of a cluster.
func prefixOf(cluster string) string { return "volsfu." + cluster + "." }

// Open starts the embedded server, or begins to connect to the external ones. An external server that cannot be reached
// is no error: the Fabric connects later. Errors wrap ErrStart, or are those of the NATS client.
func Open(c Config, log *zap.Logger) (*Fabric, error) {
	f := &Fabric{prefix: prefixOf(c.Cluster), node: c.Node, unread: make(chan *nats.Msg, maxUnread),
		notify: make(chan struct{}, 1), end: make(chan struct{}), subscriptions: make(map[string]*nats.Subscription)}
	options := []nats.Option{
		nats.Name(c.Node), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.RetryOnFailedConnect(true), nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings), nats.IgnoreAuthErrorAbort(), nats.NoEcho(),
		// Messages that cannot be sent are lost: a beat is of no use later.
		nats.ReconnectBufSize(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if !errors.Is(err, nats.ErrSlowConsumer) {
				log.Warn("error of the cluster's NATS connection", zap.Error(err))
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the cluster's NATS server is not reachable", zap.Error(err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("the cluster's NATS server is reachable again") }),
	}
	urls := strings.Join(c.Address.Servers, ",")
	var embedded *seeds
	if c.Address.Embedded {
		var password string
		var err error
		if embedded, password, err = startEmbedded(c, log); err != nil {
			return nil, err
		}
		f.server, f.seeds = embedded.server, embedded
		options = append(options, nats.InProcessServer(f.server), nats.UserInfo(c.Node, password))
	} else {
		if c.Address.User != nil {
			password, _ := c.Address.User.Password()
			options = append(options, nats.UserInfo(c.Address.User.Username(), password))
		}
		if c.Address.TLS {
			options = append(options, nats.Secure(c.TLS.Clone()))
		} else {
			log.Warn("the messages of the cluster are not encrypted, and whoever can send to the NATS servers can act "+
				"as a node; use tls:// unless the network is closed", zap.Strings("servers", c.Address.Servers))
		}
	}
	var err error
	if f.connection, err = nats.Connect(urls, options...); err != nil {
		f.shutdown()
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	f.ended.Go(f.pump)
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel = cancel
	if len(c.Address.Seeds) > 0 {
		f.ended.Go(func() { embedded.keep(ctx, c.Address.Seeds) })
	}
	return f, nil
}

// Publish sends a message to the subscribers of a subject. The subject that NATS sees ends with the name of this node.
// Publish does not wait. Errors wrap ErrTooLarge or ErrDisconnected.
func (f *Fabric) Publish(subject string, data []byte) error {
	var err error
	switch {
	case len(data) > MaxMessage:
		err = fmt.Errorf("%w: %d bytes, expected at most %d", ErrTooLarge, len(data), MaxMessage)
	case !f.Connected():
		err = ErrDisconnected
	default:
		if err = f.connection.Publish(f.prefix+subject+"."+f.node, data); err != nil {
			err = fmt.Errorf("%w: %w", ErrDisconnected, err)
		}
	}
	if err != nil {
		f.failed.Add(1)
		return err
	}
	f.sent.Add(1)
	return nil
}

// Subscribe begins to receive the messages of other nodes on a subject. A second call has no effect.
func (f *Fabric) Subscribe(subject string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subscriptions[subject] != nil {
		return nil
	}
	s, err := f.connection.ChanSubscribe(f.prefix+subject+".*", f.unread)
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	f.subscriptions[subject] = s
	return nil
}

// Unsubscribe ends Subscribe.
func (f *Fabric) Unsubscribe(subject string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.subscriptions[subject]; s != nil {
		delete(f.subscriptions, subject)
		if dropped, err := s.Dropped(); err == nil {
			f.dropped.Add(uint64(dropped))
		}
		_ = s.Unsubscribe()
	}
}

// pump moves received messages to the queue until the Fabric is closed.
func (f *Fabric) pump() {
	for {
		select {
		case m := <-f.unread:
			f.enqueue(m)
		case <-f.end:
			return
		}
	}
}

// enqueue adds a message to the queue, or drops and counts the message if it is too large or the queue is full.
func (f *Fabric) enqueue(m *nats.Msg) {
	f.received.Add(1)
	subject := strings.TrimPrefix(m.Subject, f.prefix)
	sender := subject[strings.LastIndexByte(subject, '.')+1:]
	f.mu.Lock()
	added := f.queue.add(Message{strings.TrimSuffix(subject, "."+sender), sender, m.Data})
	f.mu.Unlock()
	if !added {
		f.dropped.Add(1)
		return
	}
	select {
	case f.notify <- struct{}{}:
	default:
	}
}

// Notify returns a channel that has an entry when there are messages.
func (f *Fabric) Notify() <-chan struct{} { return f.notify }

// Messages returns the received messages in the order of their arrival, and empties the queue.
func (f *Fabric) Messages() []Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	messages := f.queue.messages
	f.queue = queue{}
	return messages
}

// Connected reports whether a NATS server is reachable. An embedded server always is.
func (f *Fabric) Connected() bool { return f.connection.IsConnected() }

// RoutePort returns the port of the embedded server's routes, 0 without an embedded server.
func (f *Fabric) RoutePort() int {
	if f.server == nil {
		return 0
	}
	return f.server.ClusterAddr().Port
}

// Stats returns the counts.
func (f *Fabric) Stats() Stats {
	s := Stats{Sent: f.sent.Load(), Received: f.received.Load(), Dropped: f.dropped.Load(), Failed: f.failed.Load()}
	if f.server != nil {
		s.Routes = f.server.NumRoutes()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, subscription := range f.subscriptions {
		if dropped, err := subscription.Dropped(); err == nil {
			s.Dropped += uint64(dropped)
		}
	}
	return s
}

// Close disconnects from NATS, and stops the embedded server. Sent messages leave before.
func (f *Fabric) Close() {
	_ = f.connection.FlushTimeout(reconnectWait)
	f.connection.Close()
	close(f.end)
	f.cancel()
	f.ended.Wait()
	f.shutdown()
}

// shutdown stops the embedded server, if there is one.
func (f *Fabric) shutdown() {
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
}
