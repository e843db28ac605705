package fabric

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
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
	directory := filepath.Join(a.directory, name)
	if err := a.Issue(directory, name, "", time.Now(), time.Hour); err != nil {
		t.Fatal(err)
	}
	node, err := certificate.Load(directory)
	if err != nil {
		t.Fatal(err)
	}
	address := &Address{Embedded: true, RoutePort: -1}
	for _, seed := range seeds {
		address.Seeds = append(address.Seeds, fmt.Sprintf("127.0.0.1:%d", seed.RoutePort()))
	}
	c := Config{Address: address, Cluster: "rooms", Node: name, TLS: node.TLS(), Loopback: true}
	f, err := Open(c, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f, node
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
	wait.Until(t, "a request is answered", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answered := make(chan error, 1)
		go func() {
			reply, err := a.Request(ctx, "room.1", []byte("snapshot?"))
			if err == nil && string(reply) != "snapshot" {
				err = fmt.Errorf("the reply is %q", reply)
			}
			answered <- err
		}()
		for {
			select {
			case err := <-answered:
				if err != nil && !errors.Is(err, nats.ErrNoResponders) {
					t.Fatal(err)
				}
				return err == nil
			case <-b.Notify():
				for _, m := range b.Messages() {
					if m.Subject == "room.1" {
						if err := b.Respond(m, []byte("snapshot")); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
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
	for range maxQueued + 10 {
		a.enqueue(&nats.Msg{Subject: "volsfu.rooms.all", Data: []byte("x")})
	}
	a.enqueue(&nats.Msg{Subject: "volsfu.rooms.all", Data: make([]byte, MaxMessage+1)})
	if dropped, kept := a.Stats().Dropped, len(a.Messages()); dropped != 11 || kept != maxQueued {
		t.Errorf("%d messages are dropped and %d kept, expected 11 and %d", dropped, kept, maxQueued)
	}
	for range maxQueuedBytes/MaxMessage + 1 {
		a.enqueue(&nats.Msg{Subject: "volsfu.rooms.all", Data: make([]byte, MaxMessage)})
	}
	if dropped := a.Stats().Dropped; dropped != 12 {
		t.Errorf("%d messages are dropped, expected 12", dropped)
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
