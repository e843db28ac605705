// Package browser drives the viewer and the console in Chromium, with a real server and real peers. Scripts for
// Playwright, in clients/web/test/browser, act as a person would; the tests here check the results.
package browser

import (
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/server"
	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/test/program"
)

// root is the module's.
var root = filepath.Join("..", "..")

// pictures is the directory for the pictures of the documents; without it they are not made.
var pictures = flag.String("pictures", "", "folder to make the documents' pictures in")

// peer returns the path of the reference client, which the first call builds.
func peer(t testing.TB) string {
	t.Helper()
	return program.Build{Cgo: true}.Path(t, "volpeer")
}

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// mutedConn is a UDP socket with simulated network failures: while muted, it neither receives nor sends data.
type mutedConn struct {
	net.PacketConn
	muted atomic.Bool
}

func (c *mutedConn) WriteTo(b []byte, to net.Addr) (int, error) {
	if c.muted.Load() {
		return len(b), nil
	}
	return c.PacketConn.WriteTo(b, to)
}

func (c *mutedConn) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := c.PacketConn.ReadFrom(b)
		if err != nil || !c.muted.Load() {
			return n, from, err
		}
	}
}

// running has the servers of the present test, for the log of a failure. The tests of this package run one after
// another.
var running []*server.Server

// observe logs the rooms of a server if a script fails.
func observe(t *testing.T, s *server.Server) {
	running = append(running, s)
	t.Cleanup(func() { running = slices.DeleteFunc(running, func(other *server.Server) bool { return other == s }) })
}

// start runs a server for development, whose settings adjust may change.
func start(t *testing.T, adjust func(*server.Options)) *server.Server {
	t.Helper()
	o := server.Options{Config: config.DefaultConfig(), Version: "test", Log: zap.NewNop()}
	o.Config.Server.Listen, o.Config.Server.Dev = "127.0.0.1:0", true
	o.Config.Admin.Listen, o.Config.Media.Port = "127.0.0.1:0", 0
	if adjust != nil {
		adjust(&o)
	}
	s, err := server.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	observe(t, s)
	return s
}

// pageURL is the URL of a server's pages.
func pageURL(s *server.Server) string { return strings.Replace(s.URL(), "ws", "http", 1) }

// publish lets a client publish to room "demo": a figure of a few points, so that processors that also draw pages keep
// up.
func publish(t *testing.T, s *server.Server, identity string, flags ...string) {
	t.Helper()
	volpeerPublishes(t, s, identity, append([]string{"--points", "6000", "--fps", "10", "--tiles", "2"}, flags...)...)
}

// volpeerPublishes lets volpeer publish to room "demo" with the given flags only.
func volpeerPublishes(t *testing.T, s *server.Server, identity string, flags ...string) {
	t.Helper()
	path := peer(t)
	arguments := []string{"publish", "--server", s.URL(), "--room", "demo", "--identity", identity}
	command := exec.Command(path, append(arguments, flags...)...)
	command.Stderr = &quiet{}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
}

// watch lets a client watch room "demo".
func watch(t *testing.T, s *server.Server, identity string) {
	t.Helper()
	session, err := client.Join(t.Context(), client.Config{URL: s.URL(), Room: "demo", Identity: identity,
		Receive: true})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range session.Frames() {
		}
	}()
	t.Cleanup(func() {
		_ = session.Close()
		<-done
	})
}

// quiet discards a program's log.
type quiet struct{}

func (*quiet) Write(b []byte) (int, error) { return len(b), nil }
