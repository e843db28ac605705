// Package cpuprofile takes profiles of a server's processor time and computes the shares of functions and files.
// Package cpuprofile has no state and no goroutines.
package cpuprofile

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Profile is a profile of processor time.
type Profile struct{ samples []sample }

// sample is the time of one stack, in nanoseconds.
type sample struct {
	stack Stack
	spent int64
}

// Frame is one function on a stack, with the package's path before its name, and its file.
type Frame struct{ Function, File string }

// Stack is a stack of functions, the innermost first.
type Stack []Frame

// Take requests a profile of the given duration, in whole seconds, from the server with this admin address.
func Take(ctx context.Context, admin string, window time.Duration) (Profile, error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", admin, max(1, int(window.Seconds())))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Profile{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return Profile{}, fmt.Errorf("take a profile: %w", err)
	}
	defer func() {
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	}()
	if response.StatusCode != http.StatusOK {
		return Profile{}, fmt.Errorf("take a profile: the server answers %s", response.Status)
	}
	p, err := profile.Parse(response.Body)
	if err != nil {
		return Profile{}, fmt.Errorf("read the server's profile: %w", err)
	}
	return read(p), nil
}

func read(p *profile.Profile) Profile {
	var read Profile
	for _, s := range p.Sample {
		var stack Stack
		for _, l := range s.Location {
			// The innermost of inlined functions is first as well.
			for _, line := range l.Line {
				stack = append(stack, Frame{Function: line.Function.Name, File: line.Function.Filename})
			}
		}
		// A profile of processor time counts samples first, and nanoseconds second.
		read.samples = append(read.samples, sample{stack, s.Value[1]})
	}
	return read
}

// Of returns the time on the stacks for which counts returns true.
func (p Profile) Of(counts func(Stack) bool) time.Duration {
	sum := int64(0)
	for _, s := range p.samples {
		if counts(s.stack) {
			sum += s.spent
		}
	}
	return time.Duration(sum)
}

// Total returns the time on all stacks.
func (p Profile) Total() time.Duration { return p.Of(func(Stack) bool { return true }) }

// Through reports whether the stack has a function with one of these texts in its name or its package's path.
func (s Stack) Through(names ...string) bool {
	return slices.ContainsFunc(s, func(f Frame) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(f.Function, name) })
	})
}

// ThroughFile reports whether the stack has a file whose path ends with one of the given texts.
func (s Stack) ThroughFile(files ...string) bool {
	return slices.ContainsFunc(s, func(f Frame) bool {
		return slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix(f.File, file) })
	})
}

// Innermost returns the innermost frame with a file of a folder, and false if the stack has none.
func (s Stack) Innermost(folder string) (Frame, bool) {
	i := slices.IndexFunc(s, func(f Frame) bool { return strings.Contains(f.File, folder) })
	if i < 0 {
		return Frame{}, false
	}
	return s[i], true
}
