//go:build linux

package traffic_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/volsfu/volsfu/test/traffic"
	"github.com/volsfu/volsfu/test/wait"
)

// newTrain starts a train over the loopback interface. repeat sends a datagram on the train's socket.
func newTrain(t *testing.T) (train *traffic.Train, repeat func(data []byte)) {
	t.Helper()
	to, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	from, err := net.DialUDP("udp4", nil, to.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	train, err = traffic.StartTrain(from, to, time.Millisecond, 100)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("skipped: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = train.Stop(0) })
	return train, func(data []byte) {
		if _, err := from.Write(data); err != nil {
			t.Error(err)
		}
	}
}

// TestTrain: every datagram of a train arrives, after it was sent.
func TestTrain(t *testing.T) {
	train, _ := newTrain(t)
	wait.Until(t, "datagrams are sent", func() bool {
		sent, _ := train.Counts()
		return sent >= 20
	})
	datagrams, err := train.Stop(time.Minute)
	if lost, repeated := traffic.Tally(datagrams); err != nil || len(datagrams) < 20 || lost != nil || repeated != nil {
		t.Errorf("of %d datagrams %v were lost and %v repeated, %v", len(datagrams), lost, repeated, err)
	}
	for i, d := range datagrams {
		if d.Arrived < d.Sent {
			t.Errorf("datagram %d was sent at %v and arrived at %v", i, d.Sent, d.Arrived)
		}
	}
	if sent, arrived := train.Counts(); sent != len(datagrams) || arrived != sent {
		t.Errorf("after the end, %d were sent and %d arrived", sent, arrived)
	}
}

// TestTrainCountsRepeats: a repeated datagram counts, and datagrams of others do not.
func TestTrainCountsRepeats(t *testing.T) {
	train, repeat := newTrain(t)
	wait.Until(t, "a datagram is sent", func() bool {
		sent, _ := train.Counts()
		return sent > 0
	})
	unknown := make([]byte, 100)
	unknown[0] = 1
	repeat(unknown)
	repeat(make([]byte, 99))
	repeat(make([]byte, 100))
	sent, _ := train.Counts()
	wait.Until(t, "datagrams behind the repeat have arrived", func() bool {
		_, arrived := train.Counts()
		return arrived > sent
	})
	datagrams, err := train.Stop(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, repeated := traffic.Tally(datagrams); len(repeated) != 1 {
		t.Errorf("%v arrived more than once, expected datagram 0", repeated)
	}
}
