// Package config joins the configuration structs of the packages that they configure, and fills them from a YAML file,
// environment variables and flags. The package owns only the settings of the process itself (Server and Log).
//
// A Loader works on any struct. Every field has a tag yaml with its key, a tag help with one line of explanation,
// optionally a tag flag with the name of its flag instead of the derived one, and optionally secret:"true" to hide its
// value in output. Fields are strings, bools, ints, floats, durations, lists of strings, or structs of the same kind,
// which are sections. A Loader belongs to one goroutine.
package config

import "errors"

var (
	// ErrUnknownKey is the sentinel of an unknown key. The wrapping error has the key and its line.
	ErrUnknownKey = errors.New("unknown key")
	// ErrValue is the sentinel of an invalid value. The wrapping error has the key and the expected value.
	ErrValue = errors.New("invalid value")
	// ErrFile is the sentinel of a file that is not a configuration. The wrapping error has the reason.
	ErrFile = errors.New("invalid configuration file")
)
