package edge

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/edge/channel"
	"github.com/volsfu/volsfu/internal/netfn/wire"
)

// keyBytes is the size of a pair's key.
const keyBytes = 32

// Edge is one end of a pair, with its programs attached.
type Edge struct {
	config    *Config
	log       *zap.Logger
	lock      *os.File
	pins      pins
	started   time.Time
	readopted bool
	changes   *hostChanges

	// mu guards everything below.
	mu       sync.Mutex
	hooks    *hooks
	channel  *channel.Channel
	sender   *sender   // nil without
	receiver *receiver // nil without
	paths    []*edgePath
	// nextHello and nextReport are the times of the next hello and of the next report without news.
	nextHello, nextReport time.Duration
	hellos, reports       uint64
	// greeted reports whether the receiver has taken a hello of the known run of the other edge.
	greeted bool
	// peerAlive reports whether packets may be copied, as it was at the last step.
	peerAlive bool
	// malformed counts authentic messages with a body that cannot be decoded.
	malformed uint64
	// warned has the kinds of control messages that were logged: a flood of them must not fill the log.
	warned map[error]bool
	// read starts a goroutine that reads a socket. It is nil before Run.
	read func(*edgePath, *controlSocket)
	// closing reports whether Run is about to end: nothing may be attached or opened.
	closing bool
}

// edgePath is a path of an edge.
type edgePath struct {
	*Path
	index int
	host  hostPath
	// failed reports whether attaching failed on the present interface, which carries no packets of this edge.
	failed bool
	// attached is the interface at which the programs are, and socketAt the interface of the socket.
	attached, socketAt int
	socket             *controlSocket // nil while the host does not have the address
}

// New attaches an edge to the host, or takes over the programs that a process which died has left. If New returns an
// error, nothing is attached.
func New(c *Config, log *zap.Logger) (*Edge, error) {
	key, err := prepare(c)
	if err != nil {
		return nil, err
	}
	lock, err := lockState(c)
	if err != nil {
		return nil, err
	}
	e := &Edge{config: c, log: log, lock: lock, started: time.Now(), warned: map[error]bool{},
		channel: channel.New(wire.NewKeys(key, c.Name, c.Peer), 1+rand.Uint64N(1<<64-1), monotonic())}
	for i := range c.Paths {
		e.paths = append(e.paths, &edgePath{Path: &c.Paths[i], index: i, host: hostPath{state: PathNoInterface}})
	}
	if err := e.open(); err != nil {
		return nil, errors.Join(err, e.remove())
	}
	return e, nil
}

// prepare checks what needs no change of the host, and returns the key of the pair.
func prepare(c *Config) ([]byte, error) {
	key, err := readKey(c.KeyFile)
	if err != nil {
		return nil, err
	}
	return key, checkPrivileges()
}

