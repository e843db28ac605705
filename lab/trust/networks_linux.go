package trust

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/auth"
	"github.com/volsfu/volsfu/internal/netem"
	"github.com/volsfu/volsfu/internal/netem/middlebox"
	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/test/certificate"
	"github.com/volsfu/volsfu/test/claim"
)

// The addresses of the emulated internet. Its hosts are on one link of layer 3.
var (
	serverAddress  = netip.MustParsePrefix("10.1.0.1/8")
	serverAddress6 = netip.MustParsePrefix("fd00::1/64")
	clientAddress  = netip.MustParsePrefix("10.2.0.2/8")
	clientAddress6 = netip.MustParsePrefix("fd00::2/64")
	// carrierAddress is that of a provider's NAT, homeAddress that of a router behind it.
	carrierAddress = netip.MustParseAddr("10.3.0.1")
	homeAddress    = netip.MustParseAddr("10.4.0.1")
)

const (
	// joins is the number of joins from each network, shortJoins those in a test.
	joins, shortJoins = 20, 2
	// joinPatience is the time for one join.
	joinPatience = 15 * time.Second
	// roundTrip is the emulated round-trip time between clients and the server.
	roundTrip = 40 * time.Millisecond
	// httpsPort is the port that every firewall passes.
	httpsPort = 443
	// narrowMTU is the smallest maximum size of packets that IPv6 permits, in bytes.
	narrowMTU = 1280
)

// access is the network of a client.
type access struct {
	name string
	// box is new for each network. outer is its address, invalid without NAT.
	box   func() middlebox.Box
	outer netip.Addr
	ipv6  bool
	mtu   int
}

// accesses are the networks of the claim.
var accesses = []access{
	{name: "nothing between", box: func() middlebox.Box { return nil }},
	{name: "UDP blocked", box: func() middlebox.Box { return middlebox.Firewall{TCP: middlebox.AnyPort} }},
	{name: "TCP 443 alone", box: func() middlebox.Box { return middlebox.Firewall{TCP: middlebox.Port(httpsPort)} }},
	{name: "symmetric NAT", outer: carrierAddress,
		box: func() middlebox.Box { return middlebox.NewNAT(carrierAddress, true) }},
	{name: "double NAT", outer: carrierAddress, box: func() middlebox.Box {
		return middlebox.Chain{middlebox.NewNAT(homeAddress, false), middlebox.NewNAT(carrierAddress, true)}
	}},
	{name: "IPv6 alone", ipv6: true, box: func() middlebox.Box { return nil }},
	{name: "MTU of 1,280 bytes", mtu: narrowMTU, box: func() middlebox.Box { return middlebox.MTU(narrowMTU) }},
}

// plan returns the plan of a network with a server and a client. The interface of the client has one family.
func (a access) plan() router.Plan {
	client := router.Interface{Name: "path0", Address: clientAddress, MTU: a.mtu, Box: a.box(), Outer: a.outer}
	from, to := clientAddress.Addr(), serverAddress.Addr()
	if a.ipv6 {
		client.Address, client.Address6 = netip.Prefix{}, clientAddress6
		from, to = clientAddress6.Addr(), serverAddress6.Addr()
	}
	if a.outer.IsValid() {
		from = a.outer
	}
	delay := netem.Config{Delay: roundTrip / 2}
	return router.Plan{
		Namespaces: []router.Namespace{
			{Name: "server", Interfaces: []router.Interface{
				{Name: "path0", Address: serverAddress, Address6: serverAddress6}}},
			{Name: "client", Interfaces: []router.Interface{client}},
		},
		Wires:  []router.Wire{{Name: "forth", Config: delay}, {Name: "back", Config: delay}},
		Routes: []router.Route{{From: from, To: to, Wires: []int{0}}, {From: to, To: from, Wires: []int{1}}},
		Seed:   1,
	}
}

