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
	// addresses are where the media of the publisher, the watchers and those that came later comes from, in this
	// order; doors are those of their websockets.
	addresses []netip.AddrPort
	doors     []*door
}

// stage is a server, the innocents and the attacker's host, each on a host of its own.
type stage struct {
	check    *check
	network  *network
	server   *server
	here     *namespace // of the innocents
	attacker *namespace
	// token is the innocents', stolen the attacker's: limits by token are to hit the attacker alone.
	token, stolen string
	// room is where the attacker's participants join, empty for a room of its own for each.
	room string
	innocents
	meter *meter
	// calm is what the innocents suffered alone, nil before.
	calm *calm
}

type stageOptions struct {
	// watchers is how many there are, 0 for one.
	watchers int
	// delay is what the innocents' way to the server takes longer, each way.
	delay time.Duration
}

// joinPatience bounds a join, and how long frames may take to flow after it.
const joinPatience = 30 * time.Second

// spareProcessors is how many more threads than processors the Go runtime may have at work. Floods of this process
// spend their time in the kernel, and the innocents must not wait for a place beside them.
const spareProcessors = 8

var leaveRoom = sync.OnceFunc(func() { runtime.GOMAXPROCS(runtime.NumCPU() + spareProcessors) })

// newStage starts everything, and waits until frames flow.
func newStage(ctx context.Context, c *check, o stageOptions) (*stage, error) {
	leaveRoom()
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

// attend brings a participant that does no harm in from a host. Its part lacks the room, the token and the sockets.
func (s *stage) attend(ctx context.Context, from *namespace, part testbed.Part, delay time.Duration) (*testbed.Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	d, err := newDoor(func(ctx context.Context) (net.Conn, error) {
		return from.dial(ctx, "tcp4", s.server.signalling())
	})
	if err != nil {
		return nil, err
	}
	s.doors = append(s.doors, d)
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

// flowing waits until a watcher gets a second's frames of every tile.
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

// close ends everything.
func (s *stage) close() {
	if s.meter != nil {
		s.meter.close()
	}
	if s.server != nil {
		// A server that is asked to end lets rooms go on for its drain time.
		s.server.Kill()
	}
	for _, d := range s.doors {
		d.close()
	}
	if s.conference != nil {
		s.conference.Close()
	}
	if s.network != nil {
		s.network.close()
	}
}

// quietTime is how long the innocents are alone before an attack: the server's own processor time is taken from it,
// and what the machine itself costs the innocents.
const quietTime = 5 * time.Second

// suffered is what an attack did.
type suffered struct {
	toll
	calm
	// attacked is the server's mean share of a core during the attack.
	attacked float64
	// before, peak and after are the server's memory in MiB: before the attack, at most, and when it had returned or
	// Options.Return had passed. returned is how long after the attack that was.
	before, peak, after float64
	returned            time.Duration
	dead                bool
}

// calm is what is measured with the innocents alone.
type calm struct {
	// quiet is the server's share of a core.
	quiet float64
	alone toll
}

// rest has the innocents alone for a while.
func (s *stage) rest(ctx context.Context) error {
	begin, lasting := s.server.cpu(), s.check.options.atMost(quietTime)
	w := s.watch()
	if err := lab.Pause(ctx, lasting); err != nil {
		return err
	}
	s.calm = &calm{quiet: (s.server.cpu() - begin).Seconds() / lasting.Seconds(), alone: w.end()}
	return nil
}

// under has the innocents alone for a while, unless they have been, attacks, and watches until some time after the
// attack.
func (s *stage) under(ctx context.Context, after time.Duration, attack func(context.Context) error) (suffered, error) {
	var o suffered
	if s.calm == nil {
		if err := s.rest(ctx); err != nil {
			return o, err
		}
	}
	o.calm = *s.calm
	o.before = mebibytes(s.server.resident())
	s.meter.reset()
	w := s.watch()
	began, cpu := time.Now(), s.server.cpu()
	s.check.progress.Say("  the attack begins")
	attacked := attack(ctx)
	// A server that has died has used no more than it had when it was last looked at.
	o.attacked = (s.meter.cpu() - cpu).Seconds() / time.Since(began).Seconds()
	s.check.progress.Say("  the attack has ended, after %.1f s", time.Since(began).Seconds())
	ended := time.Now()
	watched := lab.Pause(ctx, after)
	o.toll = w.end()
	o.peak = mebibytes(s.meter.peak())
	o.after = mebibytes(s.server.resident())
	for o.after > o.before+mostLeft && time.Since(ended) < s.check.options.Return && watched == nil {
		watched = lab.Pause(ctx, time.Second)
		o.after = mebibytes(s.server.resident())
	}
	o.returned, o.dead = time.Since(ended), s.server.dead()
	if o.dead {
		s.check.progress.Say("  the server has ended: %.300s", s.server.Said())
		// Every way to attack a dead server fails.
		attacked = nil
	}
	return o, errors.Join(attacked, watched)
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

const (
	// mostGrowth is what the server's memory may grow by under an attack, in MiB.
	mostGrowth = 64
	// mostLeft is what of that may be left within Options.Return after the attack, in MiB.
	mostLeft = 32
	// mostShare is how much more of a core the server may use under an attack, in percent.
	mostShare = 30
)

// The name and the unit of lines on processor time.
const (
	beyondQuiet = "server's processor time beyond the quiet server's"
	share       = "% of a core"
)

// beyondQuiet is how much more processor time the server took under the attack, in percent of a core.
func (o *suffered) beyondQuiet() float64 { return 100 * (o.attacked - o.quiet) }

// lives is the line on whether the server has survived.
func (o *suffered) lives(prefix string) claim.Line {
	deaths := int64(0)
	if o.dead {
		deaths = 1
	}
	return claim.Exactly(prefix+"times the server has ended", deaths, "", 0)
}

// bounded are the lines of a claim that memory and processor time are bounded.
func (o *suffered) bounded(prefix string) []claim.Line {
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

// meter looks at the server's memory and processor time all the time.
type meter struct {
	server *server
	stop   chan struct{}
	ended  chan struct{}

	mu   sync.Mutex
	most int64
	used time.Duration
}

// meterInterval is how often the meter looks: a flood of 200 MB/s fills 20 MB meanwhile.
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

// reset forgets the peak.
func (m *meter) reset() {
	m.mu.Lock()
	m.most = 0
	m.mu.Unlock()
	m.look()
}

// peak is the most memory since the last reset, in bytes.
func (m *meter) peak() int64 {
	m.look()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

// cpu is the server's processor time, that of its last look where it has died.
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

// intruder says how one joins from the attacker's host.
func (s *stage) intruder() intruder.Config {
	return intruder.Config{
		URL: "ws://" + s.server.signalling(), Token: s.stolen, Media: s.server.media(),
		Dial: s.attacker.dial, Listen: s.attacker.listenUDP,
	}
}

// join brings an intruder in with data channels, which is what reaches SCTP.
func (s *stage) join(ctx context.Context) (*intruder.Intruder, error) {
	return intruder.Join(ctx, s.intruder(), signal.Join{DataChannel: true, Room: s.room})
}

// reachData brings an intruder in and connects it as far as ICE.
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
