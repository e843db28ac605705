package e2e

import (
	"net"
	"testing"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/test/testbed"
	"github.com/volsfu/volsfu/test/wait"
)

// TestMediaOverIPv6 has a server receive media on IPv6, only or together with IPv4, from publishers with either.
func TestMediaOverIPv6(t *testing.T) {
	if listener, err := net.Listen("tcp6", "[::1]:0"); err != nil {
		t.Skip("this system has no IPv6")
	} else {
		_ = listener.Close()
	}
	for _, test := range []struct{ name, listen, media string }{
		{"both families, a client of IPv4", "127.0.0.1:0", "::"},
		{"both families, a client of IPv6", "[::1]:0", "::"},
		{"IPv6 alone", "[::1]:0", "::1"},
		{"signalling alone over IPv6", "[::1]:0", "127.0.0.1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := startConference(t, func(c *config.Config) {
				c.Server.Listen, c.Media.Address = test.listen,
					test.media
			})
			join(t, c, testbed.Part{Room: "room", Identity: "publisher", Loads: []testbed.Load{body(2, 1)}})
			watcher := join(t, c, testbed.Part{Room: "room", Identity: "watcher", Receive: true})
			for i := range 2 {
				wait.Until(t, "frames arrive", func() bool { return frames(watcher, tile("publisher", "body", i)) > 0 })
			}
		})
	}
}
