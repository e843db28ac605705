package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// Validity is the validity of an iteration.
type Validity string

// The validities.
const (
	// Valid: the iteration measured the intended quantity.
	Valid Validity = "valid"
	// Invalid: the measurement was disturbed, and the figures mean little.
	Invalid Validity = "invalid"
	// CPUBound means that the machine could not do the work in real time (see Pace), so the figures describe the
	// machine.
	CPUBound Validity = "cpu-bound"
	// Skipped means that nothing was measured because the machine lacks a requirement.
	Skipped Validity = "skipped"
	// Failed: an error was returned. Only the runner sets this validity.
	Failed Validity = "failed"
)

// validities lists all validities, from best to worst.
var validities = []Validity{Valid, CPUBound, Invalid, Failed, Skipped}

// Worse returns the worse of two validities.
func Worse(a, b Validity) Validity {
	if slices.Index(validities, a) > slices.Index(validities, b) {
		return a
	}
	return b
}

// Figure is one number of an iteration, in the unit of its quantity.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Samples are the values in the order of time whose mean is Value; nil if Value is one number for the whole
	// iteration.
	Samples []float64 `json:"-"`
}

// Series is a quantity over another quantity, usually time.
type Series struct {
	Name string `json:"name"`
	// XUnit and Unit are printed beside the axes: s and ms.
	XUnit  string       `json:"x_unit"`
	Unit   string       `json:"unit"`
	Points [][2]float64 `json:"points"`
}

// Outcome is the result of one iteration of a cell.
type Outcome struct {
	Validity Validity `json:"validity"`
	// Reason explains why the iteration is not valid.
	Reason  string   `json:"reason,omitempty"`
	Figures []Figure `json:"figures"`
	Lines   []Series `json:"series,omitempty"`
	// Late describes the lateness of the emulated network. The figures count, including the effect of the lateness.
	Late string `json:"network_late,omitempty"`
	// ClockBound is the largest possible error of this iteration's times between two hosts, in milliseconds, because of
	// their clocks; 0 with one clock.
	ClockBound float64 `json:"clock_bound_ms,omitempty"`
	// Notes describe the measurement for the reader. The report prints each note once.
	Notes []string `json:"notes,omitempty"`
}

// NewOutcome returns a valid outcome without figures.
func NewOutcome() *Outcome { return &Outcome{Validity: Valid} }

// Skip returns the outcome of an iteration for which the machine lacks a requirement.
func Skip(format string, arguments ...any) *Outcome {
	return &Outcome{Validity: Skipped, Reason: fmt.Sprintf(format, arguments...)}
}

// Set adds or replaces a figure that is one number of the whole iteration.
func (o *Outcome) Set(name string, value float64) { o.set(Figure{Name: name, Value: value}) }

// Sample adds a figure that is the mean of samples, in the order of time. Without samples there is no figure.
func (o *Outcome) Sample(name string, samples []float64) {
	if len(samples) > 0 {
		o.set(Figure{name, Mean(samples), samples})
	}
}

func (o *Outcome) set(f Figure) {
	if i := slices.IndexFunc(o.Figures, func(g Figure) bool { return g.Name == f.Name }); i >= 0 {
		o.Figures[i] = f
		return
	}
	o.Figures = append(o.Figures, f)
}

