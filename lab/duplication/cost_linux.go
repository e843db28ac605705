package duplication

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netfn/wire"
	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/edgepair"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/traffic"
)

const (
	// filterBatches is the number of test runs of the filter, whose median counts, and filterRuns is the number of
	// packets of each: about a tenth of a second.
	filterBatches = 11
	filterRuns    = 500_000
	// costCount is the number of datagrams for the cost of a copy.
	costCount = 400_000
	// tcpRuns is the number of streams of each way to send, whose median counts, and tcpBytes is their size.
	tcpRuns  = 5
	tcpBytes = 256 << 20
)

// cost measures the programs of a pair on veth pairs.
func cost(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	n, err := newWires(ctx, paths, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	pair, err := b.startEdges(ctx, n, onAll)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	programs, err := n.programs()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, programs.close()) }()
	for _, part := range []func() ([]claim.Line, error){
		func() ([]claim.Line, error) { return testRun(ctx, b, n, pair, programs.receiver) },
		func() ([]claim.Line, error) { return perCopy(ctx, b, n, pair, programs) },
		func() ([]claim.Line, error) { return streams(ctx, b, n, pair) },
		func() ([]claim.Line, error) { return memory(pair) },
	} {
		more, err := part()
		lines = append(lines, more...)
		if err != nil {
			return lines, err
		}
	}
	return lines, nil
}

// programs are the programs of a pair, as the edges have loaded them: the sender's of the first host, and the
// receiver's of the second.
type programs struct{ sender, receiver *ebpf.Program }

// programs opens the programs that are attached to the first link.
func (r *routable) programs() (p programs, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	if err := r.Inside(hosts[0], func() error {
		device, err := netlink.LinkByName(r.links[0].Interfaces[0])
		if err != nil {
			return err
		}
		found, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: ebpf.AttachTCXEgress})
		if errors.Is(err, ebpf.ErrNotSupported) {
			return fmt.Errorf("%w: the kernel has no TCX: %w", lab.ErrUnable, err)
		}
		if err != nil {
			return err
		}
		if len(found.Programs) != 1 {
			return fmt.Errorf("%d programs at the egress of %s, expected that of the edge", len(found.Programs),
				device.Attrs().Name)
		}
		p.sender, err = ebpf.NewProgramFromID(found.Programs[0].ID)
		return err
	}); err != nil {
		return p, fmt.Errorf("program of the sender: %w", err)
	}
	if err := r.Inside(hosts[1], func() error {
		device, err := netlink.LinkByName(r.links[0].Interfaces[1])
		if err != nil {
			return err
		}
		xdp := device.Attrs().Xdp
		if xdp == nil || !xdp.Attached {
			return fmt.Errorf("no XDP program at %s", device.Attrs().Name)
		}
		p.receiver, err = ebpf.NewProgramFromID(ebpf.ProgramID(xdp.ProgId))
		return err
	}); err != nil {
		return p, fmt.Errorf("program of the receiver: %w", err)
	}
	return p, nil
}

func (p *programs) close() (err error) {
	for _, program := range []*ebpf.Program{p.sender, p.receiver} {
		if program != nil {
			err = errors.Join(err, program.Close())
		}
	}
	return err
}

// testRun measures the filter by test runs of the kernel on one processor, for repeats: the kernel gives the program
// the frame of the previous run again, and a repeat leaves it as it was. First copies, a third of all, are in the time
// on veth.
func testRun(ctx context.Context, b *bench, n *routable, pair *edgepair.Pair, filter *ebpf.Program) ([]claim.Line,
	error) {
	status, err := pair.Status(ctx, hosts[0])
	if err != nil {
		return nil, err
	}
	frame, err := n.copyOf(status.Epoch)
	if err != nil {
		return nil, err
	}
	verdict, _, err := filter.Test(frame)
	if err != nil {
		return nil, fmt.Errorf("test run of the filter: %w", err)
	}
	const drop, pass = 1, 2 // XDP_DROP, XDP_PASS
	if verdict != pass {
		return nil, fmt.Errorf("the filter returned %d for a first copy, expected %d", verdict, pass)
	}
	runs := filterRuns
	if b.short {
		runs = 1000
	}
	var rates []float64
	for range filterBatches {
		verdict, each, err := filter.Benchmark(frame, runs, nil)
		if err != nil {
			return nil, fmt.Errorf("test runs of the filter: %w", err)
		}
		if verdict != drop {
			return nil, fmt.Errorf("the filter returned %d for a repeat, expected %d", verdict, drop)
		}
		rates = append(rates, 1e3/float64(each.Nanoseconds()))
	}
	return []claim.Line{
		claim.AtLeast(fmt.Sprintf("filter on one core, median of %d test runs of %d packets", filterBatches, runs),
			lab.Median(rates), "Mpps", 5),
	}, nil
}

