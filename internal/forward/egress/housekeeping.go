package egress

// keepHouse publishes what slots have sent, reviews slots that are changing, and sends the reports that are due.
func (w *writer) keepHouse() {
	for i, s := range w.touched {
		s.publish()
		w.touched[i] = nil
	}
	w.touched = w.touched[:0]
	w.unsettled, w.reviewed = w.reviewed[:0], w.unsettled
	for i, s := range w.reviewed {
		s.unsettled = false
		w.review(s)
		w.reviewed[i] = nil
	}
	w.countSlots()
	for _, r := range w.receivers {
		r.departed.mark(w.at)
		w.protect(r)
		w.handTimes(r)
		if r.estimation != nil {
			w.consult(r)
		} else {
			r.publish(w.at)
		}
		if !w.now.Before(r.reportDue) {
			r.reportDue = w.now.Add(w.set.cfg.ReportInterval)
			w.sendReports(r, everySlot)
		}
	}
}

// countSlots publishes how many slots carry something, or wait for it.
func (w *writer) countSlots() {
	var active, waiting int64
	for _, r := range w.receivers {
		for _, s := range r.all() {
			switch {
			case s.waiting:
				waiting++
			case s.selection.track != nil && s.switcher.Active().Track != 0:
				active++
			}
		}
	}
	w.stats.active.Store(active)
	w.stats.waiting.Store(waiting)
}
