package lab

import "io"

// Printable is a measurement that can be printed for people and for programs.
type Printable interface {
	WriteJSON(w io.Writer) error
	WriteText(w io.Writer) error
}

// Print prints a measurement as text, or as one JSON object.
func Print(w io.Writer, p Printable, asJSON bool) error {
	if asJSON {
		return p.WriteJSON(w)
	}
	return p.WriteText(w)
}
