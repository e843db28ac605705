package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/logging"
)

// playedListener accepts what the test gives it.
type playedListener struct {
	results chan accepted
	closed  chan struct{}
	closing sync.Once
}

type accepted struct {
	conn net.Conn
	err  error
}

func newPlayedListener() *playedListener {
	return &playedListener{results: make(chan accepted, 100), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *playedListener) Accept() (net.Conn, error) {
	select {
	case r := <-l.results:
		return r.conn, r.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *playedListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *playedListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7} }

// fail has accepting fail as the system says it.
func (l *playedListener) fail(reason syscall.Errno) {
	l.results <- accepted{err: &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", reason)}}
}

// connect gives the far end of a connection that is accepted.
func (l *playedListener) connect() net.Conn {
	near, far := net.Pipe()
	l.results <- accepted{conn: near}
	return far
}

// listening is an endpoint that has nothing but a played listener.
func listening() (*Endpoint, *playedListener) {
	logs := logging.NewDefaultLoggerFactory()
	logs.DefaultLogLevel = logging.LogLevelDisabled
	return &Endpoint{logs: logs, failed: make(chan error, 1)}, newPlayedListener()
}

// ended tells whether a connection is closed, once all others have nothing left to do.
func ended(t *testing.T, far net.Conn) bool {
	t.Helper()
	synctest.Wait()
	if err := far.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	_, err := far.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// TestICETCPOutlivesWantOfDescriptors has accepting fail for some minutes, as it does while the process is out of descriptors: Pion's loop goes on afterwards.
func TestICETCPOutlivesWantOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, listener := listening()
		begin := time.Now()
		const failures = 90
		for n := range failures {
			listener.fail([]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}[n%5])
		}
		far := listener.connect()
		e.serveTCP(listener)
		// The message is none of STUN, which only the mux can tell.
		if _, err := far.Write([]byte{0, 4, 1, 2, 3, 4}); err != nil {
			t.Fatal(err)
		}
		if !ended(t, far) {
			t.Error("the mux takes no connection any more")
		}
		// 5, 10, … 640 ms, then 1 s.
		if took := time.Since(begin); took > failures*mostPause || took < failures*mostPause/2 {
			t.Errorf("%d failures took %v", failures, took)
		}
		if err := e.tcp.Close(); err != nil {
			t.Error(err)
		}
		select {
		case err := <-e.Failed():
			t.Errorf("told %v", err)
		default:
		}
	})
}

// TestTheEndOfICETCPIsTold: an error that does not pass.
func TestTheEndOfICETCPIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, listener := listening()
		listener.fail(syscall.EBADF)
		e.serveTCP(listener)
		synctest.Wait()
		select {
		case err := <-e.Failed():
			if !errors.Is(err, syscall.EBADF) {
				t.Errorf("told %v, expected EBADF", err)
			}
		default:
			t.Error("nobody is told that nothing is accepted any more")
		}
		if err := e.tcp.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSilentConnectionsEnd opens a connection that says nothing.
func TestSilentConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, listener := listening()
		e.serveTCP(listener)
		begin := time.Now()
		far := listener.connect()
		if _, err := far.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("reading gave %v", err)
		}
		if took := time.Since(begin); took != firstMessageTime {
			t.Errorf("a connection that says nothing lasts %v, expected %v", took, firstMessageTime)
		}
		// Closing does not wait for one that would.
		begin = time.Now()
		far = listener.connect()
		synctest.Wait()
		if err := e.tcp.Close(); err != nil {
			t.Error(err)
		}
		if !ended(t, far) || time.Since(begin) > time.Millisecond {
			t.Errorf("closing took %v", time.Since(begin))
		}
	})
}

// TestSilentConnectionsMakeRoom has more connect than there may be: those that have said nothing go, the oldest first, and who says something stays.
func TestSilentConnectionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, played := listening()
		l := newTCPListener(played, e, 2)
		accepts := make(chan net.Conn, 10)
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepts <- conn
			}
		}()
		connect := func() (far, near net.Conn) {
			t.Helper()
			far = played.connect()
			synctest.Wait()
			select {
			case near = <-accepts:
			default:
			}
			return far, near
		}
		speak := func(far, near net.Conn) {
			t.Helper()
			go func() { _, _ = far.Write([]byte{1}) }()
			if _, err := near.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
		silent, _ := connect()
		first, near := connect()
		speak(first, near)
		second, secondNear := connect()
		if !ended(t, silent) || ended(t, first) || ended(t, second) {
			t.Fatal("the silent one was to make room, and nobody else")
		}
		speak(second, secondNear)
		refused, taken := connect()
		if taken != nil || !ended(t, refused) || ended(t, first) || ended(t, second) {
			t.Fatal("two have spoken, and a third was taken")
		}
		// Closing twice makes room for one.
		_, _ = near.Close(), near.Close()
		third, taken := connect()
		if taken == nil {
			t.Fatal("one has left, and nobody is taken")
		}
		fourth, _ := connect()
		if !ended(t, third) || ended(t, fourth) {
			t.Error("the newer one was to be taken in place of the silent one")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if !ended(t, fourth) || ended(t, second) {
			t.Error("closing was to end who has said nothing")
		}
	})
}
