//go:build cgo

package main

// #include "boundary.h"
import "C"

//export volsfu_get_totals
func volsfu_get_totals(h C.volsfu_session, out *C.volsfu_totals) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		if err := sized("totals", out, func(t *C.volsfu_totals) C.uint32_t { return t.size }); err != nil {
			return err
		}
		t := s.Totals()
		*out = C.volsfu_totals{
			size:                     out.size,
			frames_complete:          C.uint64_t(t.FramesComplete),
			frames_queued:            C.uint64_t(t.FramesQueued),
			frames_taken:             C.uint64_t(t.FramesTaken),
			frames_held:              C.uint64_t(t.FramesHeld),
			frames_dropped:           C.uint64_t(t.FramesDropped),
			frames_undecodable:       C.uint64_t(t.FramesUndecodable),
			frames_missing:           C.uint64_t(t.FramesMissing),
			frames_dropped_by_server: C.uint64_t(t.FramesDroppedByServer),
			packets:                  C.uint64_t(t.Packets),
			packets_lost:             C.uint64_t(t.PacketsLost),
			packets_recovered:        C.uint64_t(t.PacketsRecovered),
			bytes:                    C.uint64_t(t.Bytes),
			packets_ignored:          C.uint64_t(t.PacketsIgnored),
			frames_written:           C.uint64_t(t.FramesWritten),
			frames_paused:            C.uint64_t(t.FramesPaused),
			frames_given_up:          C.uint64_t(t.FramesGivenUp),
			frames_left_out:          C.uint64_t(t.FramesLeftOut),
			uplink_estimate:          C.int64_t(t.UplinkEstimate),
			round_trip_us:            C.int64_t(t.RoundTripUS),
			uplink_loss:              C.double(t.UplinkLoss),
			events_dropped:           C.uint64_t(t.EventsDropped),
			packets_copied:           C.uint64_t(t.PacketsCopied),
			outages:                  C.uint64_t(t.Outages),
			frames_refused:           C.uint64_t(t.FramesRefused),
		}
		for i, path := range t.Paths {
			out.paths[i] = C.volsfu_path{
				packets_first:    C.uint64_t(path.First),
				packets_repeated: C.uint64_t(path.Repeated),
				packets_only:     C.uint64_t(path.Only),
			}
		}
		return nil
	})
}

//export volsfu_get_statistics
func volsfu_get_statistics(h C.volsfu_session, buffer *C.char, capacity C.size_t, length *C.size_t) C.int32_t {
	return guarded(func() error {
		s, err := sessionOf(h)
		if err != nil {
			return err
		}
		statistics, err := s.Statistics()
		if err != nil {
			return err
		}
		return writeText(statistics, buffer, capacity, length)
	})
}
