package codec

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// registry contains the codecs of this program. registry is written while packages are initialised, and read by any
// goroutine afterwards.
var registry struct {
	sync.RWMutex
	codecs []Codec
}

// Register registers a codec by its name and its FourCC. Codec packages call it during initialisation. Register panics
// if the name or the FourCC is registered already, because two packages of the program then contradict each other.
func Register(c Codec) {
	registry.Lock()
	defer registry.Unlock()
	for _, other := range registry.codecs {
		if other.Name() == c.Name() || other.FourCC() == c.FourCC() {
			panic(
				fmt.Sprintf(
					"codec: %q (%s) is registered after %q (%s): names and FourCCs must differ",
					c.Name(),
					c.FourCC(),
					other.Name(),
					other.FourCC(),
				),
			)
		}
	}
	registry.codecs = append(registry.codecs, c)
}

// ByName returns the codec with the name, or an error that wraps ErrUnknown.
func ByName(name string) (Codec, error) {
	return find(fmt.Sprintf("%.32q", name), func(c Codec) bool { return c.Name() == name })
}

// ByFourCC returns the codec of a frame, or an error that wraps ErrUnknown.
func ByFourCC(fourCC FourCC) (Codec, error) {
	return find(fmt.Sprintf("FourCC %q", fourCC), func(c Codec) bool { return c.FourCC() == fourCC })
}

func find(what string, matches func(Codec) bool) (Codec, error) {
	registry.RLock()
	i := slices.IndexFunc(registry.codecs, matches)
	var found Codec
	if i >= 0 {
		found = registry.codecs[i]
	}
	registry.RUnlock()
	if found == nil {
		return nil, fmt.Errorf("%w: %s, expected one of %s", ErrUnknown, what, strings.Join(Names(), ", "))
	}
	return found, nil
}

// Names returns the names of the codecs of this program, sorted.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := make([]string, 0, len(registry.codecs))
	for _, c := range registry.codecs {
		names = append(names, c.Name())
	}
	slices.Sort(names)
	return names
}
