package server

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/volsfu/volsfu/internal/config"
)

// TestFirstFreeMediaPort starts servers with ranges of ports that begin with a port in use.
func TestFirstFreeMediaPort(t *testing.T) {
	defer goleak.VerifyNone(t)
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	o := Options{Config: config.DefaultConfig(), Version: "test", Log: zap.NewNop()}
	o.Config.Server.Dev, o.Config.Server.Listen, o.Config.Admin.Listen = true, "127.0.0.1:0", ""
	o.Config.Media.Address, o.Config.Media.TCP = "127.0.0.1", false
	first := taken.LocalAddr().(*net.UDPAddr).Port
	o.Config.Media.Port = first
	for _, last := range []int{0, first} {
		o.LastMediaPort = last
		if _, err := Start(o); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("the range from %d to %d is in use, got %v", first, last, err)
		}
	}
	o.LastMediaPort = min(first+20, 65535)
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	if port := int(s.MediaPort()); port <= first || port > o.LastMediaPort {
		t.Errorf("the media port is %d, expected one from %d to %d", port, first+1, o.LastMediaPort)
	}
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
