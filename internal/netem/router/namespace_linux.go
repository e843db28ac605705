package router

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem/middlebox"
)

const (
	tunPath = "/dev/net/tun"
	// queueLength is the number of packets that a device queues for the router: those of 100 ms at 80,000 packets per
	// second, 770 Mbit/s in packets of 1,200 bytes.
	queueLength = 8192
	loopback    = "lo"
)

// namespace is a network namespace that exists as long as a file descriptor is open.
type namespace struct {
	file     *os.File // the namespace
	counters *os.File // its /proc/net/dev
	devices  []*device
}

// device is a TUN or TAP device.
type device struct {
	fd       int
	counters InterfaceStatistics // without Overrun
	box      middlebox.Box       // nil for none
}

// newNamespace creates a namespace of a plan, given by its index, with its devices. A thread enters the namespace to
// create them, and returns.
func newNamespace(plan *Plan, index int) (n *namespace, err error) {
	err = elsewhere(func() error {
		n, err = enterNew(plan, index)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("namespace of %s: %w", plan.Namespaces[index].Name, err)
	}
	return n, nil
}

// elsewhere calls f on a thread of its own, which f may move to another network namespace, and moves the thread back
// afterwards. It does not end the thread, which would be simpler: the kernel kills commands with a parent-death signal
// when the thread that started them ends, and this thread may have started some.
func elsewhere(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err = f()
		// If the thread is not unlocked, it ends with the goroutine, and no other goroutine runs in the wrong
		// namespace.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		_ = home.Close()
		done <- err
	}()
	return <-done
}

// enterNew moves the calling thread to a new namespace of a plan, given by its index.
func enterNew(plan *Plan, index int) (n *namespace, err error) {
	own := &plan.Namespaces[index]
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, privileges(err)
	}
	n = &namespace{}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	if n.file, err = os.Open("/proc/thread-self/ns/net"); err != nil {
		return n, err
	}
	if n.counters, err = os.Open("/proc/thread-self/net/dev"); err != nil {
		return n, err
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return n, fmt.Errorf("socket for settings: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	if err := configureIPv6(own); err != nil {
		return n, err
	}
	if err := raise(socket, loopback); err != nil {
		return n, err
	}
	kind := uint16(unix.IFF_TUN)
	if plan.Ethernet {
		kind = unix.IFF_TAP
	}
	for i := range own.Interfaces {
		d, err := newDevice(socket, kind, own.Name, &own.Interfaces[i])
		if err != nil {
			return n, fmt.Errorf("interface %s: %w", own.Interfaces[i].Name, err)
		}
		n.devices = append(n.devices, d)
	}
	if plan.Ethernet {
		if err := joinEthernet(plan, index); err != nil {
			return n, err
		}
	}
	for name, value := range own.Sysctls {
		if err := setSysctl(name, value); err != nil {
			return n, err
		}
	}
	return n, nil
}

// joinEthernet sets the link-layer addresses of the interfaces in the calling thread's namespace, given by its index,
// and of their neighbours.
func joinEthernet(plan *Plan, index int) error {
	for i, at := range plan.Namespaces[index].Interfaces {
		link, err := netlink.LinkByName(at.Name)
		if err == nil {
			err = netlink.LinkSetHardwareAddr(link, linkAddressOf(index, i).hardware())
		}
		if err != nil {
			return fmt.Errorf("link-layer address of %s: %w", at.Name, err)
		}
	}
	for _, n := range plan.neighbours(index) {
		link, err := netlink.LinkByName(n.on)
		if err == nil {
			err = netlink.NeighSet(&netlink.Neigh{LinkIndex: link.Attrs().Index, State: netlink.NUD_PERMANENT,
				IP: n.address.AsSlice(), HardwareAddr: n.link.hardware()})
		}
		if err != nil {
			return fmt.Errorf("neighbour %s of %s: %w", n.address, n.on, err)
		}
	}
	return nil
}

// configureIPv6 disables IPv6 in the calling thread's namespace, unless the plan has an address of IPv6. With IPv6,
// interfaces have the addresses of the plan only, at once, and send no messages about addresses and routers.
func configureIPv6(plan *Namespace) error {
	settings := []string{"disable_ipv6=1"}
	for i := range plan.Interfaces {
		if plan.Interfaces[i].Address6.IsValid() {
			settings = []string{"accept_dad=0", "accept_ra=0", "autoconf=0", "addr_gen_mode=1",
				"router_solicitations=0"}
		}
	}
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		for _, scope := range []string{"all", "default"} {
			err := setSysctl("net.ipv6.conf."+scope+"."+key, value)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// privileges wraps errors of missing privileges with ErrPrivileges.
func privileges(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.EACCES) {
		return fmt.Errorf("%w: %w", ErrPrivileges, err)
	}
	return err
}

// setSysctl writes a setting of the calling thread's namespace.
func setSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
	if err := os.WriteFile(path, []byte(value), 0); err != nil {
		return fmt.Errorf("sysctl %s = %s: %w", name, value, err)
	}
	return nil
}

