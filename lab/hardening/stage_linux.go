package hardening

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/volumetric"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/intruder"
	"github.com/volsfu/volsfu/test/testbed"
)

// innocents are a publisher and watchers that do no harm.
type innocents struct {
	conference *testbed.Conference
	publisher  *testbed.Peer
	watchers   []*testbed.Peer
	// addresses are the media source addresses of the publisher, the watchers and later participants, in this order.
	// relays has the relays of their websockets.
	addresses []netip.AddrPort
	relays    []*relay
}

// stage is a server, the innocents and the attacker, each on its own host.
type stage struct {
	check    *check
	network  *network
	server   *server
	here     *namespace // host of the innocents
	attacker *namespace
	// token is the innocents' token, stolen the attacker's: limits by token must affect the attacker only.
	token, stolen string
	// room is the room of the attacker's participants; empty for a separate room each.
	room string
	innocents
	meter *meter
	// baseline holds the figures of the innocents alone, nil until measured.
	baseline *baseline
}

type stageOptions struct {
	// watchers is the number of watchers, 0 for one.
	watchers int
	// delay is the additional delay of the innocents' path to the server, in each direction.
	delay time.Duration
}

// joinPatience bounds the time for a join, and the time until frames arrive after it.
const joinPatience = 30 * time.Second

// spareProcessors is the number of additional threads beyond the number of processors that the Go runtime may run.
// Floods of this process spend their time in the kernel, and must not keep the innocents from running.
const spareProcessors = 8

var raiseMaxProcs = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors) })

// newStage starts all programs and hosts, and waits until frames arrive.
func newStage(ctx context.Context, c *check, o stageOptions) (*stage, error) {
	raiseMaxProcs()
	path := c.options.Server
	if path == "" {
		var err error
		if path, err = lab.FindProgram("volsfu"); err != nil {
			return nil, err
		}
	}
	s := &stage{check: c}
	if err := s.open(ctx, path, o); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) open(ctx context.Context, path string, o stageOptions) (err error) {
	if s.network, err = newNetwork(); err != nil {
		return err
	}
	there, err := s.network.host("server")
	if err != nil {
		return err
	}
	if s.here, err = s.network.host("innocents"); err != nil {
		return err
	}
	if s.attacker, err = s.network.host("attacker"); err != nil {
		return err
	}
	if s.server, err = startServer(ctx, there, path); err != nil {
		return err
	}
	if s.token, err = s.server.token(0); err != nil {
		return err
	}
	if s.stolen, err = s.server.token(1); err != nil {
		return err
	}
	s.meter = newMeter(s.server)
	s.conference = testbed.Attend("")
	alice := testbed.Part{Identity: "alice", Loads: []testbed.Load{innocentLoad}, MinUplink: testbed.Everything}
	if s.publisher, err = s.attend(ctx, s.here, alice, o.delay); err != nil {
		return err
	}
	for n := range max(1, o.watchers) {
		carol := testbed.Part{Identity: fmt.Sprintf("carol %d", n), Receive: true, Record: true}
		watcher, err := s.attend(ctx, s.here, carol, o.delay)
		if err != nil {
			return err
		}
		s.watchers = append(s.watchers, watcher)
	}
	for _, watcher := range s.watchers {
		if err := s.flowing(ctx, watcher); err != nil {
			return err
		}
	}
	return nil
}

// attend joins a harmless participant from a host. attend sets the room, the token and the sockets of part.
func (s *stage) attend(ctx context.Context, from *namespace, part testbed.Part, delay time.Duration) (*testbed.Peer,
	error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	d, err := newRelay(func(ctx context.Context) (net.Conn, error) {
		return from.dial(ctx, "tcp4", s.server.signalling())
	})
	if err != nil {
		return nil, err
	}
	s.relays = append(s.relays, d)
	conn, err := from.listenUDP()
	if err != nil {
		return nil, err
	}
	s.addresses = append(s.addresses, conn.LocalAddr().(*net.UDPAddr).AddrPort())
	part.Room, part.Token, part.URL, part.Media = innocentRoom, s.token, d.url(), conn
	if delay > 0 {
		part.Media = newDelayedConn(conn, delay)
	}
	p, err := s.conference.Join(ctx, part)
	if err != nil {
		return nil, err
	}
	select {
	case <-p.Connected:
		return p, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%s is not connected after %v: %w", part.Identity, joinPatience, ctx.Err())
	}
}

