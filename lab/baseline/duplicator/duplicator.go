package duplicator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/edge"
	"github.com/volsfu/volsfu/internal/netfn/edge/bpf"
	"github.com/volsfu/volsfu/internal/netfn/paths"
)

// Host is an end of the paths.
type Host struct {
	// Inside calls a function in the host's network namespace, and returns the error of the function.
	Inside func(func() error) error
	// Address is the host's IPv4 address for the copied packets.
	Address netip.Addr
	// Interfaces are the Ethernet interfaces of the paths, in the order of the paths. The first path is the default.
	Interfaces []string
}

// Counts are counts since the start.
type Counts struct {
	// Packets are the packets to the receiver's host, and Copies the packets sent on all paths.
	Packets, Copies uint64
	// Passed and Dropped are the decisions of the receiver's filter.
	Passed, Dropped uint64
}

const (
	// mtu is the MTU of Ethernet. The published marking adds no bytes.
	mtu = 1500
	// sampleInterval is the time between readings of the samples: at 25,000 copies per second, 125 of the 8,192 for
	// which the kernel has room.
	sampleInterval = 5 * time.Millisecond
)

// Pair is a sender and a receiver with their controller. Its methods are safe for concurrent use.
type Pair struct {
	sender   bpf.SenderObjects
	receiver bpf.ReceiverObjects
	links    []link.Link
	samples  *ringbuf.Reader // nil before the start
	reading  sync.WaitGroup
	paths    int

	mu         sync.Mutex
	controller *controller
	failed     error // of the first map that could not be written or sample that could not be read
}

// Start attaches the programs to the interfaces of both hosts. Packets leave on the default path only until the trigger
// fires. The error wraps edge.ErrPrivileges or edge.ErrUnsupported if this process or this kernel cannot have the
// programs; then nothing is attached.
func Start(sender, receiver Host) (_ *Pair, err error) {
	p := &Pair{paths: len(sender.Interfaces), controller: newController(len(sender.Interfaces), time.Now())}
	defer func() {
		if err != nil {
			err = errors.Join(lacking(err), p.Close())
		}
	}()
	if err := load(bpf.LoadSender, &p.sender); err != nil {
		return nil, err
	}
	if err := load(bpf.LoadReceiver, &p.receiver); err != nil {
		return nil, err
	}
	if err := p.fill(sender.Address, receiver.Address); err != nil {
		return nil, err
	}
	for i := range sender.Interfaces {
		if err := p.attach(i, sender, receiver); err != nil {
			return nil, err
		}
	}
	if p.samples, err = ringbuf.NewReader(p.receiver.Samples); err != nil {
		return nil, err
	}
	p.reading.Go(p.read)
	return p, nil
}

// lacking adds the sentinel of package edge to an error of a kernel that refuses or does not have the programs.
func lacking(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w: %w", edge.ErrPrivileges, err)
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%w: %w", edge.ErrUnsupported, err)
	}
	return err
}

