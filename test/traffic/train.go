//go:build linux

package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// trainBuffer is the receive buffer of a train in bytes. Datagrams wait there while the goroutine that reads them
// waits for a processor.
const trainBuffer = 4 << 20

// Train is numbered datagrams at a constant rate between two sockets, with the times of each. Its methods are safe for
// concurrent use.
type Train struct {
	from, to *net.UDPConn
	interval time.Duration
	size     int
	began    time.Time
	stopped  chan struct{}
	// sending and receiving end with the goroutines.
	sending, receiving sync.WaitGroup
	once               sync.Once

	mu        sync.Mutex
	datagrams []Datagram
	arrived   int
	failed    error
}

// Datagram is one datagram of a train. Times are those since Train.Began.
type Datagram struct {
	Sent, Arrived time.Duration // Arrived is that of the first copy
	Copies        int           // arrivals
}

// StartTrain sends a datagram of size bytes, at least 8, per interval on the connected socket from, and receives them
// on the socket to. The train closes the sockets at its end; if it cannot start, they are closed.
// Without root the error wraps unix.EPERM.
func StartTrain(from, to *net.UDPConn, interval time.Duration, size int) (*Train, error) {
	if err := setOption(to, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, trainBuffer); err != nil {
		return nil, errors.Join(fmt.Errorf("enlarge the buffer of a train: %w", err), from.Close(), to.Close())
	}
	s := &Train{from: from, to: to, interval: interval, size: size, began: time.Now(), stopped: make(chan struct{})}
	s.receiving.Go(s.receive)
	s.sending.Go(s.send)
	return s, nil
}

// Began is the start of the train.
func (s *Train) Began() time.Time { return s.began }

func (s *Train) receive() {
	data := make([]byte, 1<<16)
	for {
		n, err := s.to.Read(data)
		if err != nil {
			return
		}
		at := time.Since(s.began)
		s.mu.Lock()
		if n == s.size {
			s.note(binary.BigEndian.Uint64(data), at)
		}
		s.mu.Unlock()
	}
}

// note records an arrival. Datagrams of others have unknown numbers.
func (s *Train) note(number uint64, at time.Duration) {
	if number >= uint64(len(s.datagrams)) {
		return
	}
	d := &s.datagrams[number]
	if d.Copies == 0 {
		d.Arrived = at
		s.arrived++
	}
	d.Copies++
}

func (s *Train) send() {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	data := make([]byte, s.size)
	for number := uint64(0); ; number++ {
		select {
		case <-s.stopped:
			return
		case <-ticker.C:
		}
		binary.BigEndian.PutUint64(data, number)
		// The datagram may arrive before Write returns.
		s.mu.Lock()
		s.datagrams = append(s.datagrams, Datagram{Sent: time.Since(s.began)})
		s.mu.Unlock()
		if _, err := s.from.Write(data); err != nil {
			s.mu.Lock()
			if s.failed == nil {
				s.failed = fmt.Errorf("datagram %d was not sent: %w", number, err)
			}
			s.mu.Unlock()
		}
	}
}

// Counts returns how many datagrams were sent, and how many different ones have arrived.
func (s *Train) Counts() (sent, arrived int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.datagrams), s.arrived
}

// stopPoll is the interval at which Stop looks for the last datagrams.
const stopPoll = 10 * time.Millisecond

// Stop ends the train: it sends no more datagrams, and waits for those in flight, at most for patience. It returns all
// datagrams by number, and the first error of sending. Calls after the first return the same.
func (s *Train) Stop(patience time.Duration) ([]Datagram, error) {
	s.once.Do(func() {
		close(s.stopped)
		s.sending.Wait()
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(stopPoll) {
			if sent, arrived := s.Counts(); sent == arrived {
				break
			}
		}
		_ = s.to.Close()
		s.receiving.Wait()
		_ = s.from.Close()
	})
	return s.datagrams, s.failed
}

// Tally counts the datagrams that did not arrive, and those that arrived more than once, by their numbers.
func Tally(datagrams []Datagram) (lost, repeated []int) {
	for i := range datagrams {
		switch n := datagrams[i].Copies; {
		case n == 0:
			lost = append(lost, i)
		case n > 1:
			repeated = append(repeated, i)
		}
	}
	return lost, repeated
}
