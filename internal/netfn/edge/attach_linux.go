package edge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Holders of a program.
const (
	holderXDP    = "XDP"
	holderTCX    = "TCX"
	holderClsact = "clsact"
)

// direction is a side of an interface at which a program is attached.
type direction uint8

const (
	inward direction = iota
	outward
)

// suffix ends the names of pins and filters of the direction.
func (d direction) suffix() string { return [...]string{"-in", "-out"}[d] }

// attachType returns the place of TCX.
func (d direction) attachType() ebpf.AttachType {
	return [...]ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress}[d]
}

// parent returns the place of clsact.
func (d direction) parent() uint32 {
	return [...]uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS}[d]
}

func (d direction) String() string { return [...]string{"incoming", "outgoing"}[d] }

// hook is a place where an edge attaches a program.
type hook struct {
	// pin is the name of the link's pin, also of the hook in messages.
	pin     string
	device  string
	ifindex int
	direction
	// xdp is tried first and may be nil. It is a program for the same work as tc.
	xdp, tc *ebpf.Program
}

// hooks attaches the programs of an edge to interfaces and pins their links. Before Linux 6.6 there are no links at
// TCX: then filters with the names volnet:NAME-in and volnet:NAME-out hold the programs.
type hooks struct {
	edge string
	pins pins
	// clsact uses filters even if TCX is supported, for tests.
	clsact bool
	// links has the attached links, by pin.
	links map[string]link.Link
}

func newHooks(edge string, p pins) *hooks {
	return &hooks{edge: edge, pins: p, links: map[string]link.Link{}}
}

// attach attaches a program, or replaces the program of an earlier process without a gap. It returns what holds the
// program: XDP, TCX or clsact.
func (h *hooks) attach(at hook) (holder string, err error) {
	if holder, ok, err := h.adopt(at); ok || err != nil {
		return holder, err
	}
	device, err := netlink.LinkByIndex(at.ifindex)
	if err != nil {
		return "", fmt.Errorf("read the interface %s: %w", at.device, err)
	}
	if err := h.foreign(device, at.direction); err != nil {
		return "", err
	}
	l, holder, err := h.create(device, at)
	if err != nil || l == nil {
		return holder, err
	}
	if err := l.Pin(h.pins.link(at.pin)); err != nil {
		return "", errors.Join(fmt.Errorf("pin the program of the interface %s: %w", at.device, denied(err)), l.Close())
	}
	h.links[at.pin] = l
	return holder, nil
}

// adopt updates the pinned link of an earlier process, if it is at the interface. A link of another interface, or of
// one that has gone, is removed.
func (h *hooks) adopt(at hook) (holder string, ok bool, err error) {
	l, err := h.held(at.pin)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	holder, ifindex, err := placeOf(l)
	if err != nil {
		return "", false, fmt.Errorf("read the pin %s: %w", at.pin, err)
	}
	program := at.tc
	if holder == holderXDP {
		program = at.xdp
	}
	if program == nil || ifindex != at.ifindex {
		return "", false, h.release(at.pin)
	}
	if err := l.Update(program); err != nil {
		return "", false, fmt.Errorf("replace the program at the pin %s: %w", at.pin, denied(err))
	}
	return holder, true, nil
}

// held returns the link of a pin.
func (h *hooks) held(pin string) (link.Link, error) {
	if l := h.links[pin]; l != nil {
		return l, nil
	}
	l, err := link.LoadPinnedLink(h.pins.link(pin), nil)
	if err != nil {
		return nil, fmt.Errorf("open the pin %s: %w", pin, denied(err))
	}
	h.links[pin] = l
	return l, nil
}

// placeOf returns what holds the program of a link, and the interface, 0 if it has gone.
func placeOf(l link.Link) (holder string, ifindex int, err error) {
	info, err := l.Info()
	if err != nil {
		return "", 0, err
	}
	switch info.Type {
	case link.XDPType:
		return holderXDP, int(info.XDP().Ifindex), nil
	case link.TCXType:
		return holderTCX, int(info.TCX().Ifindex), nil
	default:
		return "", 0, fmt.Errorf("the link is of type %d, expected XDP or TCX", info.Type)
	}
}