// copyPort is the default port of an edge, to which copies are sent.
const copyPort = 4755

// copyOf returns the frame of a copy on the first path, with 1,200 bytes of payload, of a flow that no other packet
// has.
func (r *routable) copyOf(epoch uint16) ([]byte, error) {
	var hardware []byte
	if err := r.Inside(hosts[1], func() error {
		device, err := netlink.LinkByName(r.links[0].Interfaces[1])
		if err == nil {
			hardware = device.Attrs().HardwareAddr
		}
		return err
	}); err != nil {
		return nil, err
	}
	header := wire.Header{Set: 1, Flow: 255, Epoch: epoch, Base: 1}
	outer := r.links[0].Addresses
	packet := udpPacket(outer[0], outer[1], copyPort, header.Append(nil),
		udpPacket(inner(0, 0), inner(1, 0), copyPort, make([]byte, 1200)))
	frame := append(append([]byte{}, hardware...), 2, 0, 0, 0, 0, 1, 8, 0)
	return append(frame, packet...), nil
}

// udpPacket returns a UDP datagram in IPv4, without checksums, which the filter does not read.
func udpPacket(from, to netip.Addr, port uint16, payload ...[]byte) []byte {
	packet := []byte{0x45, 19: 0}
	packet[8], packet[9] = 64, unix.IPPROTO_UDP
	copy(packet[12:], from.AsSlice())
	copy(packet[16:], to.AsSlice())
	packet = binary.BigEndian.AppendUint16(packet, port)
	packet = binary.BigEndian.AppendUint16(packet, port)
	packet = append(packet, 0, 0, 0, 0)
	for _, part := range payload {
		packet = append(packet, part...)
	}
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	binary.BigEndian.PutUint16(packet[24:], uint16(len(packet)-20))
	return packet
}

// perCopy measures the time that the programs take for datagrams with and without segments, which the kernel counts.
// The time of the sender includes the sending of the clones, and the runs in which the clones pass the program again.
func perCopy(ctx context.Context, b *bench, n *routable, pair *edgepair.Pair, p programs) (lines []claim.Line,
	err error) {
	statistics, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, statistics.Close()) }()
	count := costCount
	if b.short {
		count = 1600
	}
	for _, test := range []struct {
		kind       traffic.Kind
		of         string
		send, most float64 // ns
	}{
		{traffic.Kind{Segments: 1, Sockets: 1}, "datagram", 1000, 300},
		{traffic.Kind{Segments: 16, Sockets: 1}, "segment of 16", 250, 300},
	} {
		var before, after times
		if err := whileCopying(ctx, pair, func() (err error) {
			if before, err = p.times(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, streamLimit)
			defer cancel()
			got, err := test.kind.Transfer(ctx, n.ends(0), direct.options, count, quiet)
			if err != nil {
				return err
			}
			if got.Arrived != got.Sent {
				return fmt.Errorf("%d of %d datagrams arrived", got.Arrived, got.Sent)
			}
			after, err = p.times()
			return err
		}); err != nil {
			return lines, err
		}
		send := float64(after.sender.Runtime-before.sender.Runtime) / float64(count*paths)
		receive := float64(after.receiver.Runtime-before.receiver.Runtime) /
			float64(after.receiver.RunCount-before.receiver.RunCount)
		lines = append(lines, claim.AtMost("a copy of a "+test.of+", in three copies", send, "ns", test.send),
			claim.AtMost("filter on veth, a copy of a "+test.of, receive, "ns", test.most))
	}
	return lines, nil
}

// times are the statistics of both programs.
type times struct{ sender, receiver *ebpf.ProgramStats }

