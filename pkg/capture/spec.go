package capture

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// part is one source of a specification.
type part struct {
	kind     *kind
	argument string
	name     string // of a camera; empty if not given
}

// parseSpec parses a specification. The parts are separated by commas. Because file names may contain commas, a part
// must begin with an existing kind.
func parseSpec(spec string) ([]part, error) {
	var parts []part
	for begin := 0; begin < len(spec) || len(parts) == 0; {
		end := nextPart(spec, begin)
		p, err := parsePart(spec[begin:end])
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
		begin = end + 1
	}
	if len(parts) == 1 && (parts[0].kind.camera != nil || parts[0].name == "") {
		return parts, nil
	}
	for _, p := range parts {
		if p.kind.camera == nil {
			return nil, fmt.Errorf(
				"%w: %q is not a camera recording; only these can be named or merged",
				ErrArgument,
				p.kind.usage(),
			)
		}
	}
	return parts, nil
}

// nextPart returns the index of the comma that ends a part, or the length of the specification.
func nextPart(spec string, begin int) int {
	for at := begin; ; at++ {
		comma := strings.IndexByte(spec[at:], ',')
		if comma < 0 {
			return len(spec)
		}
		at += comma
		if _, ok := startOf(spec[at+1:]); ok {
			return at
		}
	}
}

// startOf returns the kind at the start of a text, if the kind is followed by a colon. A name may
// precede the kind.
func startOf(text string) (*kind, bool) {
	head, _, found := strings.Cut(text, ":")
	if !found || strings.Contains(head, ",") {
		return nil, false
	}
	if _, kind, named := strings.Cut(head, "="); named {
		head = kind
	}
	return kindOf(head)
}

func kindOf(name string) (*kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, false
	}
	return &kinds[i], true
}

func parsePart(text string) (part, error) {
	head, argument, given := strings.Cut(text, ":")
	name, rest, named := strings.Cut(head, "=")
	if named {
		head = rest
	} else {
		name = ""
	}
	k, ok := kindOf(head)
	switch {
	case !ok:
		return part{}, fmt.Errorf("%w %q: expected %s", ErrUnknownSource, text, strings.Join(Kinds(), " or "))
	case named && name == "":
		return part{}, fmt.Errorf("%w: %q has an empty name before =", ErrArgument, text)
	case k.argument == "" && given:
		return part{}, fmt.Errorf("%w: %q takes none, got %q", ErrArgument, k.name, argument)
	case k.argument != "" && argument == "" && !k.optional:
		return part{}, fmt.Errorf("%w: %q has none, expected %s", ErrArgument, text, k.usage())
	}
	return part{kind: k, argument: argument, name: name}, nil
}

// cameraName returns the name of the camera: the name in the specification, or the name of its
// file.
func (p part) cameraName() string {
	if p.name != "" {
		return p.name
	}
	base := filepath.Base(p.argument)
	return strings.TrimSuffix(base, filepath.Ext(base))
}