// load loads programs and maps without pinning the maps.
func load(read func() (*ebpf.CollectionSpec, error), objects any) error {
	spec, err := read()
	if err != nil {
		return err
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	return spec.LoadAndAssign(objects, nil)
}

// fill writes the maps that do not depend on interfaces.
func (p *Pair) fill(from, to netip.Addr) error {
	err := errors.Join(
		p.sender.SendConfig.Put(uint32(0), bpf.SenderConfig{LeaseNs: math.MaxUint64, Mark: bpf.Mark, Epoch: 1}),
		p.receiver.Inner.Put(bpf.AcceptedPrefix(netip.PrefixFrom(from, from.BitLen())), uint32(1)))
	for key, rules := range bpf.RulePrefixes([]netip.Prefix{netip.PrefixFrom(to, to.BitLen())}) {
		err = errors.Join(err, p.sender.Prefixes.Put(key, rules))
	}
	return errors.Join(err, p.apply())
}

// apply writes the decision of the controller: the sender's paths, and whether the receiver reports arrivals.
func (p *Pair) apply() error {
	report := bpf.ReceiverConfig{}
	if p.controller.running() {
		report.Divisor = 1
	}
	return errors.Join(p.receiver.ReceiveConfig.Put(uint32(0), report),
		p.sender.Rules.Put(uint32(0), bpf.SenderRule{PortLast: math.MaxUint16, Dscp: bpf.AnyDSCP,
			Format: bpf.FormatPaper, Set: uint8(p.controller.set)}))
}

// attach enters a path into the maps and attaches the programs to its interfaces.
func (p *Pair) attach(path int, sender, receiver Host) error {
	entry := bpf.SenderPath{Mtu: mtu, Version: 4, Ether: 1}
	if err := receiver.Inside(func() error {
		at, err := net.InterfaceByName(receiver.Interfaces[path])
		if err != nil {
			return err
		}
		copy(entry.Destination[:], at.HardwareAddr)
		return p.hold(link.AttachXDP(link.XDPOptions{Program: p.receiver.PaperXdp, Interface: at.Index,
			Flags: link.XDPDriverMode}))
	}); err != nil {
		return fmt.Errorf("attach the receiver to the interface %s: %w", receiver.Interfaces[path], err)
	}
	if err := sender.Inside(func() error {
		at, err := net.InterfaceByName(sender.Interfaces[path])
		if err != nil {
			return err
		}
		copy(entry.Source[:], at.HardwareAddr)
		entry.Ifindex = uint32(at.Index)
		if err := p.sender.Paths.Put(uint32(path), entry); err != nil {
			return err
		}
		return p.hold(link.AttachTCX(link.TCXOptions{Program: p.sender.SendEther, Interface: at.Index,
			Attach: ebpf.AttachTCXEgress}))
	}); err != nil {
		return fmt.Errorf("attach the sender to the interface %s: %w", sender.Interfaces[path], err)
	}
	return nil
}

// hold keeps a link until Close.
func (p *Pair) hold(l link.Link, err error) error {
	if err == nil {
		p.links = append(p.links, l)
	}
	return err
}

// Request takes a request for a frame that has reached the server.
func (p *Pair) Request() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.controller.request(time.Now()) {
		p.fail(p.apply())
	}
}

// Enable enables all paths, as the trigger does.
func (p *Pair) Enable() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.controller.start(time.Now())
	p.fail(p.apply())
}

// Fix lets packets leave on a set of paths without Algorithm 1, until the trigger fires.
func (p *Pair) Fix(set paths.Set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.controller.fix(set)
	p.fail(p.apply())
}

// fail keeps the first error. The caller holds mu.
func (p *Pair) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// read hands the samples to the controller until the reader is closed.
func (p *Pair) read() {
	var record ringbuf.Record
	for {
		err := p.samples.ReadInto(&record)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		p.mu.Lock()
		if err == nil {
			err = p.take(record.RawSample)
		}
		p.fail(err)
		p.mu.Unlock()
		if record.Remaining == 0 {
			time.Sleep(sampleInterval)
		}
	}
}

// take takes a sample. The caller holds mu.
func (p *Pair) take(record []byte) error {
	var s bpf.ReceiverSample
	if _, err := binary.Decode(record, binary.NativeEndian, &s); err != nil {
		return fmt.Errorf("a sample has %d bytes, expected %d: %w", len(record), binary.Size(s), err)
	}
	if p.controller.sample(uint16(s.Number), int(s.Path), time.Duration(s.ArrivedNs)) {
		return p.apply()
	}
	return nil
}

// Runs returns the runs of Algorithm 1 so far.
func (p *Pair) Runs() []Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.controller.runs)
}

// Counts returns the counts so far. The error is also that of the programs, if one of the maps or samples has failed.
func (p *Pair) Counts() (c Counts, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return c, p.failed
	}
	var selected []bpf.SenderSelected
	err = p.sender.Selected.Lookup(uint32(0), &selected)
	for i := range selected {
		c.Packets += selected[i].Packets
	}
	for path := range uint32(p.paths) {
		var sent []bpf.SenderSent
		var received []bpf.ReceiverReceived
		err = errors.Join(err, p.sender.Sent.Lookup(path, &sent), p.receiver.Received.Lookup(path, &received))
		for i := range sent {
			c.Copies += sent[i].Packets
		}
		for i := range received {
			c.Passed += received[i].First
			c.Dropped += received[i].Repeated
		}
	}
	return c, err
}

// Close detaches the programs.
func (p *Pair) Close() (err error) {
	for _, l := range p.links {
		err = errors.Join(err, l.Close())
	}
	if p.samples != nil {
		err = errors.Join(err, p.samples.Close())
	}
	p.reading.Wait()
	return errors.Join(err, p.sender.Close(), p.receiver.Close())
}