// create attaches the program of a hook: native XDP if the device has it, else TCX, else a filter of clsact, for which
// the link is nil.
func (h *hooks) create(device netlink.Link, at hook) (link.Link, string, error) {
	if at.xdp != nil {
		l, err := link.AttachXDP(link.XDPOptions{Program: at.xdp, Interface: at.ifindex, Flags: link.XDPDriverMode})
		switch {
		case err == nil:
			return l, holderXDP, nil
		case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
			return nil, "", fmt.Errorf("%w: the interface %s has an XDP program: %w", ErrForeignProgram, at.device, err)
		case errors.Is(denied(err), ErrPrivileges) || at.tc == nil:
			return nil, "", fmt.Errorf("attach XDP to the interface %s: %w", at.device, denied(err))
		}
		// No native XDP: EOPNOTSUPP, or EINVAL and ERANGE for an MTU or a number of queues that the driver refuses.
	}
	if !h.clsact {
		// Before other programs. Incoming packets reach them without the headers of copies. For outgoing packets, a
		// program that accepts a packet ends the chain.
		l, err := link.AttachTCX(link.TCXOptions{Interface: at.ifindex, Program: at.tc, Attach: at.attachType(),
			Anchor: link.Head()})
		if err == nil {
			return l, holderTCX, nil
		}
		if !errors.Is(err, ebpf.ErrNotSupported) {
			return nil, "", fmt.Errorf("attach TCX to the interface %s: %w", at.device, denied(err))
		}
	}
	if err := h.filter(device, at.direction, at.tc); err != nil {
		return nil, "", fmt.Errorf("%w: the interface %s takes neither TCX nor clsact: %w", ErrUnsupported, at.device,
			denied(err))
	}
	return nil, holderClsact, nil
}

// filter attaches a program as a filter of clsact, or replaces the filter of an earlier process.
func (h *hooks) filter(device netlink.Link, d direction, program *ebpf.Program) error {
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: device.Attrs().Index,
		Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := netlink.QdiscAdd(qdisc); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add the qdisc clsact: %w", err)
	}
	if err := netlink.FilterReplace(&netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: device.Attrs().Index, Parent: d.parent(), Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd: program.FD(), Name: h.filterName(d), DirectAction: true}); err != nil {
		return fmt.Errorf("add a filter: %w", err)
	}
	return nil
}

func (h *hooks) filterName(d direction) string { return "volnet:" + h.edge + d.suffix() }

// foreign returns an error if an interface has programs of others where this edge attaches its own.
func (h *hooks) foreign(device netlink.Link, d direction) error {
	name := device.Attrs().Name
	if xdp := device.Attrs().Xdp; d == inward && xdp != nil && xdp.Attached {
		return fmt.Errorf("%w: the interface %s has the XDP program %s; detach it first", ErrForeignProgram, name,
			describe(ebpf.ProgramID(xdp.ProgId)))
	}
	// An error means a kernel without TCX.
	attached, err := link.QueryPrograms(link.QueryOptions{Target: device.Attrs().Index, Attach: d.attachType()})
	if err == nil && len(attached.Programs) > 0 {
		return fmt.Errorf("%w: the interface %s has the TCX program %s for %s packets; detach it first",
			ErrForeignProgram, name, describe(attached.Programs[0].ID), d)
	}
	filters, err := netlink.FilterList(device, d.parent())
	if err != nil {
		return fmt.Errorf("read the filters of the interface %s: %w", name, denied(err))
	}
	for _, f := range filters {
		if bpf, ok := f.(*netlink.BpfFilter); ok && bpf.Name != h.filterName(d) {
			return fmt.Errorf("%w: the interface %s has the filter %q for %s packets; delete it first",
				ErrForeignProgram, name, bpf.Name, d)
		}
	}
	return nil
}