// networks has clients join from each network.
func networks(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	for _, a := range accesses {
		b.progress.Say("  %s", a.name)
		more, err := a.measure(ctx, b)
		lines = append(lines, more...)
		if err != nil {
			return lines, fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return lines, nil
}

// measure has clients join from one network, one after the other.
func (a access) measure(ctx context.Context, b *bench) ([]claim.Line, error) {
	r, err := router.Start(a.plan())
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	s, err := startReached(ctx, b, r)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	count := joins
	if b.short {
		count = shortJoins
	}
	var connected, framed lab.Distribution
	failed := int64(0)
	for n := range count {
		times, err := s.join(ctx, fmt.Sprintf("client %d", n), a.ipv6)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			failed++
			b.progress.Say("    join %d: %v", n+1, err)
		default:
			connected.Add(times.connected)
			framed.Add(times.framed)
		}
	}
	prefix := a.name + ": "
	return []claim.Line{
		claim.Exactly(prefix+"joins that failed", failed, fmt.Sprintf("of %d", count), 0),
		claim.AtMost(prefix+"p95 until connected, with the start of the program", connected.Percentile(0.95).Seconds(),
			"s", 2),
		claim.AtMost(prefix+"p95 until the first frame", framed.Percentile(0.95).Seconds(), "s", 3),
	}, nil
}

// reached is a server in the first namespace of a router, with a publisher beside it.
type reached struct {
	router      *router.Router
	volpeer     string
	token       string
	certificate certificate.Files
	folder      string
	server      *lab.ServerProgram
	publisher   *lab.Program
}

// startReached starts the server and the publisher.
func startReached(ctx context.Context, b *bench, r *router.Router) (s *reached, err error) {
	s = &reached{router: r}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.volpeer, err = b.program("volpeer"); err != nil {
		return s, err
	}
	volsfu, err := b.program("volsfu")
	if err != nil {
		return s, err
	}
	if s.folder, err = os.MkdirTemp("", "volsfu-trust-"); err != nil {
		return s, err
	}
	if s.certificate, err = certificate.Make(s.folder, serverAddress.Addr().String(),
		serverAddress6.Addr().String()); err != nil {
		return s, err
	}
	const key = "lab:a-secret-of-the-check-of-32-bytes-or-more"
	keys, err := auth.NewKeyring(auth.Config{Keys: []string{key}})
	if err != nil {
		return s, err
	}
	now := time.Now()
	if s.token, err = keys.Mint("", auth.Claims{Publish: true, Subscribe: true, Expires: now.Add(time.Hour)},
		now); err != nil {
		return s, err
	}
	s.server, err = lab.StartServerCommand(ctx, topology.CommandIn(ctx, r.Namespace(0), nil, volsfu, "serve",
		"--listen", fmt.Sprintf(":%d", httpsPort), "--tls-cert", s.certificate.Certificate,
		"--tls-key", s.certificate.Key, "--media-address", "::", "--auth-keys", key, "--log-format", "json"))
	if err != nil {
		return s, err
	}
	s.publisher, err = lab.StartCommand("volpeer publish", s.command(ctx, 0, false, "publish", "publisher"), nil)
	return s, err
}

// command returns the command of a volpeer in a namespace.
func (s *reached) command(ctx context.Context, namespace int, ipv6 bool, name, identity string) *exec.Cmd {
	address := serverAddress.Addr()
	if ipv6 {
		address = serverAddress6.Addr()
	}
	trusted := []string{"SSL_CERT_FILE=" + s.certificate.Certificate}
	return topology.CommandIn(ctx, s.router.Namespace(namespace), trusted, s.volpeer, name, "--server",
		"wss://"+netip.AddrPortFrom(address, httpsPort).String(), "--room", "room", "--identity", identity,
		"--token", s.token)
}

// joinTimes are the times from the start of a client's program.
type joinTimes struct{ connected, framed time.Duration }

// join starts a client in the second namespace, and ends it after its first frame.
func (s *reached) join(ctx context.Context, identity string, ipv6 bool) (joinTimes, error) {
	// A frame may arrive before the program has noticed that it is connected.
	watch := &milestones{began: time.Now(), reached: make(chan struct{}),
		times: map[string]time.Duration{"msg=connected": 0, "first frame": 0}}
	p, err := lab.StartCommand("volpeer watch", s.command(ctx, 1, ipv6, "watch", identity), watch)
	if err != nil {
		return joinTimes{}, err
	}
	_, err = lab.AwaitSign(ctx, p, watch.reached, joinPatience)
	if err != nil {
		err = fmt.Errorf("%w; last output: %s", err, p.LastOutput())
	}
	p.Kill()
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if err != nil {
		return joinTimes{}, err
	}
	return joinTimes{watch.times["msg=connected"], watch.times["first frame"]}, nil
}

// stop ends the programs.
func (s *reached) stop() {
	if s.publisher != nil {
		s.publisher.Kill()
	}
	if s.server != nil {
		s.server.Kill()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}

// milestones notes when a program has written texts.
type milestones struct {
	began time.Time
	// reached is closed when all texts were written.
	reached chan struct{}

	mu      sync.Mutex
	written []byte
	// times are the times since began by text, 0 for texts that were not written yet.
	times map[string]time.Duration
}

// Write implements io.Writer. After the last text, what is written is not kept.
func (m *milestones) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.unfinished() {
		return len(b), nil
	}
	m.written = append(m.written, b...)
	for text, at := range m.times {
		if at == 0 && bytes.Contains(m.written, []byte(text)) {
			m.times[text] = time.Since(m.began)
		}
	}
	if !m.unfinished() {
		close(m.reached)
	}
	return len(b), nil
}

// unfinished reports whether a text was not written yet.
func (m *milestones) unfinished() bool {
	for _, at := range m.times {
		if at == 0 {
			return true
		}
	}
	return false
}
