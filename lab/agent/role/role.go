// Package role lists the programs that an agent starts, with the flags that a controller may give them. A controller
// never names a file of the agent's host: arguments that are files are marked, and each side has its own places for
// them.
package role

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// ErrArgument reports a program or an argument that an agent does not accept.
var ErrArgument = errors.New("not permitted on another host")

// Kind is the meaning of a flag's value.
type Kind string

// The kinds.
const (
	// Value is a number, a word or an address.
	Value Kind = "value"
	// Switch is a flag without a value.
	Switch Kind = "switch"
	// Output is a file that the program creates, and Input a file that the program reads.
	Output Kind = "output"
	Input  Kind = "input"
	// Source is a source of clouds, which may be a file of the test data.
	Source Kind = "source"
)

// Argument is an argument of a program.
type Argument struct {
	// Flag is the name of the flag without dashes.
	Flag string `json:"flag"`
	Kind Kind   `json:"kind"`
	// Value is the value; for Output and Input, the file's name without folders. For a Source in the test data, Data
	// is the path in the folder of the test data, and Value the kind of source, as in glb.
	Value string `json:"value,omitempty"`
	Data  string `json:"data,omitempty"`
}

// maxValue bounds a value; the longest are lists of qualities.
const maxValue = 1024

// program is a command of the lab with its flags.
type program struct {
	words []string // the subcommands
	flags map[string]Kind
}

// kinds returns the flags of kinds. The lists are separated by spaces.
func kinds(values, switches, outputs, inputs, sources string) map[string]Kind {
	all := make(map[string]Kind)
	for kind, list := range map[Kind]string{Value: values, Switch: switches, Output: outputs, Input: inputs,
		Source: sources} {
		for _, flag := range strings.Fields(list) {
			all[flag] = kind
		}
	}
	return all
}

// material are the flags of sources and encoders that vollab peer and vollab direct share.
const material = " points seed fps codec bits speed "

// programs are all roles, by the name of the program and its subcommands.
var programs = map[string]program{
	"vollab peer": {[]string{"peer"}, kinds("transport role name watched listen connect congestion gap segment "+
		"min-bitrate max-bitrate suppression pacing spread uplink controller secret receiver-queue encoder-queue "+
		"send-queue workers tiling tiles qualities watched-tiles quality display decoder-queue seconds idle"+material,
		"adapt no-colors decode=false", "summary records", "frames decisions", "source")},
	"vollab direct produce": {[]string{"direct", "produce"}, kinds("listen connect seconds transport mode gap count "+
		"bitrate min-bitrate max-bitrate pacing feedback controller"+material, "json no-colors", "log", "", "source")},
	"vollab direct consume": {[]string{"direct", "consume"}, kinds("listen connect seconds",
		"json same-clock render", "log", "viewpoint", "")},
	"vollab probe receive": {[]string{"probe", "receive"}, kinds("listen count", "", "", "", "")},
	"vollab probe send":    {[]string{"probe", "send"}, kinds("to size count interval", "", "", "", "")},
	"volsfu serve": {[]string{"serve"}, kinds("listen admin-listen media-address media-port log-format "+
		"forward-pacing forward-congestion-max-bps forward-congestion-start-bps forward-congestion-min-bps", "dev",
		"", "", "")},
}