// checkPaths returns an error unless the host has every path, and no foreign program is in the way.
func (h *hooks) checkPaths(c *Config) error {
	for i := range c.Paths {
		p := &c.Paths[i]
		host, err := inspect(p)
		if err == nil {
			err = checkPresent(p, host)
		}
		if err == nil {
			err = h.checkForeign(c, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkForeign returns an error if a foreign program is at an interface. Where this edge is attached already, there is
// no need to look.
func (h *hooks) checkForeign(c *Config, p *Path) error {
	device, err := netlink.LinkByName(p.Interface)
	if err != nil {
		return fmt.Errorf("read the interface %s: %w", p.Interface, err)
	}
	for d, configured := range map[direction]bool{inward: c.Receive != nil, outward: c.Send != nil} {
		_, err := os.Stat(h.pins.link(p.Name + d.suffix()))
		if !configured || err == nil {
			continue
		}
		if err := h.foreign(device, d); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the number of a program, and its name if it can be read.
func describe(id ebpf.ProgramID) string {
	program, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return fmt.Sprint(uint32(id))
	}
	defer program.Close()
	info, err := program.Info()
	if err != nil || info.Name == "" {
		return fmt.Sprint(uint32(id))
	}
	return fmt.Sprintf("%d (%s)", uint32(id), info.Name)
}

// release detaches the program of a pin and removes the pin.
func (h *hooks) release(pin string) error {
	l := h.links[pin]
	delete(h.links, pin)
	if err := os.Remove(h.pins.link(pin)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the pin %s: %w", pin, denied(err))
	}
	if err := l.Close(); err != nil {
		return fmt.Errorf("detach the program of the pin %s: %w", pin, err)
	}
	return nil
}

// releaseOthers detaches the pinned programs of an earlier process that are not wanted any more: those of paths, sides
// or interfaces that the configuration does not have.
func (h *hooks) releaseOthers(wanted func(pin string, ifindex int) bool) error {
	pinned, err := names(h.pins.links())
	if err != nil {
		return err
	}
	for _, pin := range pinned {
		l, err := h.held(pin)
		if err != nil {
			return err
		}
		_, ifindex, err := placeOf(l)
		if err != nil {
			return fmt.Errorf("read the pin %s: %w", pin, err)
		}
		if wanted(pin, ifindex) {
			continue
		}
		if err := h.release(pin); err != nil {
			return err
		}
	}
	return nil
}

// detachAll detaches every program of the edge, pinned links and filters on all interfaces.
func (h *hooks) detachAll() error {
	var all []error
	pinned, err := names(h.pins.links())
	all = append(all, err)
	for _, pin := range pinned {
		if _, err := h.held(pin); err != nil {
			all = append(all, err)
			continue
		}
		all = append(all, h.release(pin))
	}
	return errors.Join(append(all, h.detachFilters())...)
}

// detachFilters deletes the filters of the edge. The qdisc clsact goes with the last filter of all programs.
func (h *hooks) detachFilters() error {
	devices, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("read the interfaces: %w", err)
	}
	var all []error
	for _, device := range devices {
		deleted, left := 0, 0
		for _, d := range []direction{inward, outward} {
			filters, err := netlink.FilterList(device, d.parent())
			if err != nil {
				continue // the device has no filters
			}
			for _, f := range filters {
				bpf, ok := f.(*netlink.BpfFilter)
				if !ok || bpf.Name != h.filterName(d) {
					left++
					continue
				}
				deleted++
				if err := netlink.FilterDel(f); err != nil {
					all = append(all, fmt.Errorf("delete the filter %s: %w", bpf.Name, denied(err)))
				}
			}
		}
		if deleted > 0 && left == 0 {
			all = append(all, deleteClsact(device))
		}
	}
	return errors.Join(all...)
}

func deleteClsact(device netlink.Link) error {
	qdisc := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: device.Attrs().Index,
		Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	if err := netlink.QdiscDel(qdisc); err != nil {
		return fmt.Errorf("delete the qdisc clsact of the interface %s: %w", device.Attrs().Name, denied(err))
	}
	return nil
}
