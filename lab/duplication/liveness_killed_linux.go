package duplication

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netfn/daemon"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/leftover"
)

// The targets of claim 9.
const (
	readoptTarget = time.Second
	plainTarget   = 1500 * time.Millisecond
)

// killedTimes is how often each program is killed.
const killedTimes = 10

// repetitions returns how often a program is killed.
func (b *bench) repetitions() int {
	if b.short {
		return 1
	}
	return killedTimes
}

// openLasting opens a stage with three paths and copies on all of them.
func openLasting(ctx context.Context, b *bench, more func(*topology.Network) (string, []string, error)) (*stage,
	error) {
	return openStage(ctx, b, parallel(5*time.Millisecond, 10*time.Millisecond, 15*time.Millisecond), "all",
		50*time.Millisecond, more)
}

// controllerPort is the port of the controller on the viewer's host.
const controllerPort = "8443"

// controllerKilled kills the controller of an edge whose order is in force.
func controllerKilled(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	b.progress.Say("the controller is killed")
	folder, err := os.MkdirTemp("", "volnet-controller")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	var c *controller
	s, err := openLasting(ctx, b, func(n *topology.Network) (text string, environment []string, err error) {
		if c, err = newController(folder, n.Address(viewer).String()); err != nil {
			return "", nil, err
		}
		return fmt.Sprintf("controller: {url: %q, token-file: %s}\n", c.url, c.token("edge")),
			[]string{c.trust()}, nil
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	volnet, err := b.program()
	if err != nil {
		return nil, err
	}
	program, err := lab.StartCommand("volnet controller", s.network.Command(context.WithoutCancel(ctx), viewer, volnet,
		"controller", "--listen", c.address, "--tls-cert", c.files.Certificate, "--tls-key", c.files.Key, "--key-file",
		c.keys), nil)
	if err != nil {
		return nil, err
	}
	defer program.Kill()
	connected := func(state *daemon.Status) bool { return state.Controller != nil && state.Controller.Connected }
	if err := s.pair.Await(ctx, server, "is connected to the controller", connected); err != nil {
		return nil, err
	}
	order := s.network.Command(ctx, viewer, volnet, "set", "all", "path1,path2", "--edge", server,
		"--controller", c.url, "--token-file", c.token("operator"))
	order.Env = append(order.Env, c.trust())
	if output, err := order.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("volnet set through the controller: %w: %s", err, output)
	}
	before, _ := s.stream.Counts()
	program.Kill()
	if err := s.pair.Await(ctx, server, "has noticed that the controller is gone",
		func(state *daemon.Status) bool { return !connected(state) }); err != nil {
		return nil, err
	}
	if err := lab.Pause(ctx, 3*time.Second); err != nil {
		return nil, err
	}
	status, err := s.pair.Status(ctx, server)
	if err != nil {
		return nil, err
	}
	after, _ := s.stream.Counts()
	packets, err := s.packets()
	if err != nil {
		return nil, err
	}
	kept := 0
	if strings.Join(status.Rules[0].Set, ",") == "path1,path2" {
		kept = 1
	}
	lines = intact("controller killed", packets)
	return append(lines, claim.Stated("controller killed: packets sent without it", float64(after-before), ""),
		claim.Exactly("controller killed: its order stays in force", int64(kept), "", 1)), nil
}

// controller has the address of a controller, and the folder with its keys, its certificate and the tokens.
type controller struct {
	folder, address, url, keys string
	files                      certificate.Files
}

// newController makes a certificate, a key for tokens, and tokens of an edge and of an operator.
func newController(folder, address string) (*controller, error) {
	c := &controller{folder: folder, address: address + ":" + controllerPort, keys: filepath.Join(folder, "keys")}
	c.url = "https://" + c.address
	var err error
	if c.files, err = certificate.Make(folder, address); err != nil {
		return nil, err
	}
	if err := os.WriteFile(c.keys, []byte("first:"+strings.Repeat("k", auth.MinSecretBytes)), 0o600); err != nil {
		return nil, err
	}
	keyring, err := auth.NewKeyring(auth.Config{KeyFile: c.keys})
	if err != nil {
		return nil, err
	}
	for name, claims := range map[string]auth.Claims{
		"edge": {Identity: server, Edge: true}, "operator": {Identity: "operator", Admin: true},
	} {
		claims.Expires = time.Now().Add(time.Hour)
		text, err := keyring.Mint("", claims, time.Now())
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(c.token(name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// token returns the file of a token.
func (c *controller) token(name string) string { return filepath.Join(c.folder, name+".token") }

// trust returns the variable that makes programs trust the controller.
func (c *controller) trust() string { return "SSL_CERT_FILE=" + c.files.Certificate }

// edgesKilled kills the edges in turn. Each is followed by another process, for the last time after its lease has
// ended.
func edgesKilled(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	b.progress.Say("the edges are killed in turn and started again, %d times", b.repetitions())
	s, err := openLasting(ctx, b, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	unlike := 0
	for _, host := range []string{server, viewer} {
		var times lab.Distribution
		for i := range b.repetitions() {
			pause := time.Duration(0)
			if i == b.repetitions()-1 {
				pause = 2 * time.Second
			}
			took, kept, err := s.killAndReadopt(ctx, host, pause)
			if err != nil {
				return lines, err
			}
			times.Add(took)
			if !kept {
				unlike++
			}
		}
		lines = append(lines,
			claim.AtMost(fmt.Sprintf("edge of the %s killed: readopted by the next process, longest of %d", host,
				times.Count()), lab.Milliseconds(times.Max()), "ms", lab.Milliseconds(readoptTarget)),
			claim.Stated(fmt.Sprintf("edge of the %s killed: readopted, p50", host),
				lab.Milliseconds(times.Percentile(0.5)), "ms"))
	}
	lines = append(lines, claim.Exactly("edges killed: times that programs did not stay attached", int64(unlike), "",
		0))
	packets, err := s.packets()
	if err != nil {
		return lines, err
	}
	lines = append(lines, intact("edges killed", packets)...)
	left, err := s.detachBoth(ctx)
	return append(lines, left...), err
}

// killAndReadopt kills the edge of a host, and starts the next one after a pause. It returns the time from the start of
// the process until it has taken over the programs and receives from the other edge, and reports whether the programs
// stayed attached in the meantime.
func (s *stage) killAndReadopt(ctx context.Context, host string, pause time.Duration) (took time.Duration, kept bool,
	err error) {
	before, err := s.attached(host)
	if err != nil {
		return 0, false, err
	}
	s.pair.KillEdge(host)
	if err := lab.Pause(ctx, pause); err != nil {
		return 0, false, err
	}
	after, err := s.attached(host)
	if err != nil {
		return 0, false, err
	}
	began := time.Now()
	if err := s.pair.StartEdge(ctx, host); err != nil {
		return 0, false, err
	}
	err = s.pair.Await(ctx, host, "has taken over the programs and receives from the other edge",
		func(state *daemon.Status) bool {
			c := &state.Control
			return state.Readopted && state.PeerAlive && c.ReportsReceived+c.HellosReceived > 0
		})
	return time.Since(began), len(before) > 0 && slices.Equal(before, after), err
}

// attached returns the programs and filters of edges at the interfaces of a host.
func (s *stage) attached(host string) (found []string, err error) {
	err = s.network.Inside(host, func() (err error) {
		found, err = leftover.Attached()
		return err
	})
	return found, err
}

// freeing is the time limit for the kernel to free programs and maps that nothing uses.
const freeing = 2 * time.Second

// detachBoth kills both edges and removes their programs with volnet detach.
func (s *stage) detachBoth(ctx context.Context) (lines []claim.Line, err error) {
	for _, host := range []string{server, viewer} {
		objects, err := leftover.Loaded(s.pair.Pins(host))
		if err != nil {
			return lines, err
		}
		s.pair.KillEdge(host)
		if err := s.pair.Run(ctx, host, "detach"); err != nil {
			return lines, err
		}
		left, err := s.attached(host)
		if err != nil {
			return lines, err
		}
		left = append(left, leftover.Files(s.pair.State(), host)...)
		for end := time.Now().Add(freeing); len(objects.Left()) > 0 && time.Now().Before(end); {
			if err := lab.Pause(ctx, 10*time.Millisecond); err != nil {
				return lines, err
			}
		}
		left = append(left, objects.Left()...)
		name := fmt.Sprintf("volnet detach of the killed edge of the %s: programs, maps, links and pins left, of %d",
			host, objects.Count())
		if len(left) > 0 {
			name += ": " + strings.Join(left, ", ")
		}
		lines = append(lines, claim.Exactly(name, int64(len(left)), "", 0))
	}
	return lines, nil
}

// receiverGone measures how soon packets leave plain if the receiver's edge dies: without another process, and on a
// host that also loses the programs of the edge, as when it starts again.
func receiverGone(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	b.progress.Say("the receiver's edge is killed for good, %d times", 2*b.repetitions())
	s, err := openLasting(ctx, b, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var plain lab.Distribution
	for range b.repetitions() {
		took, err := s.killReceiver(ctx)
		if err != nil {
			return nil, err
		}
		plain.Add(took)
	}
	sent, _ := s.stream.Counts()
	var kills []time.Duration
	for range b.repetitions() {
		kills = append(kills, time.Since(s.began))
		if err := s.removeReceiver(ctx); err != nil {
			return nil, err
		}
	}
	packets, err := s.packets()
	if err != nil {
		return nil, err
	}
	lines = append(intact("receiver's edge killed", packets[:sent]),
		claim.AtMost(fmt.Sprintf("receiver's edge killed: packets leave plain, longest of %d", plain.Count()),
			lab.Milliseconds(plain.Max()), "ms", lab.Milliseconds(plainTarget)))
	var again lab.Distribution
	for i, kill := range kills {
		end := time.Since(s.began)
		if i+1 < len(kills) {
			end = kills[i+1]
		}
		resumed := kill
		for j := range packets {
			if p := &packets[j]; p.Sent >= kill && p.Sent < end && p.Copies == 0 {
				resumed = p.Sent
			}
		}
		again.Add(resumed - kill)
	}
	return append(lines, claim.AtMost(
		fmt.Sprintf("receiver's edge and programs gone: packets arrive again, longest of %d", again.Count()),
		lab.Milliseconds(again.Max()), "ms", lab.Milliseconds(plainTarget))), nil
}

// killReceiver kills the receiver's edge, waits until packets leave plain, and starts the edge again. It returns the
// time until packets left plain.
func (s *stage) killReceiver(ctx context.Context) (time.Duration, error) {
	before, err := s.pair.Status(ctx, server)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	s.pair.KillEdge(viewer)
	if err := s.pair.Await(ctx, server, "sends plain packets", func(state *daemon.Status) bool {
		return state.Sent.Plain > before.Sent.Plain
	}); err != nil {
		return 0, err
	}
	took := time.Since(began)
	return took, s.startReceiver(ctx)
}

// startReceiver starts the receiver's edge and waits until packets are copied.
func (s *stage) startReceiver(ctx context.Context) error {
	if err := s.pair.StartEdge(ctx, viewer); err != nil {
		return err
	}
	return s.pair.Await(ctx, server, "copies again", func(state *daemon.Status) bool { return state.PeerAlive })
}

// removeReceiver kills the receiver's edge, removes its programs, waits until packets leave plain and arrive, and
// starts the edge again.
func (s *stage) removeReceiver(ctx context.Context) error {
	s.pair.KillEdge(viewer)
	if err := s.pair.Run(ctx, viewer, "detach"); err != nil {
		return err
	}
	if err := s.pair.Await(ctx, server, "sends plain packets",
		func(state *daemon.Status) bool { return !state.PeerAlive }); err != nil {
		return err
	}
	if err := lab.Pause(ctx, time.Second); err != nil {
		return err
	}
	return s.startReceiver(ctx)
}
