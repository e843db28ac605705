package router

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/internal/netem"
)

// Router moves packets between the namespaces of a plan.
type Router struct {
	plan       *Plan
	namespaces []*namespace
	alarm      int // an eventfd that wakes the thread
	watch      *watch
	stopped    chan struct{}

	mu       sync.Mutex // guards the fields below
	overruns []uint64   // of each device in the kernel's counters, at the start of the statistics
	requests []request
	closed   bool
}

// request is a request to the thread.
type request struct {
	kind   requestKind
	wire   int
	config netem.Config
	answer chan<- answer
}

type requestKind int

const (
	requestStatistics requestKind = iota
	requestRestart
	requestConfigure
)

// answer is the thread's answer to a request.
type answer struct {
	statistics Statistics
	err        error
}

// Start creates the namespaces of a plan and starts the thread that moves packets. The error wraps ErrPrivileges or
// ErrTUN if this machine does not permit it, or describes an error of the plan.
func Start(plan Plan) (*Router, error) {
	r := &Router{plan: &plan, alarm: -1, stopped: make(chan struct{})}
	mesh, err := NewMesh(&plan, time.Now())
	if err != nil {
		return nil, err
	}
	for i := range plan.Namespaces {
		n, err := newNamespace(&plan, i)
		if err != nil {
			r.release()
			return nil, err
		}
		r.namespaces = append(r.namespaces, n)
	}
	if r.alarm, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		r.release()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	l, err := newLoop(r, mesh)
	if err != nil {
		r.release()
		return nil, err
	}
	r.overruns = r.countOverruns()
	leaveRoom()
	r.watch = startWatch()
	go l.run()
	return r, nil
}

// Namespace returns the path of a namespace, by its index in the plan, valid while the Router is open.
func (r *Router) Namespace(index int) string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.namespaces[index].file.Fd())
}

// Inode returns the number of a namespace in /proc/PID/ns/net, unique while the namespace exists.
func (r *Router) Inode(index int) (uint64, error) {
	var status unix.Stat_t
	if err := unix.Fstat(int(r.namespaces[index].file.Fd()), &status); err != nil {
		return 0, fmt.Errorf("namespace of %s: %w", r.plan.Namespaces[index].Name, err)
	}
	return status.Ino, nil
}

// Statistics returns the counters, zero after the Router is closed.
func (r *Router) Statistics() Statistics {
	s := r.ask(request{kind: requestStatistics}).statistics
	s.Watch, s.Unwatched = r.watch.lateness(), !r.watch.prior
	// The kernel's counters are read here, because that takes too long for the thread.
	now := r.countOverruns()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range s.Interfaces {
		if before := r.overruns[i]; now[i] > before {
			s.Interfaces[i].Overrun = now[i] - before
		}
	}
	return s
}

// countOverruns returns for each device the number of packets that the kernel has dropped since the device was created,
// 0 if it is unknown.
func (r *Router) countOverruns() []uint64 {
	var counts []uint64
	buffer := make([]byte, 16<<10) // a line has about 120 bytes, and a namespace at most about 20 interfaces
	for i, n := range r.namespaces {
		dropped := n.overruns(buffer)
		for j := range n.devices {
			counts = append(counts, dropped[r.plan.Namespaces[i].Interfaces[j].Name])
		}
	}
	return counts
}

// Restart restarts traces, schedules and counters. Packets in transit are kept.
func (r *Router) Restart() {
	counts := r.countOverruns()
	r.mu.Lock()
	r.overruns = counts
	r.mu.Unlock()
	r.watch.restart()
	r.ask(request{kind: requestRestart})
}

// Configure changes the parameters of a wire, by its index in the plan; its trace and schedule end. The error wraps
// netem.ErrConfig, or is net.ErrClosed.
func (r *Router) Configure(wire int, c netem.Config) error {
	return r.ask(request{kind: requestConfigure, wire: wire, config: c}).err
}

// ask sends a request to the thread and waits for the answer.
func (r *Router) ask(q request) answer {
	reply := make(chan answer, 1)
	q.answer = reply
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return answer{err: net.ErrClosed}
	}
	r.requests = append(r.requests, q)
	r.wake()
	r.mu.Unlock()
	return r.await(reply)
}

// await waits for an answer. An answer given before the thread stopped counts; after that there is none.
func (r *Router) await(reply <-chan answer) answer {
	select {
	case a := <-reply:
		return a
	case <-r.stopped:
	}
	select {
	case a := <-reply:
		return a
	default:
		return answer{err: net.ErrClosed}
	}
}

// wake makes the thread process its requests.
func (r *Router) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	// Fails only if the counter is about to overflow; then the thread is awake.
	_, _ = unix.Write(r.alarm, one[:])
}

// taken returns the requests, and whether the Router is to stop.
func (r *Router) taken() ([]request, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	requests := r.requests
	r.requests = nil
	return requests, r.closed
}

// Close ends the thread and the devices, and releases the namespaces. Further calls have no effect.
func (r *Router) Close() error {
	r.mu.Lock()
	again := r.closed
	r.closed = true
	if !again {
		// After the first call, the alarm's descriptor may belong to another file.
		r.wake()
	}
	r.mu.Unlock()
	<-r.stopped
	if !again {
		r.release()
	}
	return nil
}

// release closes all files.
func (r *Router) release() {
	if r.watch != nil {
		r.watch.close()
	}
	for _, n := range r.namespaces {
		n.close()
	}
	if r.alarm >= 0 {
		_ = unix.Close(r.alarm)
	}
}

// Inside calls f on a thread in a namespace, given by its index in the plan, and returns the result of f. Sockets that
// f opens stay in the namespace.
func (r *Router) Inside(index int, f func() error) error {
	return elsewhere(func() error {
		if err := unix.Setns(int(r.namespaces[index].file.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter the namespace of %s: %w", r.plan.Namespaces[index].Name, err)
		}
		return f()
	})
}
