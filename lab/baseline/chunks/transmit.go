package chunks

import (
	"runtime"
	"time"

	"github.com/volsfu/volsfu/lab/wallclock"
)

// Outlet sends one datagram. The datagram is valid until SendOne returns.
type Outlet interface {
	SendOne(datagram []byte)
}

// Transmit sends the chunks of a frame one after the other, with a gap between consecutive chunks, 0 for none. packet
// is a buffer with room for MaxPacketSize bytes. Transmit returns the times at which the first and the last chunk were
// passed to way, and the number of chunks.
func Transmit(way Outlet, packet []byte, number uint32, frame []byte, gap time.Duration) (first, last time.Time,
	count int) {
	count = Count(len(frame))
	first = wallclock.Now()
	last = first
	if gap > 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		prepareNaps()
	}
	for i := range count {
		if i > 0 && gap > 0 {
			nap(gap - wallclock.Now().Sub(last))
			for wallclock.Now().Sub(last) < gap {
			}
		}
		last = wallclock.Now()
		way.SendOne(Append(packet[:0], number, frame, i))
	}
	return first, last, count
}

// Finish sends a chunk without data of the frame after the last one, so that the receiver closes the last frame.
func Finish(way Outlet, packet []byte, last uint32) { way.SendOne(Append(packet[:0], last+1, nil, 0)) }
