package experiment

import (
	"fmt"
	"slices"
)

// Validity is what an iteration is worth.
type Validity string

// The validities.
const (
	// Valid says that the iteration measured what it should.
	Valid Validity = "valid"
	// Invalid says that the measuring was disturbed: figures mean little.
	Invalid Validity = "invalid"
	// CPUBound says that the machine could not do the work in real time (see Pace): figures tell of the machine.
	CPUBound Validity = "cpu-bound"
	// Skipped says that nothing was measured, because something is missing here.
	Skipped Validity = "skipped"
	// Failed says that an error came back. Only the runner gives it.
	Failed Validity = "failed"
)

// validities are all of them, from the best to the one that is worth least.
var validities = []Validity{Valid, CPUBound, Invalid, Failed, Skipped}

// worse is the one of two that is worth less.
func worse(a, b Validity) Validity {
	if slices.Index(validities, a) > slices.Index(validities, b) {
		return a
	}
	return b
}

// Figure is one number of an iteration. Its unit is that of the quantity.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Samples are the single values, in the order of time, of which Value is the mean; nil where it is one number of the whole iteration.
	Samples []float64 `json:"-"`
}

// Series is how something went over another quantity, mostly time.
type Series struct {
	Name string `json:"name"`
	// XUnit and Unit are printed beside the axes: s and ms.
	XUnit  string       `json:"x_unit"`
	Unit   string       `json:"unit"`
	Points [][2]float64 `json:"points"`
}

// Outcome is what came of one iteration of a cell.
type Outcome struct {
	Validity Validity `json:"validity"`
	// Reason says why it is not valid.
	Reason  string   `json:"reason,omitempty"`
	Figures []Figure `json:"figures"`
	Lines   []Series `json:"series,omitempty"`
	// Late says how the emulated network was late. The figures count, with what that has cost.
	Late string `json:"network_late,omitempty"`
	// Notes are what a reader should know of how it was measured. The report prints each once.
	Notes []string `json:"notes,omitempty"`
}

// NewOutcome is a valid outcome without figures.
func NewOutcome() *Outcome { return &Outcome{Validity: Valid} }

// Skip is the outcome where something is missing on this machine.
func Skip(format string, arguments ...any) *Outcome {
	return &Outcome{Validity: Skipped, Reason: fmt.Sprintf(format, arguments...)}
}

// Set adds a figure that is one number of the whole iteration, or replaces it.
func (o *Outcome) Set(name string, value float64) { o.set(Figure{Name: name, Value: value}) }

// Sample adds a figure that is the mean of samples, given in the order of time. Without samples there is no figure.
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

// Figure is a figure's value, false where there is none of the name.
func (o *Outcome) Figure(name string) (float64, bool) {
	for _, f := range o.Figures {
		if f.Name == name {
			return f.Value, true
		}
	}
	return 0, false
}

// Series adds one for plots over time.
func (o *Outcome) Series(name, xUnit, unit string, points [][2]float64) {
	o.Lines = append(o.Lines, Series{name, xUnit, unit, points})
}

// Note adds what a reader should know.
func (o *Outcome) Note(format string, arguments ...any) {
	if note := fmt.Sprintf(format, arguments...); !slices.Contains(o.Notes, note) {
		o.Notes = append(o.Notes, note)
	}
}

// Invalidate says that the measuring was disturbed, by something else than a full machine. It outweighs being cpu-bound.
func (o *Outcome) Invalidate(format string, arguments ...any) {
	if o.Validity == Valid || o.Validity == CPUBound {
		o.Validity, o.Reason = Invalid, fmt.Sprintf(format, arguments...)
	}
}

// Pace is how far an iteration kept up with real time.
type Pace struct {
	// Wanted is how many frames were captured, Done how many of them came out at the end.
	Wanted, Done int
	// DroppedByCPU is how many were given up on the way because a stage that only computes (encoding, decoding, rendering) had not got to them.
	DroppedByCPU int
	// Busy is what share of all processors' time was used while it was measured, by whatever program, 0 to 1.
	Busy float64
	// Disturbed says how the machine was late whatever passed the emulated network (router.Validity), empty if it was not.
	Disturbed string
	// Late says how the emulated network was late, empty if it was not or if there is none. Packets that come at once make it late,
	// so that it is a result of whatever sends them.
	Late string
}

// The bounds of what counts as real time.
const (
	// cpuDropped is the share of frames that computing may drop: at 15 frames per second one in one and a half seconds, which nobody would call keeping up.
	cpuDropped = 0.05
	// stolenLeast is what a hypervisor must have given to others of the processors' time to be named: a thousandth of 14 s on two processors is what one program is
	// held up by for 28 ms, more than an emulated network may ever be late by.
	stolenLeast = 0.001
	// cpuBusy is where waiting for a processor becomes a part of every latency: with both of two cores busy 95 % of the time, a program that becomes ready mostly waits.
	cpuBusy = 0.95
)

// Judge makes a valid outcome cpu-bound if computing dropped more than 5 % of the frames, or if the processors were busy for more than 95 % of the time, and
// invalid if the machine kept up and was disturbed all the same. That the network was late is a note: if late runs were discarded, a sender would be judged by
// those runs only in which its packets did no harm.
func (o *Outcome) Judge(p Pace) {
	if o.Validity != Valid {
		return
	}
	switch {
	case p.Wanted > 0 && float64(p.DroppedByCPU) > cpuDropped*float64(p.Wanted):
		o.Validity = CPUBound
		o.Reason = fmt.Sprintf("encoding or decoding did not get to %d of %d frames; %d came out (bound: 5 %%)", p.DroppedByCPU, p.Wanted, p.Done)
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

// Remark is the reason, and how the network was late.
func (o *Outcome) Remark() string {
	switch {
	case o.Late == "":
		return o.Reason
	case o.Reason == "":
		return "the emulated network was late, which counts: " + o.Late
	}
	return o.Reason + "; and the emulated network was late: " + o.Late
}

// blame adds to the reason of an iteration that was disturbed what share of the processors' time a hypervisor gave to others meanwhile, where that may be why.
func (o *Outcome) blame(stolen float64) {
	if (o.Validity == Invalid || o.Validity == CPUBound) && stolen >= stolenLeast {
		o.Reason += fmt.Sprintf("; meanwhile this machine's host gave %.1f %% of the processors' time to others", 100*stolen)
	}
}