// flowing waits until a watcher has a second's frames of every tile.
func (s *stage) flowing(ctx context.Context, p *testbed.Peer) error {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	return testbed.Await(ctx, "the innocents' frames flow", func() bool {
		for tile := range innocentLoad.Tiles {
			if p.Tile(innocentTile(tile)).Frames < int(innocentLoad.Rate) {
				return false
			}
		}
		return true
	})
}

func innocentTile(tile int) volumetric.TileRef {
	body := volumetric.PublicationRef{Participant: "alice", Publication: innocentLoad.Name}
	return volumetric.TileRef{PublicationRef: body, Tile: tile}
}

// close ends all programs and hosts.
func (s *stage) close() {
	if s.meter != nil {
		s.meter.close()
	}
	if s.server != nil {
		// After SIGTERM the server would keep rooms for its drain time.
		s.server.Kill()
	}
	for _, d := range s.relays {
		d.close()
	}
	if s.conference != nil {
		s.conference.Close()
	}
	if s.network != nil {
		s.network.close()
	}
}

// quietTime is the time for which the innocents are measured alone before an attack. The measurement yields the
// server's own processor time, and the machine's own effect on the innocents.
const quietTime = 5 * time.Second

// outcome is the effect of an attack.
type outcome struct {
	impact
	baseline
	// attacked is the server's mean share of a core during the attack.
	attacked float64
	// before, peak and after are the server's memory in MiB: before the attack, the maximum, and at the end. The end is
	// the time at which at most mostLeft of the growth remained, or Options.Return after the attack. returned is the
	// time from the end of the attack until then.
	before, peak, after float64
	returned            time.Duration
	dead                bool
}

// baseline holds the figures measured with the innocents alone.
type baseline struct {
	// quiet is the server's share of a core.
	quiet float64
	alone impact
}

// measureBaseline measures the innocents alone.
func (s *stage) measureBaseline(ctx context.Context) error {
	begin, lasting := s.server.cpu(), s.check.options.atMost(quietTime)
	w := s.watch()
	if err := lab.Pause(ctx, lasting); err != nil {
		return err
	}
	s.baseline = &baseline{quiet: (s.server.cpu() - begin).Seconds() / lasting.Seconds(), alone: w.end()}
	return nil
}