// readKey reads the key of a pair.
func readKey(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("read the key of the pair: %w", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%w: the key file %s has the mode %04o, expected a file that others cannot read: "+
			"chmod o= %s", ErrConfig, file, info.Mode().Perm(), file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key of the pair: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(key) != keyBytes {
		return nil, fmt.Errorf("%w: the key file %s does not contain %d hexadecimal digits: openssl rand -hex %d > %s",
			ErrConfig, file, 2*keyBytes, keyBytes, file)
	}
	return key, nil
}

// lockState locks the name of an edge on this host until the process ends.
func lockState(c *Config) (*os.File, error) {
	if err := os.MkdirAll(c.State, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder of the edge's state: %w", denied(err))
	}
	file, err := os.OpenFile(filepath.Join(c.State, c.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the edge: %w", denied(err))
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w: another process holds the lock %s", ErrRunning, file.Name())
		}
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// open finds or makes the pins, loads the programs and attaches them to the paths that the host has.
func (e *Edge) open() error {
	var err error
	if e.pins, err = findPins(e.config, true); err != nil {
		return err
	}
	e.hooks = newHooks(e.config.Name, e.pins)
	if e.changes, err = openChanges(e.config); err != nil {
		return err
	}
	e.readopted = e.pins.exist()
	if !e.readopted {
		if err := e.hooks.checkPaths(e.config); err != nil {
			return err
		}
	}
	if err := e.load(); err != nil {
		return err
	}
	if err := e.hooks.releaseOthers(e.wants); err != nil {
		return err
	}
	return e.reconcile()
}

// load loads programs and maps. Pinned maps of another version of the programs are replaced, with their programs.
func (e *Edge) load() error {
	if err := e.pins.create(); err != nil {
		return err
	}
	err := e.loadSides()
	if !errors.Is(err, ebpf.ErrMapIncompatible) {
		return err
	}
	e.log.Warn("the maps that an earlier process left are of another version: packets leave uncopied for a moment")
	e.readopted = false
	if e.receiver != nil {
		// Only the sender's maps are of another version, but all pins go.
		if err := e.receiver.close(); err != nil {
			return err
		}
		e.receiver = nil
	}
	if err := errors.Join(e.hooks.detachAll(), e.pins.remove(), e.pins.create()); err != nil {
		return err
	}
	return e.loadSides()
}

func (e *Edge) loadSides() (err error) {
	if e.config.Receive != nil {
		if e.receiver, err = newReceiver(e.config, e.pins); err != nil {
			return err
		}
	}
	if e.config.Send == nil {
		return removeSegmenter(e.config.Name)
	}
	if e.sender, err = newSender(e.config, e.pins, e.log); err != nil {
		return err
	}
	if !e.config.needsSegmenter() {
		return errors.Join(e.sender.setSegmenter(0), removeSegmenter(e.config.Name))
	}
	segmenter, err := makeSegmenter(e.config.Name)
	if err != nil {
		return err
	}
	exit := segmenter.exit.Attrs()
	if _, err := e.hooks.attach(hook{pin: segmenterPin, device: exit.Name, ifindex: exit.Index, direction: inward,
		tc: e.sender.objects.SendSegment}); err != nil {
		return err
	}
	return e.sender.setSegmenter(segmenter.entry.Attrs().Index)
}

// wants reports whether the pin of an earlier process, with a link at an interface, belongs to this configuration.
func (e *Edge) wants(pin string, ifindex int) bool {
	if pin == segmenterPin {
		return e.config.needsSegmenter()
	}
	return slices.ContainsFunc(e.paths, func(p *edgePath) bool {
		device, err := net.InterfaceByName(p.Interface)
		return err == nil && device.Index == ifindex &&
			slices.ContainsFunc(e.hooksOf(p, hostPath{}), func(at hook) bool { return at.pin == pin })
	})
}

// hooksOf returns the hooks of a path.
func (e *Edge) hooksOf(p *edgePath, host hostPath) []hook {
	var all []hook
	if r := e.receiver; r != nil {
		at := hook{pin: p.Name + inward.suffix(), device: p.Interface, ifindex: host.ifindex, direction: inward}
		switch {
		case e.config.Receive.Format == FormatStamped:
			at.xdp = r.objects.StampedXdp
		case host.ethernet:
			at.xdp, at.tc = r.objects.ReceiveXdp, r.objects.ReceiveEther
		default:
			at.tc = r.objects.ReceiveBare
		}
		all = append(all, at)
	}
	if s := e.sender; s != nil {
		at := hook{pin: p.Name + outward.suffix(), device: p.Interface, ifindex: host.ifindex, direction: outward,
			tc: s.objects.SendBare}
		if host.ethernet {
			at.tc = s.objects.SendEther
		}
		all = append(all, at)
	}
	return all
}

// reconcile brings hooks, sockets, maps and routes into line with the host. Errors of single paths after the start are
// logged, and the path carries no packets.
func (e *Edge) reconcile() error {
	hosts := make([]hostPath, len(e.paths))
	for i, p := range e.paths {
		var err error
		if hosts[i], err = inspect(p.Path); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil
	}
	mtu := 0
	for i, p := range e.paths {
		if err := e.update(p, hosts[i]); err != nil {
			return err
		}
		if inner := p.host.mtu - overhead(e.format(), p.Local); p.host.mtu > 0 && (mtu == 0 || inner < mtu) {
			mtu = inner
		}
	}
	if e.sender == nil || mtu == 0 {
		return nil
	}
	return e.changes.applyMTU(e.config.prefixes(), mtu)
}

// format returns the format of the sender.
func (e *Edge) format() string {
	if e.config.Send == nil {
		return ""
	}
	return e.config.Send.Format
}

// prefixes returns the prefixes of the sender's rules.
func (c *Config) prefixes() (all []netip.Prefix) {
	for _, rule := range c.Send.Rules {
		if !slices.Contains(all, rule.To) {
			all = append(all, rule.To)
		}
	}
	return all
}

// update brings one path into line with the host.
func (e *Edge) update(p *edgePath, host hostPath) error {
	if host.ifindex != p.attached {
		if err := e.attach(p, host); err != nil {
			// Before Run, New returns the error and detaches everything.
			if e.read == nil {
				return err
			}
			if !p.failed {
				e.log.Error("a path cannot be used", zap.String("path", p.Name), zap.Error(err))
			}
			p.failed = true
		}
	}
	if p.failed {
		host.state = PathDown
	}
	if err := e.openSocket(p, host); err != nil {
		return err
	}
	if host.state != p.host.state {
		e.log.Info("the state of a path has changed", zap.String("path", p.Name), zap.String("interface", p.Interface),
			zap.String("state", string(host.state)))
	}
	p.host = host
	if e.receiver != nil {
		if err := e.receiver.setPath(p.index, host); err != nil {
			return err
		}
	}
	if e.sender != nil {
		return e.sender.setPath(p.index, host)
	}
	return nil
}

// attach attaches the programs to the interface of a path, which is another one than before or has gone.
func (e *Edge) attach(p *edgePath, host hostPath) error {
	p.failed, p.attached = false, host.ifindex
	if host.ifindex == 0 {
		return nil
	}
	if e.receiver != nil {
		if err := e.changes.loosenReversePath(p.Interface); err != nil {
			return err
		}
	}
	for _, at := range e.hooksOf(p, host) {
		holder, err := e.hooks.attach(at)
		if err != nil {
			return err
		}
		e.log.Info("attached a program", zap.String("path", p.Name), zap.String("interface", p.Interface),
			zap.Stringer("packets", at.direction), zap.String("holder", holder))
	}
	return nil
}

// openSocket opens or closes the socket of a path.
func (e *Edge) openSocket(p *edgePath, host hostPath) error {
	usable := host.state == PathUp || host.state == PathNoNeighbour || host.state == PathNoRoute
	if p.socket != nil && (!usable || host.ifindex != p.socketAt) {
		_ = p.socket.Close()
		p.socket = nil
	}
	if p.socket != nil || !usable {
		return nil
	}
	socket, err := openSocket(p.Path, e.config.Port)
	if err != nil {
		if e.read == nil {
			return err
		}
		// The address went away after it was read, or another process took the port: the next reconcile tries again.
		e.log.Warn("a path has no control channel", zap.String("path", p.Name), zap.Error(err))
		return nil
	}
	p.socket, p.socketAt = socket, host.ifindex
	if e.read != nil {
		e.read(p, socket)
	}
	return nil
}

// remove detaches everything, restores the host and unlocks the name.
func (e *Edge) remove() error {
	var all []error
	for _, p := range e.paths {
		if p.socket != nil {
			_ = p.socket.Close()
			p.socket = nil
		}
	}
	if e.hooks != nil {
		all = append(all, e.hooks.detachAll())
	}
	if e.changes != nil {
		all = append(all, e.changes.restore())
	}
	if e.sender != nil {
		all = append(all, e.sender.close())
	}
	if e.receiver != nil {
		all = append(all, e.receiver.close())
	}
	if e.hooks != nil {
		all = append(all, removeSegmenter(e.config.Name), e.pins.remove())
	}
	return errors.Join(append(all, e.lock.Close())...)
}

// Detach removes the programs, maps, pins and changes of the host that a process which died has left, and the given
// files of the process.
func Detach(c *Config, files ...string) error {
	if err := checkPrivileges(); err != nil {
		return err
	}
	lock, err := lockState(c)
	if err != nil {
		return err
	}
	e := &Edge{config: c, lock: lock}
	if e.pins, err = findPins(c, false); err == nil {
		e.hooks = newHooks(c.Name, e.pins)
		e.changes, err = openChanges(c)
	}
	for _, file := range files {
		if failed := os.Remove(file); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, e.remove())
}

// Check checks whether this edge can be attached, without attaching it: the key, privileges, interfaces, addresses,
// foreign programs, and whether the kernel accepts the programs.
func (c *Config) Check() error {
	if _, err := prepare(c); err != nil {
		return err
	}
	pins, err := findPins(c, false)
	if err != nil {
		return err
	}
	if err := newHooks(c.Name, pins).checkPaths(c); err != nil {
		return err
	}
	return checkPrograms(c)
}
