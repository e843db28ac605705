package transport

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// asker is a sink that calls RTT of its peer with every packet.
type asker struct {
	NoOpSink
	peer  *Peer
	asked atomic.Int64
}

func (a *asker) RTP(uint32, []byte, *PacketInfo) { a.ask() }

func (a *asker) RTCP([]byte, time.Time) { a.ask() }

func (a *asker) ask() {
	// Pion is asked each time only if the time of the last query is reset.
	a.peer.rttAt.Store(0)
	a.peer.RTT()
	a.asked.Add(1)
}

// TestClosingWhileThePeersSinkAsks closes connections while packets arrive.
func TestClosingWhileThePeersSinkAsks(t *testing.T) {
	for range 10 {
		t.Run("close", closeWhileAsked)
	}
}

func closeWhileAsked(t *testing.T) {
	p := newPair(t)
	sink := &asker{}
	sink.peer = p.receiveBy(sink)
	outlet, header := p.connectVideo()
	stop := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				header.SequenceNumber++
				_ = outlet.WriteRTP(&header, []byte("x"))
			}
		}
	})
	p.until("packets flow", func() bool { return sink.asked.Load() > 10 })
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = p.offers.Close()
	}()
	p.until("the connection is closed", func() bool {
		select {
		case <-closed:
			return true
		default:
			return false
		}
	})
	close(stop)
	sending.Wait()
}
