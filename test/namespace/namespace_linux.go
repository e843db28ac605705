package namespace

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/wait"
)

// Namespace is a network namespace with a thread in it, and with /sys of the namespace. It lives as long as the thread
// and the sockets that were opened on the thread.
type Namespace struct {
	// Thread is the thread's id: commands of ip name the namespace by it.
	Thread int
	work   chan func()
}

// New returns a namespace with only a loopback interface, which is down. The thread ends with the test. New skips the
// test if namespaces are not permitted or ip is not installed.
func New(t testing.TB) *Namespace {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skipf("skipped: a network namespace takes the command ip: %v", err)
	}
	n := &Namespace{work: make(chan func())}
	entered := make(chan error)
	var group sync.WaitGroup
	group.Go(func() {
		// The thread ends with this goroutine, which does not unlock it: no other goroutine enters the namespace.
		runtime.LockOSThread()
		n.Thread = unix.Gettid()
		err := unix.Unshare(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
		if err == nil {
			// The settings of the namespace's network cards.
			err = errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
				unix.Mount("sysfs", "/sys", "sysfs", 0, ""))
		}
		entered <- err
		for f := range n.work {
			f()
		}
	})
	t.Cleanup(func() {
		close(n.work)
		group.Wait()
	})
	if err := <-entered; err != nil {
		t.Skipf("skipped: a network namespace takes root: %v", err)
	}
	return n
}

// Do calls f in the namespace and waits for it. f must not end the test.
func (n *Namespace) Do(f func()) {
	done := make(chan struct{})
	n.work <- func() {
		defer close(done)
		f()
	}
	<-done
}

// Run runs a command in the namespace. A command that fails ends the test.
func (n *Namespace) Run(t testing.TB, command string) {
	t.Helper()
	words := strings.Fields(command)
	var output []byte
	var err error
	n.Do(func() { output, err = exec.Command(words[0], words[1:]...).CombinedOutput() })
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, output)
	}
}

// AwaitLinks waits until all interfaces that are up carry packets. After the other end of a link has come up, the
// kernel drops packets until its own thread has given the interface a queue, for up to a second.
func (n *Namespace) AwaitLinks(t testing.TB) {
	t.Helper()
	var output []byte
	var err error
	wait.Until(t, "the interfaces carry packets", func() bool {
		n.Do(func() { output, err = exec.Command("ip", "-o", "link", "show", "up").CombinedOutput() })
		if err != nil {
			t.Fatalf("ip link: %v: %s", err, output)
		}
		return !bytes.Contains(output, []byte("qdisc noop ")) && !bytes.Contains(output, []byte("DOWN"))
	})
}

// AwaitAddresses waits until packets may have the global addresses of all interfaces as their source. The kernel checks
// a new IPv6 address in a thread of its own, and refuses it as the source of a route until then.
func (n *Namespace) AwaitAddresses(t testing.TB) {
	t.Helper()
	var output []byte
	var err error
	wait.Until(t, "the addresses may be used", func() bool {
		n.Do(func() {
			output, err = exec.Command("ip", "-o", "address", "show", "scope", "global", "tentative").CombinedOutput()
		})
		if err != nil {
			t.Fatalf("ip address: %v: %s", err, output)
		}
		return len(output) == 0
	})
}

// TwoCables connects two namespaces by two cables, n0 and n1. The address of the server is reached through both, and
// n0 is preferred.
func TwoCables(t testing.TB, here, there *Namespace, server string) {
	t.Helper()
	here.Run(t, "ip link set lo up")
	there.Run(t, "ip link set lo up")
	there.Run(t, "ip address add "+server+"/32 dev lo")
	for n := range 2 {
		here.Run(t, fmt.Sprintf("ip link add n%d type veth peer name n%d netns %d", n, n, there.Thread))
		for end, ns := range map[int]*Namespace{1: there, 2: here} {
			ns.Run(t, fmt.Sprintf("ip address add 10.9.%d.%d/24 dev n%d", n, end, n))
			ns.Run(t, fmt.Sprintf("ip link set n%d up", n))
		}
		here.Run(t, fmt.Sprintf("ip route add %s via 10.9.%d.1 dev n%d metric %d", server, n, n, 100+n))
	}
	here.AwaitLinks(t)
	there.AwaitLinks(t)
}

// SwitchOffload switches an offload of a network card on or off, in the namespace of the calling thread. The command is
// one of ethtool, such as unix.ETHTOOL_SGRO.
func SwitchOffload(device string, command uint32, on bool) error {
	value := struct{ command, data uint32 }{command: command}
	if on {
		value.data = 1
	}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:], device)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if _, _, err := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL,
		uintptr(unsafe.Pointer(&request))); err != 0 {
		return fmt.Errorf("ethtool command %#x of %s: %w", command, device, err)
	}
	return nil
}
