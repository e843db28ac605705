package lab

import (
	"fmt"
	"io"
	"time"
)

// Progress reports the progress of a measurement to people. The zero value is silent.
type Progress struct{ w io.Writer }

// NewProgress returns a Progress that writes to w, one line per message.
func NewProgress(w io.Writer) Progress { return Progress{w} }

// Say writes one line, with the time of day.
func (p Progress) Say(format string, arguments ...any) {
	if p.w != nil {
		_, _ = fmt.Fprintf(p.w, "%s %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, arguments...))
	}
}
