package server

import (
	"testing"

	"go.uber.org/zap/zaptest"

	"github.com/volsfu/volsfu/test/namespace"
)

// TestHostForNodes: a node that cannot reach a seed yet announces its public address if the host has it, also without a
// default route.
func TestHostForNodes(t *testing.T) {
	n := namespace.New(t)
	n.Run(t, "ip link set lo up")
	n.Run(t, "ip address add 192.0.2.7/32 dev lo")
	s := &Server{log: zaptest.NewLogger(t)}
	s.config.Cluster.URL = "embedded://:6222"
	for _, test := range []struct {
		public []string
		want   string
	}{
		{[]string{"2001:db8::7", "192.0.2.7"}, "192.0.2.7"},
		{[]string{"198.51.100.7"}, "127.0.0.1"},
		{nil, "127.0.0.1"},
	} {
		s.config.Media.PublicIPs = test.public
		n.Do(func() {
			if host := s.hostForNodes(); host != test.want {
				t.Errorf("with the public addresses %q the host is %s, expected %s", test.public, host, test.want)
			}
		})
	}
}
