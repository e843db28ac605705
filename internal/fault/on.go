//go:build faulty

package fault

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Injected reports whether this build can have faults.
const Injected = true

// variable is the environment variable that selects the fault.
const variable = "SERVER_FAULT"

const (
	// One of lossInterval consecutive frames is lost: 1 %. The first is frame lossFirst, so that a check of twenty
	// frames loses one.
	lossInterval = 100
	lossFirst    = 10
	// delay is far more than a server needs for a packet, which is less than a millisecond, and less than the 150 ms
	// after which a frame is too old to be forwarded (forward.Config.MaxLag).
	delay = 50 * time.Millisecond
	// waiting bounds the pending functions: those of 50 ms at a million packets per second.
	waiting = 50_000
)

// The faults.
const (
	crash    = "crash"
	loss     = "loss"
	late     = "delay"
	noSwitch = "no-switch"
)

// fault is the fault selected by the environment.
type fault struct {
	kind string
	// after is the time until a server crashes.
	after time.Duration
}

// present is the fault of this process. The program ends if the environment selects an unknown fault.
var present = sync.OnceValue(func() fault {
	f, err := parse(os.Getenv(variable))
	if err != nil {
		panic(err.Error())
	}
	return f
})

// parse parses the value of the environment variable.
func parse(text string) (fault, error) {
	kind, value, valued := strings.Cut(text, "=")
	switch {
	case !valued && (kind == "" || kind == loss || kind == late || kind == noSwitch):
		return fault{kind: kind}, nil
	case valued && kind == crash:
		if after, err := time.ParseDuration(value); err == nil && after > 0 {
			return fault{kind, after}, nil
		}
	}
	return fault{}, fmt.Errorf("%s: expected crash=DURATION, loss, delay or no-switch, got %q", variable, text)
}

// begun makes a process crash once, however many servers it starts.
var begun sync.Once

// Start starts the fault of a process whose server starts.
func Start() {
	if f := present(); f.kind == crash {
		begun.Do(func() { time.AfterFunc(f.after, func() { panic("the crash that " + variable + " asks for") }) })
	}
}

// LosesFrame reports whether a frame is not to be forwarded. Publishers number frames from 0, in 32 bits.
func LosesFrame(number int64) bool {
	return present().kind == loss && uint32(number)%lossInterval == lossFirst
}

// Delays reports whether media packets are to be delayed.
func Delays() bool { return present().kind == late }

// KeepsQuality reports whether slots are to keep their first quality.
func KeepsQuality() bool { return present().kind == noSwitch }

// call is a function with its due time.
type call struct {
	due time.Time
	f   func()
}

// calls are served by one goroutine in order, for the life of the process.
var calls = sync.OnceValue(func() chan<- call {
	queue := make(chan call, waiting)
	go func() {
		for c := range queue {
			time.Sleep(time.Until(c.due))
			c.f()
		}
	}()
	return queue
})

// Later calls a function after the delay, in the order of the calls. Later waits if too many functions are pending.
func Later(f func()) { calls() <- call{time.Now().Add(delay), f} }
