package fabric

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/cluster/certificate"
	"github.com/volsfu/volsfu/test/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority issues the certificates of a test's nodes.
type authority struct {
	*certificate.Authority
	directory string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	directory := t.TempDir()
	a, err := certificate.OpenAuthority(directory, "rooms", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return authority{a, directory}
}

// open opens the fabric of a node that connects to the nodes before.
func (a authority) open(t *testing.T, name string, seeds ...*Fabric) (*Fabric, *certificate.Node) {
	t.Helper()
	address := &Address{Embedded: true, RoutePort: -1}
	for _, seed := range seeds {
		address.Seeds = append(address.Seeds, fmt.Sprintf("127.0.0.1:%d", seed.RoutePort()))
	}
	node := a.issue(t, name)
	return a.startNode(t, node, address), node
}

// start opens the fabric of a node with an address.
func (a authority) start(t *testing.T, name string, address *Address) *Fabric {
	t.Helper()
	return a.startNode(t, a.issue(t, name), address)
}

func (a authority) issue(t *testing.T, name string) *certificate.Node {
	t.Helper()
	directory := filepath.Join(a.directory, name)
	if err := a.Issue(directory, name, "", time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	node, err := certificate.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func (a authority) startNode(t *testing.T, node *certificate.Node, address *Address) *Fabric {
	t.Helper()
	c := Config{Address: address, Cluster: "rooms", Node: node.Name, TLS: node.TLS(), Loopback: true}
	f, err := Open(c, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func TestThreeNodes(t *testing.T) {
	authority := newAuthority(t)
	a, _ := authority.open(t, "a")
	b, _ := authority.open(t, "b", a)
	c, _ := authority.open(t, "c", a)
	nodes := []*Fabric{a, b, c}
	for _, f := range nodes {
		if err := f.Subscribe("all"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Subscribe("room.1"); err != nil {
		t.Fatal(err)
	}
	// b and c learn of each other from a.
	for i, f := range nodes {
		wait.Until(t, fmt.Sprintf("node %d has two routes", i), func() bool { return f.Stats().Routes == 2 })
	}
	// A subscription takes a moment to be known everywhere.
	seen := make([]bool, len(nodes))
	wait.Until(t, "the other nodes receive a message", func() bool {
		if err := b.Publish("all", []byte("beat")); err != nil {
			t.Fatal(err)
		}
		for i, f := range nodes {
			seen[i] = seen[i] || slices.ContainsFunc(f.Messages(), func(m Message) bool {
				return m.Subject == "all" && string(m.Data) == "beat"
			})
		}
		return seen[0] && seen[2]
	})
	if seen[1] {
		t.Error("the sender received its own message")
	}
}

func TestForeignNodeIsRefused(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	a, node := ours.open(t, "a")
	b, foreign := theirs.open(t, "b", a)
	wait.Until(t, "a certificate is refused", func() bool { return node.Refused()+foreign.Refused() > 0 })
	if a.Stats().Routes != 0 || b.Stats().Routes != 0 {
		t.Errorf("there are %d and %d routes", a.Stats().Routes, b.Stats().Routes)
	}
}

// TestRights: the rights of a node end with the subjects of its cluster.
func TestRights(t *testing.T) {
	a, _ := newAuthority(t).open(t, "a")
	refused := make(chan error, 8)
	a.connection.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })
	if err := a.connection.Publish("volsfu.other.all", nil); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("the error is %v", err)
	}
	if _, err := a.connection.SubscribeSync(">"); err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("the error is %v", err)
	}
}

func TestLimits(t *testing.T) {
	a, _ := newAuthority(t).open(t, "a")
	if err := a.Publish("all", make([]byte, MaxMessage+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
	message := func(sender string, size int) *nats.Msg {
		return &nats.Msg{Subject: "volsfu.rooms.all." + sender, Data: make([]byte, size)}
	}
	// One node has its share of the queue.
	const share = maxQueued / shares
	for range share + 10 {
		a.enqueue(message("b", 1))
	}
	a.enqueue(message("c", 1))
	a.enqueue(message("c", MaxMessage+1))
	if dropped, kept := a.Stats().Dropped, len(a.Messages()); dropped != 11 || kept != share+1 {
		t.Errorf("%d messages are dropped and %d kept, expected 11 and %d", dropped, kept, share+1)
	}
	for range maxQueuedBytes/shares/MaxMessage + 1 {
		a.enqueue(message("b", MaxMessage))
	}
	if dropped := a.Stats().Dropped; dropped != 12 {
		t.Errorf("%d messages are dropped, expected 12", dropped)
	}
	// All nodes together fill the queue.
	a.Messages()
	for i := range shares + 1 {
		for range share {
			a.enqueue(message(fmt.Sprint("n", i), 1))
		}
	}
	if dropped, kept := a.Stats().Dropped, len(a.Messages()); dropped != 12+share || kept != maxQueued {
		t.Errorf("%d messages are dropped and %d kept, expected %d and %d", dropped, kept, 12+share, maxQueued)
	}
}

// TestDroppedNeverFalls: messages that the client of NATS has dropped count after the end of their subscription.
func TestDroppedNeverFalls(t *testing.T) {
	authority := newAuthority(t)
	a, _ := authority.open(t, "a")
	b, _ := authority.open(t, "b", a)
	if err := b.Subscribe("room.1"); err != nil {
		t.Fatal(err)
	}
	subscription := b.subscriptions["room.1"]
	// The queue accepts nothing while the mutex is held.
	b.mu.Lock()
	wait.Until(t, "messages are dropped", func() bool {
		for range maxUnread {
			if err := a.Publish("room.1", []byte("delta")); err != nil {
				b.mu.Unlock()
				t.Fatal(err)
			}
		}
		dropped, err := subscription.Dropped()
		return err == nil && dropped > 0
	})
	b.mu.Unlock()
	before := b.Stats().Dropped
	b.Unsubscribe("room.1")
	if after := b.Stats().Dropped; before == 0 || after < before {
		t.Errorf("%d dropped messages, and %d after the end of the subscription", before, after)
	}
}

// freePort returns a port that is free, below the range from which the system chooses (32768 and above), so that no
// other process gets the port before this one uses it.
func freePort(t *testing.T) int {
	t.Helper()
	for i := range 1000 {
		port := 20_000 + (os.Getpid()+i)%10_000
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatal("there is no free port")
	return 0
}

// TestSeedStartsLater: the time until nodes are connected does not depend on the order in which they start.
func TestSeedStartsLater(t *testing.T) {
	authority := newAuthority(t)
	port := freePort(t)
	seed := fmt.Sprintf("127.0.0.1:%d", port)
	b := authority.start(t, "b", &Address{Embedded: true, RoutePort: -1, Seeds: []string{seed}})
	c := authority.start(t, "c", &Address{Embedded: true, RoutePort: -1, Seeds: []string{seed}})
	if err := errors.Join(b.Subscribe("all"), c.Subscribe("room.1")); err != nil {
		t.Fatal(err)
	}
	a := authority.start(t, "a", &Address{Embedded: true, RoutePort: port, Seeds: []string{seed}})
	began := time.Now()
	for _, f := range []*Fabric{a, b, c} {
		wait.Until(t, "a node has two routes", func() bool { return f.Stats().Routes == 2 })
	}
	t.Logf("connected after %v", time.Since(began))
	// The seeds were given to running servers: their clients and subscriptions remain.
	wait.Until(t, "a message arrives", func() bool {
		if err := a.Publish("all", []byte("beat")); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(b.Messages(), func(m Message) bool { return m.Subject == "all" && m.Sender == "a" })
	})
	wait.Until(t, "a message of a room arrives", func() bool {
		if err := b.Publish("room.1", []byte("delta")); err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(c.Messages(), func(m Message) bool {
			return m.Subject == "room.1" && m.Sender == "b"
		})
	})
}

// cable passes connections to an address, and can be cut.
type cable struct {
	t  *testing.T
	to string
	// address is that of the listener, which is closed while the cable is cut.
	address  string
	listener net.Listener
	mu       sync.Mutex
	ends     []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	c := &cable{t: t, to: to, address: fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	c.join()
	t.Cleanup(c.cut)
	return c
}

// join accepts connections.
func (c *cable) join() {
	c.t.Helper()
	l, err := net.Listen("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.listener = l
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", c.to)
			if err != nil {
				_ = near.Close()
				continue
			}
			c.mu.Lock()
			c.ends = append(c.ends, near, far)
			c.mu.Unlock()
			go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
		}
	}()
}

// cut ends all connections and accepts no more.
func (c *cable) cut() {
	_ = c.listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.ends {
		_ = end.Close()
	}
	c.ends = nil
}

// TestSeedReturns: when a seed that was apart can be reached again, the node connects at its next attempt, and does not
// wait for an attempt of NATS.
func TestSeedReturns(t *testing.T) {
	authority := newAuthority(t)
	a, _ := authority.open(t, "a")
	apart := newCable(t, fmt.Sprintf("127.0.0.1:%d", a.RoutePort()))
	c := authority.start(t, "c", &Address{Embedded: true, RoutePort: -1, Seeds: []string{apart.address}})
	given := func() (times, routes int) {
		c.seeds.mu.Lock()
		defer c.seeds.mu.Unlock()
		return c.seeds.given[apart.address], c.seeds.routes
	}
	// In some rounds the attempt of NATS is the first.
	const rounds = 30
	for round := 0; ; round++ {
		wait.Until(t, "there is a route", func() bool {
			_, routes := given()
			return routes == 1 && a.Stats().Routes == 1
		})
		before, _ := given()
		if before > 1 {
			return
		}
		if round == rounds {
			t.Fatalf("NATS is first in %d rounds", rounds)
		}
		apart.cut()
		wait.Until(t, "the loss is known", func() bool {
			_, routes := given()
			return routes == 0 && a.Stats().Routes == 0
		})
		if times, _ := given(); times != before {
			t.Fatal("a seed that cannot be reached is given to the server")
		}
		apart.join()
	}
}

// TestExternal: an external server may start later and may restart.
func TestExternal(t *testing.T) {
	authority := newAuthority(t)
	broker, _ := authority.open(t, "a")
	// The embedded server of another node is an external server like any other, except for its password.
	address, err := Parse("nats://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(Config{Address: address, Cluster: "rooms", Node: "b"}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Publish("all", nil); !errors.Is(err, ErrDisconnected) || f.Stats().Failed != 1 {
		t.Errorf("without a server the error is %v", err)
	}
	f.Close()
	address.Servers = []string{broker.server.ClientURL()}
	if f, err = Open(Config{Address: address, Cluster: "rooms", Node: "b"}, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Connected() {
		t.Error("the embedded server accepts a client without its password")
	}
}

func TestPortInUse(t *testing.T) {
	a, node := newAuthority(t).open(t, "a")
	address := &Address{Embedded: true, RoutePort: a.RoutePort()}
	_, err := Open(Config{Address: address, Cluster: "rooms", Node: "b", TLS: node.TLS(), Loopback: true}, zap.NewNop())
	if !errors.Is(err, ErrStart) {
		t.Errorf("the error is %v", err)
	}
}
