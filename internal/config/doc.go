// Package config gathers the configuration structs that stand beside the code they tune into one, and fills it from a YAML file, environment
// variables and flags. It owns no setting but those of the process itself (Server and Log).
//
// A Loader works on any struct: every field has a tag yaml with its key, a tag help with one line of explanation, optionally a tag flag with
// a name for its flag in place of the derived one, and optionally secret:"true" to keep its value out of print. Fields are strings, bools,
// ints, floats, durations, lists of strings, or structs of the same kind, which make sections. A Loader belongs to one goroutine.
package config

import "errors"

var (
	// ErrUnknownKey is wrapped with the key and its line.
	ErrUnknownKey = errors.New("unknown key")
	// ErrValue is wrapped with the key and what was expected.
	ErrValue = errors.New("invalid value")
	// ErrFile is wrapped with what makes the file no configuration.
	ErrFile = errors.New("invalid configuration file")
)