// Programs returns the names of the executable files, in order.
func Programs() []string {
	var names []string
	for name := range programs {
		file, _, _ := strings.Cut(name, " ")
		names = append(names, file)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Places are the folders of an agent for a process.
type Places struct {
	// Folder has the files that a process reads and writes.
	Folder string
	// Data is the folder of the test data, empty without test data.
	Data string
}

// Plan is a program with its arguments, and the files that the arguments name.
type Plan struct {
	// Program is the name of the executable file with the subcommands.
	Program   string
	Arguments []Argument
	// Inputs and Outputs are the paths on this side, by the name on the other side.
	Inputs, Outputs map[string]string
}

// NewPlan describes a command line of this side for the other side. file is the name of the executable file, words are
// its arguments, data is the folder of the test data on this side, empty for none. The error wraps ErrArgument.
func NewPlan(file string, words []string, data string) (*Plan, error) {
	name, flags, err := find(file, words)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Program: name, Inputs: make(map[string]string), Outputs: make(map[string]string)}
	words = words[len(programs[name].words):]
	for len(words) > 0 {
		flag, dashes := strings.CutPrefix(words[0], "--")
		kind, known := flags[flag]
		if !dashes || !known {
			return nil, fmt.Errorf("%w: argument %q of %s", ErrArgument, words[0], name)
		}
		argument := Argument{Flag: flag, Kind: kind}
		words = words[1:]
		if kind != Switch {
			if len(words) == 0 {
				return nil, fmt.Errorf("%w: --%s of %s has no value", ErrArgument, flag, name)
			}
			if err := plan.set(&argument, words[0], data); err != nil {
				return nil, fmt.Errorf("--%s of %s: %w", flag, name, err)
			}
			words = words[1:]
		}
		plan.Arguments = append(plan.Arguments, argument)
	}
	return plan, nil
}

// find returns the program of a command line.
func find(file string, words []string) (string, map[string]Kind, error) {
	for name, p := range programs {
		if name == strings.Join(append([]string{file}, p.words...), " ") && len(words) >= len(p.words) &&
			slices.Equal(words[:len(p.words)], p.words) {
			return name, p.flags, nil
		}
	}
	return "", nil, fmt.Errorf("%w: program %s %s", ErrArgument, file, strings.Join(words[:min(len(words), 2)], " "))
}

// set converts the value of an argument.
func (p *Plan) set(a *Argument, value, data string) error {
	a.Value = value
	switch a.Kind {
	case Output, Input:
		files := p.Outputs
		if a.Kind == Input {
			files = p.Inputs
		}
		a.Value = filepath.Base(value)
		if other, taken := files[a.Value]; taken && other != value {
			return fmt.Errorf("%w: two files have the name %s", ErrArgument, a.Value)
		}
		files[a.Value] = value
	case Source:
		kind, path, file := strings.Cut(value, ":")
		if !file {
			return nil
		}
		inside, err := filepath.Rel(data, path)
		if data == "" || err != nil || !filepath.IsLocal(inside) {
			return fmt.Errorf("%w: the source %s is not in the test data", ErrArgument, value)
		}
		a.Value, a.Data = kind, filepath.ToSlash(inside)
	}
	return nil
}

// Line returns the arguments of a program on this side, and the paths of the files that the program writes, by name.
// The arguments come from another host: every name, kind and length is checked. The error wraps ErrArgument.
func Line(name string, arguments []Argument, here Places) (file string, words []string, outputs map[string]string,
	err error) {
	p, known := programs[name]
	if !known {
		return "", nil, nil, fmt.Errorf("%w: program %.64q", ErrArgument, name)
	}
	file, _, _ = strings.Cut(name, " ")
	words, outputs = slices.Clone(p.words), make(map[string]string)
	for _, a := range arguments {
		kind, known := p.flags[a.Flag]
		if !known || kind != a.Kind {
			return "", nil, nil, fmt.Errorf("%w: flag --%.64q of %s as a %.16s", ErrArgument, a.Flag, name, a.Kind)
		}
		value, err := a.value(here)
		if err != nil {
			return "", nil, nil, fmt.Errorf("--%s of %s: %w", a.Flag, name, err)
		}
		words = append(words, "--"+a.Flag)
		if kind != Switch {
			words = append(words, value)
		}
		if kind == Output {
			outputs[a.Value] = value
		}
	}
	return file, words, outputs, nil
}

// value returns the value of an argument on this side.
func (a *Argument) value(here Places) (string, error) {
	if len(a.Value) > maxValue || len(a.Data) > maxValue || strings.ContainsRune(a.Value+a.Data, 0) {
		return "", fmt.Errorf("%w: expected at most %d bytes without 0", ErrArgument, maxValue)
	}
	switch a.Kind {
	case Output, Input:
		if !ValidFile(a.Value) {
			return "", fmt.Errorf("%w: %.64q is not the name of a file", ErrArgument, a.Value)
		}
		return filepath.Join(here.Folder, a.Value), nil
	case Source:
		switch {
		case a.Data == "" && (a.Value == "synthetic" || a.Value == "realsense"):
			return a.Value, nil
		case a.Data == "" || a.Value != "glb" && a.Value != "ply":
			return "", fmt.Errorf("%w: source %.64q; expected synthetic, realsense, or glb or ply of the test data",
				ErrArgument, a.Value)
		case here.Data == "":
			return "", fmt.Errorf("%w: the host has no test data; vollab agent --data names the folder", ErrArgument)
		case !filepath.IsLocal(filepath.FromSlash(a.Data)):
			return "", fmt.Errorf("%w: %.64q is not in the test data", ErrArgument, a.Data)
		}
		return a.Value + ":" + filepath.Join(here.Data, filepath.FromSlash(a.Data)), nil
	}
	return a.Value, nil
}

// ValidFile reports whether a name is that of a file without folders.
func ValidFile(name string) bool {
	return name != "" && len(name) <= maxValue && name != "." && filepath.IsLocal(name) &&
		!strings.ContainsAny(name, `/\`)
}
