package feedback

import "time"

// Next returns the time of the next report, or the zero time if there is nothing to report. Received packets may change
// it.
//
// A report is due after IntervalMax. It is due after IntervalMin if the bytes received since the last report permit its
// size, and after IntervalFast if they reach FastRateBPS over IntervalFast. After a pause the report waits for half an
// interval, so that it does not cover only the first packet of a burst.
func (r *TransportRecorder) Next() time.Time {
	if r.waiting == 0 {
		return time.Time{}
	}
	return r.epoch.Add(r.due())
}

func (r *TransportRecorder) due() time.Duration {
	if r.draining {
		return r.last
	}
	// A status takes 1 to 2.3 bytes, usually 1.15.
	interval := r.cfg.interval(r.bytes, reportOverhead+r.waiting*5/4)
	return max(r.last+interval, r.first+interval/2)
}

// interval returns the time from the last report to the next, after the given number of received bytes; the report
// takes cost bytes on the wire.
func (c *TransportFeedbackConfig) interval(bytes, cost int) time.Duration {
	interval := c.IntervalMax
	if float64(bytes)*c.Share >= float64(cost) {
		interval = min(interval, c.IntervalMin)
	}
	if fast := c.IntervalFast; fast < interval && float64(bytes)*8 >= float64(c.FastRateBPS)*fast.Seconds() {
		interval = fast
	}
	return interval
}

// AppendReports appends an RTCP compound of at most MaxBytes to dst if a report is due: one or more packets of
// transport-wide feedback, of reduced size (RFC 5506). sender is the local SSRC, media that of any received stream.
// Together the compounds cover every packet that arrived since the last report, and all losses between. The caller
// repeats the call until nothing is appended.
func (r *TransportRecorder) AppendReports(dst []byte, sender, media uint32, now time.Time) []byte {
	at := now.Sub(r.epoch)
	if r.waiting == 0 || at < r.due() {
		return dst
	}
	r.draining, r.last = true, at
	// A small report of late packets leaves room for the next report. Less than half of MaxBytes is not worth dividing
	// a report.
	for room := r.cfg.MaxBytes; r.waiting > 0 && room >= max(r.cfg.MaxBytes/2, minReports); {
		before := len(dst)
		dst = r.appendReport(dst, room, sender, media)
		room -= len(dst) - before
	}
	if r.waiting == 0 {
		r.draining, r.bytes = false, 0
		r.expire(now)
	}
	return dst
}

// appendReport appends one packet of at most limit bytes, starting at the lowest unreported number.
func (r *TransportRecorder) appendReport(dst []byte, limit int, sender, media uint32) []byte {
	wanted := r.fresh.next(r.begin, r.next)
	base := min(wanted, r.covered)
	reference := r.tick(wanted) >> 8
	before := reference << 8
	r.encoder.reset(limit)
	end := base
	for wanted < r.next {
		// Numbers never reported follow without a gap; numbers between two late ones may be omitted.
		if min(wanted, max(r.covered, end))-end > maxMerge {
			break
		}
		number := r.received.next(end, wanted+1)
		tick := r.tick(number)
		// Within ±8.192 s; a longer pause begins a new report with its own reference time.
		delta := int32(tick - before)
		if delta != int32(int16(delta)) || !r.encoder.add(number-end, int16(delta)) {
			break
		}
		before, end = tick, number+1
		if number < wanted {
			continue
		}
		r.fresh.remove(number)
		r.waiting--
		wanted = r.fresh.next(end, r.next)
	}
	r.covered = max(r.covered, end)
	r.stats.Reports++
	r.count++
	return r.encoder.append(dst, transportReport{
		sender: sender, media: media,
		base: uint16(base), count: uint16(end - base),
		reference: reference, feedback: r.count - 1,
	})
}
