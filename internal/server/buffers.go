package server

import (
	"fmt"

	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/transport"
)

// warnOfBuffers logs a warning if the buffers of the media sockets cannot hold the bursts of volumetric video. Sizes
// are in bytes as granted by the kernel: 0 is unknown.
func warnOfBuffers(log *zap.Logger, wanted transport.Config, receive, send int) {
	for _, buffer := range []struct {
		name, consequence, limit string
		got, wanted              int
	}{
		{"receive", "bursts may be lost", "net.core.rmem_max", receive, wanted.ReceiveBuffer},
		{"send", "bursts wait for those before them, and are dropped after 5 ms", "net.core.wmem_max", send,
			wanted.SendBuffer},
	} {
		if buffer.got > 0 && buffer.got < buffer.wanted {
			log.Warn(fmt.Sprintf("the kernel limits the media sockets' %s buffers: %s; allow them by: sysctl -w %s=%d",
				buffer.name, buffer.consequence, buffer.limit, buffer.wanted),
				zap.Int("bytes", buffer.got), zap.Int("wanted", buffer.wanted))
		}
	}
}
