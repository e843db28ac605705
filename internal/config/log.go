package config

import (
	"fmt"
	"slices"
)

// Log configures logging.
type Log struct {
	Level  string `yaml:"level" help:"minimum level: debug, info, warn or error"`
	Format string `yaml:"format" help:"format: json for machines, console for people"`
	File   string `yaml:"file" help:"file that the log is appended to; empty: standard error"`
}

// DefaultLog returns a format for people.
func DefaultLog() Log {
	return Log{Level: "info", Format: "console"}
}

// Validate reports the first invalid key.
func (l Log) Validate() error {
	if levels := []string{"debug", "info", "warn", "error"}; !slices.Contains(levels, l.Level) {
		return fmt.Errorf("%w: level is %q, expected one of %q", ErrValue, l.Level, levels)
	}
	if formats := []string{"json", "console"}; !slices.Contains(formats, l.Format) {
		return fmt.Errorf("%w: format is %q, expected one of %q", ErrValue, l.Format, formats)
	}
	return nil
}
