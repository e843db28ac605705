package paper003

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

const (
	requestBytes = 4 // the number of the request
	answerBytes  = 16
)

// errAnswer is the sentinel of an answer that is not the one that was requested.
var errAnswer = errors.New("frames by request")

// frameSource returns the newest frame at a time since the start, with the time of its capture.
type frameSource struct {
	frames   [][]byte // in turn
	interval time.Duration
	// requested is called for each request that arrives; nil for none.
	requested func()
}

// serve answers the requests of one viewer until the connection ends. Each answer has the number of the request, the
// length of the frame, the time of capture in nanoseconds since began, and the newest frame. A frame is sent once: a
// request that precedes the next capture waits for it.
func (s *frameSource) serve(conn net.Conn, began time.Time) error {
	requests := bufio.NewReader(conn)
	var request [requestBytes]byte
	var answer []byte
	for next := 0; ; next++ {
		if _, err := io.ReadFull(requests, request[:]); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if s.requested != nil {
			s.requested()
		}
		next = max(next, int(time.Since(began)/s.interval))
		captured := time.Duration(next) * s.interval
		time.Sleep(time.Until(began.Add(captured)))
		frame := s.frames[next%len(s.frames)]
		answer = append(answer[:0], request[:]...)
		answer = binary.BigEndian.AppendUint32(answer, uint32(len(frame)))
		answer = binary.BigEndian.AppendUint64(answer, uint64(captured))
		if _, err := conn.Write(append(answer, frame...)); err != nil {
			return err
		}
	}
}

// delivery is a frame that a viewer has received, with times since the start of the run.
type delivery struct {
	requested, captured, received time.Duration
	bytes                         int
}

// viewer requests a frame in each interval, unless too many requests are unanswered.
type viewer struct {
	interval time.Duration
	// outstanding is the largest number of requests without a complete answer. When they are used up, the next request
	// waits for a frame, which is how a viewer's requests show a stall.
	outstanding int
	// requests are the times of all requests.
	requests []time.Duration
	frames   []delivery
}

// run requests frames until the context ends or the time is over, and receives the answers to all requests whose
// answers come before grace has passed. The viewer belongs to the caller after run has returned.
func (v *viewer) run(ctx context.Context, conn net.Conn, began time.Time, length, grace time.Duration) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if err := conn.SetReadDeadline(began.Add(length + grace)); err != nil {
		return err
	}
	answered, failed := make(chan delivery, v.outstanding), make(chan error, 1)
	go func() {
		defer close(answered)
		failed <- receive(conn, began, answered)
	}()
	tick := time.NewTicker(v.interval)
	defer tick.Stop()
	due := true // a request, since the last one
	for ended := time.After(time.Until(began.Add(length))); ; {
		for due && len(v.requests)-len(v.frames) < v.outstanding {
			due = false
			request := binary.BigEndian.AppendUint32(nil, uint32(len(v.requests)))
			v.requests = append(v.requests, time.Since(began))
			if _, err := conn.Write(request); err != nil {
				return errors.Join(err, ctx.Err())
			}
		}
		select {
		case <-tick.C:
			due = true
		case d, open := <-answered:
			if !open {
				return errors.Join(<-failed, ctx.Err())
			}
			v.took(d)
		case <-ended:
			return v.drain(conn, answered, failed)
		}
	}
}

// took records a frame, which answers the oldest request.
func (v *viewer) took(d delivery) {
	d.requested = v.requests[len(v.frames)]
	v.frames = append(v.frames, d)
}

// drain receives the answers to the last requests, until the read deadline.
func (v *viewer) drain(conn net.Conn, answered <-chan delivery, failed <-chan error) error {
	for len(v.frames) < len(v.requests) {
		d, open := <-answered
		if !open {
			err := <-failed
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			return err
		}
		v.took(d)
	}
	_ = conn.SetReadDeadline(time.Now())
	for range answered { // the goroutine ends
	}
	return nil
}

// receive reads answers in the order of the requests.
func receive(conn net.Conn, began time.Time, answered chan<- delivery) error {
	reader := bufio.NewReaderSize(conn, 1<<18)
	var head [answerBytes]byte
	for number := uint32(0); ; number++ {
		if _, err := io.ReadFull(reader, head[:]); err != nil {
			return err
		}
		if got := binary.BigEndian.Uint32(head[:]); got != number {
			return fmt.Errorf("%w: the answer to request %d arrived, expected %d", errAnswer, got, number)
		}
		size := int(binary.BigEndian.Uint32(head[4:]))
		if _, err := reader.Discard(size); err != nil {
			return err
		}
		answered <- delivery{captured: time.Duration(binary.BigEndian.Uint64(head[8:])), received: time.Since(began),
			bytes: size}
	}
}