// Figure returns a figure's value, false if there is no figure of the name.
func (o *Outcome) Figure(name string) (float64, bool) {
	for _, f := range o.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// Series adds a series for plots over time.
func (o *Outcome) Series(name, xUnit, unit string, points [][2]float64) {
	o.Lines = append(o.Lines, Series{name, xUnit, unit, points})
}

// Note adds a note for the reader.
func (o *Outcome) Note(format string, arguments ...any) {
	if note := fmt.Sprintf(format, arguments...); !slices.Contains(o.Notes, note) {
		o.Notes = append(o.Notes, note)
	}
}

// Invalidate marks the measurement as disturbed by a cause other than a busy machine. Invalid overrides cpu-bound.
func (o *Outcome) Invalidate(format string, arguments ...any) {
	if o.Validity == Valid || o.Validity == CPUBound {
		o.Validity, o.Reason = Invalid, fmt.Sprintf(format, arguments...)
	}
}

// Pace describes how far an iteration kept up with real time.
type Pace struct {
	// Wanted is the number of captured frames. Done is the number of these frames that reached the end.
	Wanted, Done int
	// DroppedByCPU is the number of frames dropped because a computing stage (encoding, decoding, rendering) had not
	// reached them.
	DroppedByCPU int
	// Busy is the share of all processors' time that was used during the measurement, by any program, 0 to 1.
	Busy float64
	// Disturbed describes how the machine delayed all packets of the emulated network (router.Validity); empty without
	// such a delay.
	Disturbed string
	// Late describes the lateness of the emulated network; empty if the network was in time or if there is none. Bursts
	// of packets make the network late, so lateness is a result of the sender.
	Late string
}

// The bounds of real time.
const (
	// cpuDropped is the largest share of frames that computing may drop: at 15 frames per second, one frame in one and
	// a half seconds.
	cpuDropped = 0.05
	// stolenLeast is the smallest reported share of the processors' time that a hypervisor gave to other machines. A
	// thousandth of 14 s on two processors delays one program by 28 ms, more than the largest permitted lateness of an
	// emulated network.
	stolenLeast = 0.001
	// cpuBusy is the utilisation above which waiting for a processor becomes a part of every latency: with both of two
	// cores busy 95 % of the time, a program that becomes ready usually waits.
	cpuBusy = 0.95
)

// Judge makes a valid outcome cpu-bound if computing dropped more than 5 % of the frames, or if the processors were
// busy for more than 95 % of the time. Judge makes the outcome invalid if the machine kept up but was disturbed.
// Lateness of the network is only noted: if late runs were discarded, a sender would be judged only by the runs in
// which its packets did no harm.
func (o *Outcome) Judge(p Pace) {
	if o.Validity != Valid {
		return
	}
	switch {
	case p.Wanted > 0 && float64(p.DroppedByCPU) > cpuDropped*float64(p.Wanted):
		o.Validity = CPUBound
		o.Reason = fmt.Sprintf("encoding or decoding dropped %d of %d frames; %d reached the end (bound: 5 %%)",
			p.DroppedByCPU, p.Wanted, p.Done)
	case p.Busy > cpuBusy:
		o.Validity = CPUBound
		o.Reason = fmt.Sprintf("the processors were busy for %.0f %% of the time (bound: 95 %%)", 100*p.Busy)
	}
	switch {
	case p.Disturbed == "":
	case o.Validity == CPUBound:
		o.Reason += "; and the machine was disturbed: " + p.Disturbed
	default:
		o.Invalidate("the machine was disturbed: %s", p.Disturbed)
	}
	if p.Late != "" {
		o.Late = p.Late
	}
}

// Remark returns the reason, the lateness of the network, and the error of the clocks.
func (o *Outcome) Remark() string {
	var remarks []string
	if o.Reason != "" {
		remarks = append(remarks, o.Reason)
	}
	switch {
	case o.Late == "":
	case o.Reason == "":
		remarks = append(remarks, "the emulated network was late, which counts: "+o.Late)
	default:
		remarks = append(remarks, "and the emulated network was late: "+o.Late)
	}
	if o.ClockBound > 0 {
		remarks = append(remarks, fmt.Sprintf("error of times between hosts at most %.3f ms", o.ClockBound))
	}
	return strings.Join(remarks, "; ")
}

// blame appends to the reason of a disturbed iteration the share of the processors' time that a hypervisor gave to
// other machines, if that may be the cause.
func (o *Outcome) blame(stolen float64) {
	if (o.Validity == Invalid || o.Validity == CPUBound) && stolen >= stolenLeast {
		o.Reason += fmt.Sprintf("; the host gave %.1f %% of the processors' time to other machines",
			100*stolen)
	}
}
