package client

import (
	"fmt"
	"testing"
	"time"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// TestStallBeforePacketsAreRead stalls the process for longer than the deadline in the middle of a frame. The rest of
// the frame waits in the socket, and the step that expires frames comes before the packets are read.
func TestStallBeforePacketsAreRead(t *testing.T) {
	const deadline, stepInterval = 100 * time.Millisecond, 5 * time.Millisecond
	m := newRig(t, Config{Deadline: deadline})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	now := epoch
	steps := func(d time.Duration) (requested []uint16) {
		for end := now.Add(d); now.Before(end); now = now.Add(stepInterval) {
			requested = append(requested, asked(m, now)...)
		}
		return requested
	}
	part := func(frame uint32, indices ...int) {
		all := packets(t, frame, 0, now, 3000)
		for _, i := range indices {
			in.deliver(uint16(3*frame)+uint16(i), 3000*frame, all[i], now)
		}
	}
	expect := func(want FrameCounts) {
		t.Helper()
		if got := statsOf(t, m, "ada", 0).FrameCounts; got != want {
			t.Errorf("after %v: got %+v, expected %+v", now.Sub(epoch), got, want)
		}
	}
	part(1, 0, 1, 2)
	steps(stepInterval)
	// Of frame 2 the second packet is missing. The process stalls before the request is due.
	part(2, 0)
	now = now.Add(2 * time.Second)
	if requested := asked(m, now); len(requested) > 0 {
		t.Errorf("packets %v were requested before the socket was read", requested)
	}
	part(2, 1, 2)
	part(3, 0, 1, 2)
	steps(deadline)
	expect(FrameCounts{Expected: 3, Complete: 3})
	// A frame whose packets did not arrive during the stall expires soon after it.
	part(4, 0, 2)
	now = now.Add(2 * time.Second)
	asked(m, now)
	expect(FrameCounts{Expected: 4, Complete: 3})
	steps(60 * time.Millisecond)
	expect(FrameCounts{Expected: 4, Complete: 3, Undecodable: 1})
}

// TestStallsInSuccession lets the process stall again before the packets of the stall before are read. Frames whose
// packets wait in the socket do not expire.
func TestStallsInSuccession(t *testing.T) {
	const ms = time.Millisecond
	for _, stalls := range [][]time.Duration{
		{30 * ms, 2000 * ms},
		{2000 * ms, 2000 * ms},
		{2000 * ms, 1000 * ms},
		{30 * ms, 30 * ms, 2000 * ms},
		{30 * ms, 5 * ms, 30 * ms, 5 * ms, 200 * ms, 2000 * ms},
	} {
		t.Run(fmt.Sprint(stalls), func(t *testing.T) {
			m := newRig(t, Config{Deadline: 100 * ms})
			body := described("body", volumetric.MIMEVolumetric, 1, 1)
			in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
			assign(t, m, "4", 1, "ada", 0, &body)
			now := epoch
			asked(m, now)
			in.send(1, 0, now, 1)
			for _, stall := range stalls {
				now = now.Add(stall)
				if requested := asked(m, now); len(requested) > 0 {
					t.Errorf("after %v: packets %v were requested before the socket was read", now.Sub(epoch),
						requested)
				}
			}
			expect := func(want FrameCounts) {
				t.Helper()
				if got := statsOf(t, m, "ada", 0).FrameCounts; got != want {
					t.Errorf("after %v: got %+v, expected %+v", now.Sub(epoch), got, want)
				}
			}
			expect(FrameCounts{Expected: 1})
			for end := now.Add(60 * ms); now.Before(end); now = now.Add(5 * ms) {
				asked(m, now)
			}
			expect(FrameCounts{Expected: 1, Undecodable: 1})
		})
	}
}

// TestStallsWithoutEnd checks that frames expire and packets are requested on a machine on which each step is late.
func TestStallsWithoutEnd(t *testing.T) {
	m := newRig(t, Config{Deadline: time.Second})
	body := described("body", volumetric.MIMEVolumetric, 1, 1)
	in := newIncoming(t, m, "4", volumetric.KindVideo, 1)
	assign(t, m, "4", 1, "ada", 0, &body)
	in.send(1, 0, epoch, 1)
	requests, now := 0, epoch
	for range 10 {
		now = now.Add(150 * time.Millisecond)
		requests += len(asked(m, now))
	}
	if got, want := statsOf(t, m, "ada", 0).FrameCounts, (FrameCounts{Expected: 1, Undecodable: 1}); got != want ||
		requests < 2 {
		t.Errorf("got %+v and %d requests, expected %+v and at least 2 requests", got, requests, want)
	}
}