// raise sets an interface up.
func raise(socket int, name string) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return fmt.Errorf("flags of %s: %w", name, err)
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("raise %s: %w", name, err)
	}
	return nil
}

// newDevice creates a TUN or TAP device, by its flag kind, in the calling thread's namespace, with its address.
func newDevice(socket int, kind uint16, namespace string, plan *Interface) (d *device, err error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) {
		return nil, fmt.Errorf("%w: %w", ErrTUN, err)
	}
	if err != nil {
		return nil, privileges(fmt.Errorf("open %s: %w", tunPath, err))
	}
	d = &device{fd: fd, counters: InterfaceStatistics{Namespace: namespace, Name: plan.Name}, box: plan.Box}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	request, err := unix.NewIfreq(plan.Name)
	if err != nil {
		return nil, err
	}
	request.SetUint16(kind | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, privileges(fmt.Errorf("make the device: %w", err))
	}
	if err := setLength(socket, plan.Name); err != nil {
		return nil, err
	}
	if err := setMTU(socket, plan); err != nil {
		return nil, err
	}
	if plan.Address.IsValid() {
		if err := setAddress(socket, plan); err != nil {
			return nil, err
		}
	}
	if err := raise(socket, plan.Name); err != nil {
		return nil, err
	}
	if plan.Address6.IsValid() {
		return d, setAddress6(plan)
	}
	return d, nil
}

// setLength sets the queue length of a device.
func setLength(socket int, name string) error {
	request, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	request.SetUint32(queueLength)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFTXQLEN, request); err != nil {
		return fmt.Errorf("length of the queue: %w", err)
	}
	return nil
}

// setMTU sets the maximum size of packets of a device.
func setMTU(socket int, plan *Interface) error {
	if plan.MTU == 0 {
		return nil
	}
	request, err := unix.NewIfreq(plan.Name)
	if err != nil {
		return err
	}
	request.SetUint32(uint32(plan.MTU))
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFMTU, request); err != nil {
		return fmt.Errorf("maximum size %d of packets: %w", plan.MTU, err)
	}
	return nil
}

// setAddress sets the address of an interface and the mask of its network.
func setAddress(socket int, plan *Interface) error {
	mask := ^uint32(0) << (32 - plan.Address.Bits())
	for _, setting := range []struct {
		request uint
		bytes   [4]byte
	}{
		{unix.SIOCSIFADDR, plan.Address.Addr().As4()},
		{unix.SIOCSIFNETMASK, [4]byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}},
	} {
		request, err := unix.NewIfreq(plan.Name)
		if err != nil {
			return err
		}
		if err := request.SetInet4Addr(setting.bytes[:]); err != nil {
			return err
		}
		if err := unix.IoctlIfreq(socket, setting.request, request); err != nil {
			return fmt.Errorf("address %s: %w", plan.Address, err)
		}
	}
	return nil
}

// addressPatience is the time limit for the kernel to deliver packets to a new address.
const addressPatience = 5 * time.Second

// setAddress6 adds the IPv6 address of an interface, which is up, and waits until packets to the address are delivered:
// the kernel adds that route later, in its own thread.
func setAddress6(plan *Interface) error {
	address := plan.Address6.Addr().AsSlice()
	link, err := netlink.LinkByName(plan.Name)
	if err == nil {
		err = netlink.AddrAdd(link, &netlink.Addr{Flags: unix.IFA_F_NODAD,
			IPNet: &net.IPNet{IP: address, Mask: net.CIDRMask(plan.Address6.Bits(), 128)}})
	}
	if err != nil {
		return fmt.Errorf("address %s: %w", plan.Address6, err)
	}
	for deadline := time.Now().Add(addressPatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		routes, err := netlink.RouteGet(address)
		if err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
	}
	return fmt.Errorf("address %s: no packet is delivered to the address after %v", plan.Address6, addressPatience)
}

// overruns returns the number of packets that the kernel dropped because a device's queue was full, by name of the
// interface.
func (n *namespace) overruns(buffer []byte) map[string]uint64 {
	dropped := make(map[string]uint64)
	count, err := n.counters.ReadAt(buffer, 0)
	if count == 0 && err != nil {
		return dropped
	}
	for _, line := range strings.Split(string(buffer[:count]), "\n") {
		name, values, found := strings.Cut(line, ":")
		fields := strings.Fields(values)
		// Eight counters of received packets come first, then those of sent packets: bytes, packets, errors, dropped.
		if !found || len(fields) < 12 {
			continue
		}
		var drops uint64
		if _, err := fmt.Sscan(fields[11], &drops); err == nil {
			dropped[strings.TrimSpace(name)] = drops
		}
	}
	return dropped
}

// close closes the devices, and releases the namespace.
func (n *namespace) close() {
	for _, d := range n.devices {
		_ = unix.Close(d.fd)
	}
	for _, f := range []*os.File{n.counters, n.file} {
		if f != nil {
			_ = f.Close()
		}
	}
}
