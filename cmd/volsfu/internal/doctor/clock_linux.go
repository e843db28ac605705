package doctor

import "golang.org/x/sys/unix"

// kept reports whether the kernel's clock is kept by a program such as chrony (adjtimex(2)).
func kept() []Finding {
	var state unix.Timex
	result, err := unix.Adjtimex(&state)
	switch {
	case err != nil:
		return []Finding{{"clock", Skipped, "the state of the clock cannot be read: " + err.Error(), ""}}
	case result == unix.TIME_ERROR || state.Status&unix.STA_UNSYNC != 0:
		return []Finding{{"clock", Warning, "no program keeps the clock of this host",
			"Let chrony or systemd-timesyncd keep the clock, and compare it with --time-server. In a container the host " +
				"keeps the clock."}}
	}
	return []Finding{{"clock", OK, "kept by a program", ""}}
}