// measure runs an attack and watches the innocents until the given time after the attack. Before the first attack,
// measure also measures the innocents alone.
func (s *stage) measure(ctx context.Context, after time.Duration, attack func(context.Context) error) (outcome, error) {
	var o outcome
	if s.baseline == nil {
		if err := s.measureBaseline(ctx); err != nil {
			return o, err
		}
	}
	o.baseline = *s.baseline
	o.before = mebibytes(s.server.resident())
	s.meter.reset()
	w := s.watch()
	began, cpu := time.Now(), s.server.cpu()
	s.check.progress.Say("  the attack begins")
	attacked := attack(ctx)
	// The processor time of a dead server is that of the last reading.
	o.attacked = (s.meter.cpu() - cpu).Seconds() / time.Since(began).Seconds()
	s.check.progress.Say("  the attack has ended, after %.1f s", time.Since(began).Seconds())
	ended := time.Now()
	watched := lab.Pause(ctx, after)
	o.impact = w.end()
	o.peak = mebibytes(s.meter.peak())
	o.after = mebibytes(s.server.resident())
	for o.after > o.before+mostLeft && time.Since(ended) < s.check.options.Return && watched == nil {
		watched = lab.Pause(ctx, time.Second)
		o.after = mebibytes(s.server.resident())
	}
	o.returned, o.dead = time.Since(ended), s.server.dead()
	if o.dead {
		s.check.progress.Say("  the server has ended: %.300s", s.server.LastOutput())
		// Every attack on a dead server fails, so the error is meaningless.
		attacked = nil
	}
	return o, errors.Join(attacked, watched)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

const (
	// mostGrowth is the largest growth of the server's memory under an attack, in MiB.
	mostGrowth = 64
	// mostLeft is the largest part of the growth that may remain within Options.Return after the attack, in MiB.
	mostLeft = 32
	// mostShare is the largest additional share of a core under an attack, in percent.
	mostShare = 30
)

// The name and the unit of lines on processor time.
const (
	beyondQuiet = "server's processor time beyond the quiet server's"
	share       = "% of a core"
)

// beyondQuiet returns the additional processor time of the server under the attack, in percent of a core.
func (o *outcome) beyondQuiet() float64 { return 100 * (o.attacked - o.quiet) }

// survival returns the line on the server's survival.
func (o *outcome) survival(prefix string) claim.Line {
	deaths := int64(0)
	if o.dead {
		deaths = 1
	}
	return claim.Exactly(prefix+"times the server has ended", deaths, "", 0)
}

// bounded returns the lines of the claim that memory and processor time are bounded.
func (o *outcome) bounded(prefix string) []claim.Line {
	return []claim.Line{
		claim.AtMost(prefix+"server's memory, grown at most", o.peak-o.before, "MiB", mostGrowth),
		claim.AtMost(prefix+"server's memory, left when it had returned", o.after-o.before, "MiB", mostLeft),
		claim.Stated(prefix+"time after the attack until then", o.returned.Seconds(), "s"),
		claim.Information(prefix+"server's memory before", o.before, "MiB"),
		claim.AtMost(prefix+beyondQuiet, o.beyondQuiet(), share, mostShare),
		claim.Information(prefix+"server's processor time, innocents alone", 100*o.quiet, "% of a core"),
		claim.Information(prefix+"server's processor time under attack", 100*o.attacked, "% of a core"),
	}
}

// meter samples the server's memory and processor time.
type meter struct {
	server *server
	stop   chan struct{}
	ended  chan struct{}

	mu   sync.Mutex
	most int64
	used time.Duration
}

// meterInterval is the interval of the samples: a flood of 200 MB/s fills 20 MB in this time.
const meterInterval = 100 * time.Millisecond

func newMeter(s *server) *meter {
	m := &meter{server: s, stop: make(chan struct{}), ended: make(chan struct{})}
	go m.run()
	return m
}

// run is the meter's goroutine.
func (m *meter) run() {
	defer close(m.ended)
	ticker := time.NewTicker(meterInterval)
	defer ticker.Stop()
	for {
		m.look()
		select {
		case <-ticker.C:
		case <-m.stop:
			return
		}
	}
}

func (m *meter) look() {
	resident, used := m.server.resident(), m.server.cpu()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.most, m.used = max(m.most, resident), max(m.used, used)
}

// reset clears the peak.
func (m *meter) reset() {
	m.mu.Lock()
	m.most = 0
	m.mu.Unlock()
	m.look()
}

// peak returns the largest memory since the last reset, in bytes.
func (m *meter) peak() int64 {
	m.look()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// cpu returns the server's processor time, that of the last sample if the server is dead.
func (m *meter) cpu() time.Duration {
	m.look()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

func (m *meter) close() {
	close(m.stop)
	<-m.ended
}

// intruder returns the configuration of an intruder on the attacker's host.
func (s *stage) intruder() intruder.Config {
	return intruder.Config{
		URL: "ws://" + s.server.signalling(), Token: s.stolen, Media: s.server.media(),
		Dial: s.attacker.dial, Listen: s.attacker.listenUDP,
	}
}

// join joins an intruder with data channels, which are the access to SCTP.
func (s *stage) join(ctx context.Context) (*intruder.Intruder, error) {
	return intruder.Join(ctx, s.intruder(), signal.Join{DataChannel: true, Room: s.room})
}

// reachData joins an intruder and connects it up to and including ICE.
func (s *stage) reachData(ctx context.Context) (*intruder.Intruder, *intruder.Path, error) {
	i, err := s.join(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := i.Reach(ctx)
	if err != nil {
		i.Close()
		return nil, nil, err
	}
	return i, p, nil
}
