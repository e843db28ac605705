package frametrace

import "time"

// KernelStamp is the time at which the kernel and the network card received a packet, the zero time if unknown.
type KernelStamp struct{ Kernel, Hardware time.Time }

// keptKernelStamps is the number of incomplete frames of one stream for which a KernelStamps keeps stamps. It is the
// number of frames that a reassembler holds.
const keptKernelStamps = 32

// KernelStamps keeps the stamps of the first packets of the incomplete frames of one stream. The zero value is empty.
type KernelStamps struct {
	// packet is the stamp of the packet that is processed.
	packet KernelStamp
	ring   [keptKernelStamps]frameStamp
	count  int
}

type frameStamp struct {
	frame uint32
	stamp KernelStamp
}

// Set sets the stamp of the packet that is processed next.
func (k *KernelStamps) Set(stamp KernelStamp) { k.packet = stamp }

// First keeps the stamp of the packet that is processed, if the packet is the first of its frame.
func (k *KernelStamps) First(frame uint32) {
	if k.packet.Kernel.IsZero() {
		return
	}
	// The packets of a frame arrive in sequence, so the search begins at the newest entry.
	for i := k.count - 1; i >= max(0, k.count-keptKernelStamps); i-- {
		if k.ring[i%keptKernelStamps].frame == frame {
			return
		}
	}
	k.ring[k.count%keptKernelStamps] = frameStamp{frame, k.packet}
	k.count++
}

// Find returns the stamp of a frame's first packet, the zero value if it is unknown.
func (k *KernelStamps) Find(frame uint32) KernelStamp {
	for i := k.count - 1; i >= max(0, k.count-keptKernelStamps); i-- {
		if s := &k.ring[i%keptKernelStamps]; s.frame == frame {
			return s.stamp
		}
	}
	return KernelStamp{}
}

// Arrived holds the arrival times of a frame by the system's clock: of its first packet, of the packet that completed
// its first segment, and of the packet that completed the frame. Stamp is the stamp of the first packet.
type Arrived struct {
	First, Segment, Last time.Time
	Stamp                KernelStamp
}
