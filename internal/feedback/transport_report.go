package feedback

import "time"

// Next is when the next report is due, the zero time while there is nothing to report. It changes with packets received.
//
// A report is due after IntervalMax. It is due as soon as the bytes received since the last one pay for it, but not before IntervalMin, and as soon as they
// are those of IntervalFast at FastRateBPS, but not before IntervalFast. After
// a pause it waits for half an interval, so that it does not leave with the first packet of a burst and the rest waits for the following one.
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
	// A status takes 1 to 2.3 bytes, most often 1.15.
	interval := r.cfg.interval(r.bytes, reportOverhead+r.waiting*5/4)
	return max(r.last+interval, r.first+interval/2)
}

// interval is how long after the last report the next is due, once so many bytes have come since, of which the report takes cost bytes on the wire.
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

// AppendReports appends an RTCP compound of at most MaxBytes to dst if a report is due: one or more packets of transport-wide feedback, of reduced size
// (RFC 5506). sender is our SSRC, media that of any stream received. Together the compounds cover every packet that arrived since the last report, and those
// lost in between, so it is to be called until it appends nothing.
func (r *TransportRecorder) AppendReports(dst []byte, sender, media uint32, now time.Time) []byte {
	at := now.Sub(r.epoch)
	if r.waiting == 0 || at < r.due() {
		return dst
	}
	r.draining, r.last = true, at
	// A small report of late packets leaves room for the next one. Less than half is not worth breaking a report up for.
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

// appendReport appends one packet of at most limit bytes, from the lowest number that wants to be reported on.
func (r *TransportRecorder) appendReport(dst []byte, limit int, sender, media uint32) []byte {
	wanted := r.fresh.next(r.begin, r.next)
	base := min(wanted, r.covered)
	reference := r.tick(wanted) >> 8
	before := reference << 8
	r.encoder.reset(limit)
	end := base
	for wanted < r.next {
		// Numbers never reported follow without a gap; those between two late ones may be left out.
		if min(wanted, max(r.covered, end))-end > maxMerge {
			break
		}
		number := r.received.next(end, wanted+1)
		tick := r.tick(number)
		// Within ±8.192 s; a longer pause begins a new report, with a reference time of its own.
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