func (p *programs) times() (t times, err error) {
	if t.sender, err = p.sender.Stats(); err != nil {
		return t, err
	}
	t.receiver, err = p.receiver.Stats()
	return t, err
}

// streams measures TCP with BBR in three copies, and without edges. Both ways alternate. Without edges, a program at
// the receiver passes all packets, so that super-packets are cut as on a wire: between veth devices without XDP they
// are never cut.
func streams(ctx context.Context, b *bench, copied *routable, pair *edgepair.Pair) (lines []claim.Line, err error) {
	plain, err := newWires(ctx, 1, 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.Close()) }()
	pass, err := plain.attachPass()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pass.Close()) }()
	runs, size := tcpRuns, tcpBytes
	if b.short {
		runs, size = 1, 4<<20
	}
	var rates [2][]float64
	retransmitted := uint32(0)
	for range runs {
		for i, n := range []*routable{plain, copied} {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			e := n.ends(0)
			var got traffic.StreamResult
			err := whileCopying(ctx, pair, func() (err error) {
				got, err = traffic.Stream(e.From, e.To, e.Source, e.Destination, size, streamLimit)
				return err
			})
			if errors.Is(err, traffic.ErrNoBBR) {
				return []claim.Line{claim.Skip("TCP with BBR", err.Error())}, nil
			}
			if err != nil {
				return nil, err
			}
			rates[i] = append(rates[i], 8*float64(size)/got.Elapsed.Seconds()/1e9)
			if n == copied {
				retransmitted += got.Retransmitted
			}
		}
	}
	ours, theirs := lab.Median(rates[1]), lab.Median(rates[0])
	return []claim.Line{
		claim.AtLeast(fmt.Sprintf("TCP with BBR in three copies, median of %d", runs), ours, "Gbit/s", 1),
		claim.Information("TCP with BBR without edges, packets cut as on a wire", theirs, "Gbit/s"),
		claim.AtLeast("three copies, of the rate without edges", 100*ours/theirs, "%", 50),
		claim.Information("segments that TCP sent again in three copies", float64(retransmitted), ""),
	}, nil
}

// attachPass attaches a program that passes all packets at the second host.
func (r *routable) attachPass() (attached link.Link, err error) {
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "pass", Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pass.Close()) }()
	err = r.Inside(hosts[1], func() error {
		device, err := netlink.LinkByName(r.links[0].Interfaces[1])
		if err != nil {
			return err
		}
		attached, err = link.AttachXDP(link.XDPOptions{Interface: device.Attrs().Index, Program: pass,
			Flags: link.XDPDriverMode})
		return err
	})
	return attached, err
}

// perFlow are the maps with entries for each flow, and flows is the number of flows of an edge: see package bpf.
var perFlow = []string{"windows", "numbers", "stamps"}

const flows = 256

// memory measures the memory of the second host's edge: its process, and its maps in the kernel.
func memory(pair *edgepair.Pair) ([]claim.Line, error) {
	resident, err := lab.ResidentBytes(pair.Edge(hosts[1]).PID())
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(pair.Pins(hosts[1]), "maps")
	pinned, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all, ofFlows uint64
	found := 0
	for _, entry := range pinned {
		bytes, err := mapBytes(filepath.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("map %s: %w", entry.Name(), err)
		}
		all += bytes
		if slices.Contains(perFlow, entry.Name()) {
			ofFlows += bytes
			found++
		}
	}
	if found != len(perFlow) {
		return nil, fmt.Errorf("%d of the maps %s are pinned in %s, expected all", found, strings.Join(perFlow, ", "),
			folder)
	}
	const kB, mB = 1e3, 1e6
	return []claim.Line{
		claim.AtMost("memory of a flow at both ends", float64(ofFlows)/flows/kB, "kB", 16),
		claim.AtMost("an edge: resident memory and maps", (resident+float64(all))/mB, "MB", 40),
		claim.Information("maps of an edge", float64(all)/mB, "MB"),
	}, nil
}

// mapBytes returns the memory of a pinned map.
func mapBytes(pin string) (uint64, error) {
	m, err := ebpf.LoadPinnedMap(pin, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	info, err := m.Info()
	if err != nil {
		return 0, err
	}
	bytes, known := info.Memlock()
	if !known {
		return 0, errors.New("the kernel does not tell its memory")
	}
	return bytes, nil
}
